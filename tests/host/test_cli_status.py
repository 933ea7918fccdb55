"""`cuelight status` beside running devices: printed, as JSON, and as the view that stays."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from cuelight.cli import main, status
from cuelight.cli.device_view import DeviceView
from cuelight.device import Device
from cuelight.observe import find_devices
from cuelight.snapshot import Snapshot

from .checks import WAIT_S, until
from .fallen import fallen
from .lane import STAGES, InstantLane

NO_PID = 1 << 22
FALLS = ["lane 0 fell to POLL, last by OVERDUE: TIMEOUT 2, OVERDUE 11"]


@pytest.fixture
def device() -> Iterator[Device]:
    device = Device.open("twin", slots=64, seats=16, title="a model")
    device.configure(stages=STAGES, kv_blocks=32, block_positions=16)
    yield device
    # No lane will end what lives.
    device.close(0.0)


@pytest.fixture
def busy(device: Device) -> Device:
    """A device with five live requests, of which the lane will never hear."""
    for tier in (0, 0, 1, 2, 3):
        device.submit([1, 2, 3], 20, tier=tier)
    return device


def show(snapshot: Snapshot, before: Snapshot | None = None, *, lines: int | None = None, width: int = 80) -> list[str]:
    console = Console(width=width, height=100)
    with console.capture() as capture:
        console.print(DeviceView(snapshot, before, lines))
    return capture.get().splitlines()


def test_a_running_device_is_printed(busy: Device, capsys: pytest.CaptureFixture[str]) -> None:
    """What it is used for, and its requests by tier."""
    assert main(["status", "--pid", str(os.getpid())]) == 0
    said = capsys.readouterr().out
    assert "twin  a model  " in said
    assert f"process {os.getpid()}" in said
    assert re.search(r"^slots .* 5 of 64$", said, re.MULTILINE)
    counts = {row.split()[0]: row.split()[1:4] for row in said.splitlines() if re.match(r"vip|standard|2 |best", row)}
    assert counts["vip"] == ["0", "2", "0"]
    assert all(counts[name] == ["0", "1", "0"] for name in ("standard", "2", "best-effort"))
    assert all(f"{request.id:#010x}" in said for request in busy.requests)


def printed(lines: str) -> list[Snapshot]:
    """What JSON lines tell; devices of other tests' fixtures are among it."""
    return [Snapshot.from_dict(json.loads(line)) for line in lines.splitlines()]


def test_json_is_what_a_program_reads(busy: Device, capsys: pytest.CaptureFixture[str]) -> None:
    """A line for each device."""
    with Device.open("twin", slots=64, seats=16, title="another"):
        assert main(["status", "--pid", str(os.getpid()), "--json"]) == 0
    seen = [one for one in printed(capsys.readouterr().out) if one.title in ("a model", "another")]
    assert [one.title for one in seen] == ["a model", "another"]
    assert [len(one.requests) for one in seen] == [5, 0]


def test_nothing_running_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(status, "find_devices", list)
    assert main(["status"]) == 1
    assert capsys.readouterr() == ("", f"cuelight: {status.NOTHING}\n")
    assert main(["status", "--pid", str(NO_PID)]) == 1
    assert capsys.readouterr().err.startswith(f"cuelight: Process {NO_PID} has no device open;")


