"""The CPU lane as a process: started, given dispatches by hand, stopped, orphaned, refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuelight import regmap
from cuelight.errors import LaneError, SegmentError
from cuelight.lanes.faults import LaneFault
from cuelight.lanes.process import LaneProcess
from cuelight.lanes.types import LaneToken, SlotRecord, TokenStatus
from cuelight.segment import Segment, Shape

from ..engine.tiny import save_model

STAGES = 5
SHAPE = Shape(lanes=2, slots=64, seats=64, tokens=16, context=64, blocks=4)
DEADLINE_S = 60.0


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("model")
    save_model(directory)
    return directory


@pytest.fixture
def segment() -> Iterator[Segment]:
    segment = Segment.create(SHAPE)
    for lane in range(SHAPE.lanes):
        segment.port_memory(lane)[regmap.LanePort.EXPECTED // 4] = 1
    yield segment
    segment.close()


@pytest.fixture
def lane(segment: Segment, directory: Path) -> Iterator[LaneProcess]:
    lane = LaneProcess(directory, stages=STAGES, blocks=8, threads=1)
    lane.serve(segment.path, 0)
    lane.wait_ready(DEADLINE_S)
    yield lane
    lane.stop()


def await_true(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class Device:
    """A device played by hand: it writes records and descriptors into lane 0's port and reads completions."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._words = segment.port_memory(0)
        self._sequence = 0
        self._pass = 0

    def run(self, entries: list[tuple[int, int]], stages: range) -> tuple[list[LaneToken], int]:
        """Run a pass with one whole prompt an entry (slot, rows); returns tokens and the seats reported finished."""
        self._pass += 1
        buffer = self._pass % 2
        stamp = self._sequence + 1 & 0xFFFF
        record = (regmap.LanePort.RECORD + buffer * regmap.LanePort.RECORD_STRIDE) // 4
        self._words[record : record + 4] = (0, 0, 0, stamp << 16)
        for at, (slot, rows) in enumerate(entries):
            place = record + (regmap.Record.ENTRY + 16 * at) // 4
            chunk = regmap.EntryChunk(start=0, seat=slot, bind=1, first=1, last=1).pack()
            self._words[place : place + 4] = (1 << 16 | slot, chunk, rows, stamp << 16)
        finished, tokens = 0, []
        for stage in stages:
            finished |= self._dispatch(stage, buffer, stage == stages[0], stage == stages[-1], len(entries))
            tokens += self._segment.take_tokens(0)
        return tokens, finished

    def _dispatch(self, stage: int, buffer: int, first: bool, last: bool, entries: int) -> int:
        self._sequence += 1
        stamp = self._sequence & 0xFFFF
        head = regmap.DispatchHead(
            sequence=self._sequence, stage=stage, buffer=buffer, first=int(first), last=int(last), samples=1, rows=1
        ).pack()
        place = (regmap.LanePort.RING + self._sequence % 16 * 32) // 8
        done = (regmap.LanePort.DONE + self._sequence % 16 * regmap.Completion.SIZE) // 4
        self._words[done : done + regmap.Completion.SIZE // 4] = 0
        wide = self._words.view(np.uint64)
        wide[place : place + 4] = (head, regmap.DispatchPass(self._pass, entries, stamp).pack(), 0, stamp << 48)
        self._segment.set_stop(0, False)  # rings the lane's bell
        await_true(lambda: int(self._words[done + regmap.Completion.BATCH_DONE // 4]) == self._sequence)
        return int(self._words[done : done + 8].view(np.uint64)[0])


def test_lane_runs_dispatches_and_survives_a_bad_record(segment: Segment, lane: LaneProcess) -> None:
    device = Device(segment)
    prompt = np.arange(10, 30, dtype=np.int32)
    table = np.array([3], np.int32)
    segment.write_slot_record(5, SlotRecord(1 << 16 | 5, prompt, 1, table, ignore_eos=True))
    segment.write_slot_record(6, SlotRecord(9 << 16 | 6, prompt, 1, table, ignore_eos=True))
    tokens, finished = device.run([(5, 20), (6, 20)], range(1, STAGES))
    assert tokens[0] == LaneToken(1 << 16 | 6, 0, LaneFault.RECORD_MISMATCH, 0.0, TokenStatus.LANE_ERROR)
    assert (tokens[1].request_id, tokens[1].position, tokens[1].finish) == (1 << 16 | 5, 20, TokenStatus.LENGTH)
    assert finished == 1 << 5 | 1 << 6
    segment.write_slot_record(6, SlotRecord(1 << 16 | 6, prompt, 1, np.array([4], np.int32), ignore_eos=True))
    again, _ = device.run([(6, 20)], range(1, STAGES))
    assert again[0].token == tokens[1].token
    await_true(lambda: "RECORD_MISMATCH" in lane.log)


def test_lane_uses_no_processor_while_nothing_is_dispatched(segment: Segment, lane: LaneProcess) -> None:
    def ticks() -> int:
        fields = Path(f"/proc/{lane.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    Device(segment).run([], range(2, 3))
    before, beat = ticks(), segment.lane_heartbeat(0)
    await_true(lambda: segment.lane_heartbeat(0) >= beat + 2)
    assert ticks() - before <= 5


def test_lane_ends_when_asked_to(segment: Segment, lane: LaneProcess) -> None:
    assert segment.lane_pid(0) == lane.pid
    lane.stop()
    lane.stop()
    assert "status 0" in str(lane.wait(DEADLINE_S))
    assert segment.lane_pid(0) == 0


def test_lane_that_hangs_is_killed(lane: LaneProcess) -> None:
    os.kill(lane.pid, signal.SIGSTOP)
    lane.stop(timeout_s=0.1)
    assert "status -9" in str(lane.wait(DEADLINE_S))


def test_dead_lane_says_so_to_who_waits(lane: LaneProcess) -> None:
    with pytest.raises(LaneError, match="has not ended"):
        lane.wait(0.01)
    os.kill(lane.pid, signal.SIGKILL)
    assert "Lane 0 ended with status -9" in str(lane.wait(DEADLINE_S))
    with pytest.raises(LaneError, match="status -9"):
        lane.wait_ready(DEADLINE_S)


def test_lane_ends_with_its_parent(segment: Segment, directory: Path) -> None:
    source = f"""
import sys
from pathlib import Path
from cuelight.lanes.process import LaneProcess
lane = LaneProcess(Path({str(directory)!r}), stages={STAGES}, blocks=8, threads=1)
lane.serve(Path({str(segment.path)!r}), 1)
lane.wait_ready()
print(lane.pid, flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert segment.lane_pid(1) == pid
        parent.kill()
    await_true(lambda: segment.lane_pid(1) == 0)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"directory": Path("/nowhere")}, r"/nowhere/config\.json cannot be read"),
        ({"stages": 99}, "runs in 4 to 7 stages"),
        ({"lane": 7}, "does not exist"),
        ({"segment_path": Path("/dev/shm/cuelight-none")}, "cuelight-none"),
    ],
)
def test_lane_that_cannot_start_says_why(
    change: dict[str, Any], sentence: str, segment: Segment, directory: Path
) -> None:
    options: dict[str, Any] = {"segment_path": segment.path, "lane": 0, "directory": directory, "stages": STAGES}
    with pytest.raises(Exception, match=sentence) as caught:
        start(**(options | change)).wait_ready(DEADLINE_S)
    assert "Traceback" not in str(caught.value)


def start(segment_path: Path, lane: int, directory: Path, stages: int) -> LaneProcess:
    process = LaneProcess(directory, stages=stages, blocks=8, threads=1)
    try:
        process.serve(segment_path, lane)
    except SegmentError:
        process.stop()
        raise
    return process
