"""Probes end in what they saw, or in nothing, and never in an error."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from cuelight.doctor.gpu import read_samples, read_states
from cuelight.doctor.probes import attention, cuda, link, nvidia, run_probe

from .machines import machine

ADDRESS = "0000:23:00.0"
SYSFS = "/sys/bus/pci/devices"

OLD_DRIVER = """#!/bin/sh
case "$1" in
    *clocks_event_reasons*) echo 'Field "clocks_event_reasons.active" is not a valid field to query.'; exit 2 ;;
    *clocks_throttle_reasons*) echo heading; echo "00000000:41:00.0, NVIDIA A100, 470.1, Enabled, P0, 1410, 1410, \
0x0000000000000000, 0, 30, 50.00, 300.00, 40536, 0" ;;
esac
"""


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The board behind a switch, with registers that can be mapped, where the probe looks for it."""
    saved = machine("server")
    for address in saved.entries(SYSFS):
        folder = tmp_path / (saved.link(f"{SYSFS}/{address}") or "").removeprefix("../../../")
        folder.mkdir(parents=True)
        for name in ("config", "power_state", "current_link_speed", "current_link_width"):
            (folder / name).write_bytes(saved.files[f"{SYSFS}/{address}/{name}"])
        (tmp_path / address).symlink_to(folder)
    with (tmp_path / ADDRESS / "resource0").open("wb") as registers:
        registers.truncate(0x10000)
    monkeypatch.setattr(link, "DEVICES", tmp_path)
    monkeypatch.setattr(link, "READ_S", 0.0)
    return tmp_path / ADDRESS


def test_every_link_up_to_the_root_is_sampled(board: Path) -> None:
    samples = read_samples(link.sample(ADDRESS))
    assert {address: {str(one) for one in seen} for address, seen in samples.items()} == {
        "0000:21:00.0": {"32 GT/s x16"},
        ADDRESS: {"8 GT/s x8"},
    }
    assert {len(seen) for seen in samples.values()} == {link.SAMPLES}


def test_registers_of_a_board_that_does_not_answer_are_left_alone(board: Path) -> None:
    """It is asleep, does not decode memory, has no address, is gone, or is not this user's."""
    config = (board / "config").read_bytes()
    (board / "power_state").write_text("D3hot\n")
    assert link.sample(ADDRESS) is None
    (board / "power_state").write_text("D0\n")
    for bad in (config[:4] + bytes(2) + config[6:], config[:0x10] + bytes(4) + config[0x14:], b"\xff" * 4096, b""):
        (board / "config").write_bytes(bad)
        assert link.sample(ADDRESS) is None
    (board / "config").write_bytes(config)
    assert link.sample(ADDRESS)
    (board / "resource0").unlink()
    assert link.sample(ADDRESS) is None


def asked(script: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """Ask for GPUs where nvidia-smi is this script."""
    (folder / "nvidia-smi").write_text(script)
    (folder / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return nvidia.ask_gpus()


def test_an_older_driver_is_asked_by_older_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    states = read_states(asked(OLD_DRIVER, tmp_path, monkeypatch))
    assert [(address, one.name, one.clock_mhz) for address, one in states.items()] == [
        ("0000:41:00.0", "NVIDIA A100", 1410.0)
    ]


@pytest.mark.parametrize("script", ["#!/bin/sh\nexit 9\n", "#!/bin/sh\nexec sleep 60\n", "#!/bin/sh\n"])
def test_a_driver_that_does_not_answer_is_none(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails, hangs, or says nothing."""
    monkeypatch.setattr(nvidia, "ANSWER_S", 0.2)
    assert asked(script, tmp_path, monkeypatch) is None


def test_without_nvidias_driver_nothing_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert nvidia.ask_gpus() is None
    assert nvidia.ask_links() is None


def test_the_engines_attention_is_seen_at_work(capfd: pytest.CaptureFixture[str]) -> None:
    """Torch has a kernel for each kind of row in each type."""
    assert attention.main() == 0
    *_, line = capfd.readouterr().out.splitlines()
    kernels = {"decode": "flash_attention_for_cpu", "prefill": "flash_attention_for_cpu"}
    assert json.loads(line)["kernels"] == {"float32": kernels, "bfloat16": kernels}


@pytest.mark.skipif(find_spec("cuda") is not None, reason="there is a driver to ask")
def test_a_gpu_is_not_tried_without_cuda() -> None:
    """In a process of its own, too."""
    assert cuda.main("0000:24:00.0") == 1
    assert run_probe("cuda", "0000:24:00.0") is None
