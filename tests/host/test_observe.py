"""One process looks at the device of another: what it sees, and what it sees of those that are gone or strange."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cuelight.device import Device
from cuelight.errors import DeviceClosed, DeviceLost, Timeout, TransportError
from cuelight.observe import FOLDER, SUFFIX, find_devices, observe
from cuelight.publish import Publisher
from cuelight.snapshot import Snapshot

from .checks import until
from .fallen import fallen
from .lane import STAGES, InstantLane


@pytest.fixture
def device() -> Iterator[Device]:
    with Device.open("twin", slots=64, seats=16, title="a test") as device:
        device.configure(stages=STAGES, kv_blocks=8, block_positions=16)
        yield device


def socket_of(device: Device) -> Path:
    return Path(f"{device.segment.path}{SUFFIX}")


def answer_with(path: Path, answer: Callable[[socket.socket], object]) -> threading.Thread:
    """Be what answers at `path`, once."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def serve() -> None:
        with listener, listener.accept()[0] as connection:
            answer(connection)

    thread = threading.Thread(target=serve)
    thread.start()
    return thread


def test_a_snapshot_comes_over_whole(device: Device) -> None:
    """Requests on the device and waiting for room, by tier; lanes; the registers."""
    lane = InstantLane(device)
    request = device.submit([1, 2, 3], 90, tier=1)
    waiting = threading.Thread(target=lambda: device.submit([4], 100, tier=3, timeout_s=30).wait(30))
    waiting.start()
    until(lambda: device.snapshot().waiting == (0, 0, 0, 1))
    seen = observe(socket_of(device))
    assert (seen.device, seen.title, seen.pid) == ("twin", "a test", os.getpid())
    assert seen.waiting == (0, 0, 0, 1)
    (only,) = seen.requests
    assert (only.id, only.tier, only.prompt_tokens, only.new_tokens) == (request.id, 1, 3, 0)
    assert seen.status.groups[0].kv_free == 2
    assert seen.status.slots == 64
    assert seen.uptime_s > only.age_s > 0
    lane.start()
    request.wait(30)
    waiting.join(30)
    until(lambda: not device.requests)
    later = observe(socket_of(device))
    assert later.requests == ()
    assert later.status.counters.retired == 2
    assert (seen.tokens, later.tokens) == ((0, 0, 0, 0), (0, 90, 0, 100))
    lane.stop()


def test_it_is_json_and_comes_back_as_it_went(device: Device) -> None:
    snapshot = device.snapshot()
    assert Snapshot.from_dict(json.loads(json.dumps(snapshot.to_dict()))) == snapshot


def test_codes_have_their_names_in_json(device: Device) -> None:
    snapshot = fallen(device.snapshot())
    told = json.loads(json.dumps(snapshot.to_dict()))
    first, second = (lane["delivery"] for lane in told["status"]["lanes"])
    assert (first["mode"], first["cause"], first["falls"]) == ("PUSH", "OVERDUE", {"TIMEOUT": 2, "OVERDUE": 11})
    assert (second["mode"], second["cause"], second["falls"]) == ("PROBING", None, {})
    assert json.loads(json.dumps(snapshot.status.to_dict())) == told["status"]
    assert Snapshot.from_dict(told) == snapshot
    for strange in (
        {"mode": "PULL"},
        {"mode": 2},
        {"cause": "PUSH"},
        {"falls": {"PUSH": 1}},
        {"falls": {"OVERDUE": "1"}},
    ):
        told["status"]["lanes"][0]["delivery"] = first | strange
        with pytest.raises(ValueError, match="no"):
            Snapshot.from_dict(told)


def test_looking_changes_nothing_that_is_counted(device: Device) -> None:
    before = device.status().counters
    for _ in range(3):
        observe(socket_of(device))
    assert device.status().counters == before


def test_only_this_user_may_look(device: Device) -> None:
    state = socket_of(device).stat()
    assert stat.S_ISSOCK(state.st_mode)
    assert stat.S_IMODE(state.st_mode) == 0o600


def test_a_closed_device_is_not_found(device: Device) -> None:
    path = socket_of(device)
    assert path in find_devices()
    device.close()
    device.close()
    assert path not in find_devices()
    with pytest.raises(DeviceClosed, match="has been closed"):
        observe(path)
    assert not list(FOLDER.glob(f"{path.name}*"))


def test_another_process_is_seen_and_its_death_is_noticed() -> None:
    code = (
        "import sys, time; from cuelight import Device; sys.argv = ['/some/tool/__main__.py']\n"
        "device = Device.open('twin'); device.admit(stage=3); print(device.segment.path, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        path = Path(f"{process.stdout.readline().strip()}{SUFFIX}")
        try:
            seen = observe(path)
        finally:
            process.kill()
    assert (seen.pid, seen.program, seen.status.active) == (process.pid, "tool", 1)
    assert path in find_devices()
    with pytest.raises(DeviceClosed):
        observe(path)
    assert not path.exists()


@pytest.mark.parametrize(
    "answer",
    [b"hello", b"[]", b"{}", b'{"error": 1}', b"[" * 100_000, b"\xff\xfe", b"{" + b'"a":1,' * 10],
)
def test_a_strange_answer_is_refused(tmp_path: Path, answer: bytes) -> None:
    thread = answer_with(tmp_path / "s", lambda connection: connection.sendall(answer))
    with pytest.raises(TransportError, match="another version"):
        observe(tmp_path / "s")
    thread.join(30)


@pytest.mark.parametrize(
    "change", [{"pid": "1"}, {"pid": True}, {"more": 1}, {"waiting": [None]}, {"requests": [{}]}, {"status": None}]
)
def test_a_field_of_another_type_is_refused(device: Device, change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="no"):
        Snapshot.from_dict(device.snapshot().to_dict() | change)


def test_a_process_that_is_stopped_times_out(tmp_path: Path) -> None:
    """Also where it accepts, and where its queue is full."""
    looked = threading.Event()
    thread = answer_with(tmp_path / "s", lambda _: looked.wait(30))
    with pytest.raises(Timeout, match=r"within 0\.05 s"):
        observe(tmp_path / "s", timeout_s=0.05)
    looked.set()
    thread.join(30)
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as first:
        listener.bind(str(tmp_path / "full"))
        listener.listen(0)
        first.connect(str(tmp_path / "full"))
        with pytest.raises(Timeout):
            observe(tmp_path / "full", timeout_s=0.05)


def test_why_a_device_cannot_be_read_is_told(tmp_path: Path) -> None:
    def fail() -> Snapshot:
        raise DeviceLost("The device reads all ones; open it again.")

    publisher = Publisher(tmp_path / "s", fail)
    with pytest.raises(TransportError, match="reads all ones"):
        observe(tmp_path / "s")
    publisher.close()


def test_who_hangs_up_disturbs_nobody(device: Device) -> None:
    for _ in range(20):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(socket_of(device)))
    assert observe(socket_of(device)).pid == os.getpid()


def test_a_socket_that_cannot_be_made_is_a_sentence(device: Device, tmp_path: Path) -> None:
    with pytest.raises(TransportError, match=r"make .* writable"):
        Publisher(tmp_path / "none" / "s", device.snapshot)
