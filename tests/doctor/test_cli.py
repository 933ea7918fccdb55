"""`cuelight doctor` on captured machines and on this one."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from cuelight.cli import main
from cuelight.doctor import probes
from cuelight.doctor.saved import dump

from .machines import machine

BOARD = "0000:01:00.0"


def tree(name: str, folder: Path) -> str:
    path = folder / f"{name}.txt"
    path.write_text(dump(machine(name)))
    return str(path)


@pytest.mark.parametrize(("name", "status"), [("server", 0), ("gpu-idle", 0), ("link-gen1", 1), ("reprogrammed", 1)])
def test_the_exit_status_tells_whether_something_is_wrong(name: str, status: int, tmp_path: Path) -> None:
    assert main(["doctor", "--tree", tree(name, tmp_path)]) == status


def test_findings_stand_by_device_the_worst_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the reason and what to do."""
    main(["doctor", "--tree", tree("completion-timeout", tmp_path)])
    lines = capsys.readouterr().out.splitlines()
    headings = [line for line in lines if line.startswith("0000:")]
    assert headings == [
        f"{BOARD}  Cuelight board",
        "0000:02:00.0  NVIDIA GeForce RTX 4090",
        "0000:00:01.0  port",
    ]
    port = lines[lines.index(headings[-1]) + 1 :]
    assert port[0].startswith("  warning  There were nonfatal errors: 3 CmpltTO.")
    assert any("→ setpci -s 0000:00:01.0 CAP_EXP+28.w=0:1f" in line for line in port)
    assert lines[-1].startswith("0 faults, 2 warnings, 1 note, ")
    assert max(map(len, lines)) <= 80


def test_json_has_a_line_for_each_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json", "--tree", tree("link-narrow", tmp_path)]) == 1
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all(one.keys() == {"check", "severity", "subject", "what", "why", "remedy"} for one in found)
    (warning,) = (one for one in found if one["severity"] not in ("ok", "note"))
    assert (warning["check"], warning["severity"], warning["subject"]) == ("link-width", "warning", BOARD)


def test_a_tree_that_is_none_ends_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--tree", str(tmp_path / "nothing")]) == 1
    said = capsys.readouterr()
    assert not said.out
    assert said.err.startswith(f"cuelight: {tmp_path / 'nothing'} can't be read: ")


def test_a_tree_can_be_captured_of_this_machine_only(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["doctor", "--tree", tree("server", tmp_path), "--capture", str(tmp_path / "again")])


def test_this_machine_can_be_captured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is written is enough to look at it elsewhere, and does not tell whose it is."""
    # Loading torch once more takes long; test_probes.py tries it.
    monkeypatch.setitem(probes.PROBES, "attention", lambda _: None)
    path = tmp_path / "machine.txt"
    assert main(["doctor", "--capture", str(path)]) == 0
    assert str(path) in capsys.readouterr().out
    text = path.read_text()
    assert socket.gethostname() not in text
    assert os.environ.get("USER", "root=") not in text
    statuses = [main(["doctor", "--json"]), main(["doctor", "--json", "--tree", str(path)])]
    lines = capsys.readouterr().out.splitlines()
    assert statuses[0] == statuses[1]
    assert lines
    assert lines[: len(lines) // 2] == lines[len(lines) // 2 :]