def test_one_that_does_not_answer_hides_no_other(
    device: Device, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is told on standard error."""
    found = find_devices()
    strange = tmp_path / "strange"
    strange.mkdir()
    monkeypatch.setattr(status, "find_devices", lambda: [strange / ("x" * 200), *found])
    assert main(["status", "--pid", str(os.getpid()), "--json"]) == 0
    said = capsys.readouterr()
    assert "a model" in [one.title for one in printed(said.out)]
    assert said.err.startswith("cuelight: ")
    monkeypatch.setattr(status, "find_devices", lambda: [strange / ("x" * 200)])
    assert main(["status"]) == 1


def test_lanes_show_how_dispatches_come_to_them(busy: Device) -> None:
    """One that fell has a line that says why, and how often."""
    snapshot = busy.snapshot()
    for seen, modes in ((snapshot, ["POLL", "POLL"]), (fallen(snapshot), ["PUSH", "PROBING"])):
        said = "\n".join(show(seen))
        assert re.findall(r"^ +[01] (?:stage \d+|idle) +([A-Z]+) ", said, re.MULTILINE) == modes
        falls = re.findall(r"^lane .* fell .*$", said, re.MULTILINE)
        assert [line.rstrip() for line in falls] == FALLS * (seen is not snapshot)


@pytest.mark.parametrize("width", [66, 80, 120])
def test_no_number_is_cut_or_broken_over_lines(busy: Device, width: int) -> None:
    """The lanes' table is the widest."""
    lines = show(fallen(busy.snapshot()), width=width)
    lanes = [line for line in lines if re.match(r" +[01] ", line)]
    assert len(lanes) == 2
    assert max(map(len, lines)) <= width
    assert all(re.search(r"\d+/16 .* \d+/32$", line.rstrip()) for line in lanes)
    assert "…" not in "".join(lines[1:])


def test_requests_that_do_not_fit_are_counted(busy: Device) -> None:
    """The page never is higher than it may be."""
    snapshot = busy.snapshot()
    whole = show(snapshot)
    assert show(snapshot, lines=len(whole)) == whole
    cut = show(snapshot, lines=len(whole) - 1)
    assert len(cut) == len(whole) - 1
    assert cut[-1] == "and 2 more"
    for lines in range(len(whole)):
        assert len(show(snapshot, lines=lines)) <= max(lines, len(whole) - 7)


def test_a_parked_request_is_shown_as_such(busy: Device) -> None:
    """In place of its rate."""
    request = busy.requests[2]
    request.park()
    parked = [line for line in show(busy.snapshot()) if "parked" in line]
    assert len(parked) == 1
    assert f"{request.id:#010x}" in parked[0]


def test_rates_are_changes_since_the_last_look(device: Device) -> None:
    """Tokens and counters for a second; none for another device."""
    lane = InstantLane(device)
    before = device.snapshot()
    request = device.submit([1, 2, 3], 40)
    lane.start()
    request.wait(WAIT_S)
    until(lambda: not device.requests)
    after = device.snapshot()
    passes = round(after.status.counters.passes / (after.uptime_s - before.uptime_s))
    assert f"+{passes:,}/s" in "\n".join(show(after, before))
    assert "/s" not in "\n".join(show(after))
    with Device.open("twin", slots=64, seats=16) as other:
        assert "/s" not in "\n".join(show(after, other.snapshot()))
    lane.stop()


def test_the_view_stays_until_q(busy: Device) -> None:
    """On a terminal, here one that has too few lines: drawn, drawn again, and left as it was."""
    primary, secondary = pty.openpty()
    command = [sys.executable, "-m", "cuelight", "status", "--pid", str(os.getpid()), "--interval", "0.1"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "90", "LINES": "12"}
    with subprocess.Popen(command, stdin=secondary, stdout=secondary, stderr=secondary, env=environment) as process:
        os.close(secondary)
        # Whatever fails here: nobody would read on, and it would wait for that.
        deadline = threading.Timer(WAIT_S, process.kill)
        deadline.start()
        said = b""
        while said.count(b"q quits") < 3 and (piece := read(primary)):
            said += piece
        os.write(primary, b"q")
        while piece := read(primary):
            said += piece
        deadline.cancel()
        assert process.wait(WAIT_S) == 0
    os.close(primary)
    assert b"slots" in said
    # The alternate screen was entered and left.
    assert said.index(b"\x1b[?1049h") < said.rindex(b"\x1b[?1049l")


def read(terminal: int) -> bytes:
    """What a program writes next; nothing once it has ended."""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:
        return b""


def heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_watching_as_json_goes_on_when_the_device_is_gone() -> None:
    """A line a look; ended by an interrupt without a word."""
    code = (
        "from cuelight import Device; device = Device.open('twin', title='short'); print('open', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdin
        assert owner.stdout
        assert owner.stdout.readline() == "open\n"
        command = [sys.executable, "-m", "cuelight", "status", "--watch", "--json", "--interval", "0.1"]
        command += ["--pid", str(owner.pid)]
        # Where tests run in the background interrupts are ignored, which a child inherits.
        with subprocess.Popen(
            command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=heed_interrupts
        ) as watcher:
            assert watcher.stdout
            assert watcher.stderr
            seen = [json.loads(watcher.stdout.readline()) for _ in range(2)]
            owner.communicate("\n", timeout=WAIT_S)
            assert watcher.poll() is None
            watcher.send_signal(2)
            assert watcher.wait(WAIT_S) == 130
            assert watcher.stderr.read() == ""
    assert [one["title"] for one in seen] == ["short", "short"]
    assert seen[0]["uptime_s"] < seen[1]["uptime_s"]
