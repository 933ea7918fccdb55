"""The host's own pump on a board that may master the bus, turned by hand or by a thread."""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from cuelight import regmap
from cuelight.lanes.port import LanePort
from cuelight.lanes.types import Dispatch
from cuelight.native.pump import pump_library
from cuelight.regmap import Counters, PushMode
from cuelight.segment import Segment
from cuelight.transports.push import Pushing, PushTimes

from .push_board import SHAPE, WAIT_S, PushBoard

__all__ = ["TIMES", "PushHost", "push_host"]

TIMES = PushTimes(
    period_s=20e-6, completion_timeout_s=60e-6, rest_s=200e-6, stall_s=4000.0, overdue_s=4000.0, beats=2, pause_s=0.0
)
"""A microsecond has two cycles: nothing is ever overdue."""
_TURN_NS, _CLOSED = 1_000_000, -10
_FOREVER_NS = int(1e9 * 3600)


class PushHost:
    """A pump which nobody runs, and a lane of each group which nobody serves.

    Parameters
    ----------
    times
        How long the board waits.
    """

    def __init__(self, times: PushTimes) -> None:
        self.board = PushBoard()
        self.segment = Segment.create(SHAPE)
        self.library = pump_library()
        access = self.board.access
        self._pump = self.library.cuelight_pump_open(
            *(access.context, access.read, access.write, self.segment.descriptor, SHAPE.size),
            *(SHAPE.lanes, SHAPE.seats, SHAPE.ports, SHAPE.port_stride, 0),
        )
        assert self._pump
        self._check(self.library.cuelight_pump_start(self._pump))
        self.pushing = Pushing(self.board, self.board, self.segment, self.library, self._pump, times)
        self.lanes = [LanePort(self.segment.path, lane) for lane in range(SHAPE.lanes)]
        self._served = False

    def close(self) -> None:
        """To be called once nobody runs the pump."""
        self.library.cuelight_pump_free(self._pump)
        for lane in self.lanes:
            lane.close()
        self.segment.close()
        self.board.close()

    # ------------------------------------------------------------------------------------------- the pump

    def remind(self) -> None:
        """One reminder, and nothing else."""
        self._check(self.library.cuelight_pump_run(self._pump, 0))

    def turn(self) -> None:
        """A reminder and some rounds."""
        self._check(self.library.cuelight_pump_run(self._pump, _TURN_NS))
        self.board.run(20)

    def until(self, what: Callable[[], bool], why: str) -> None:
        """Turn the pump until something is so, unless a thread runs it."""
        if self._served:
            return self.board.wait(what, why)
        deadline = time.monotonic() + WAIT_S
        while not what():
            assert time.monotonic() < deadline, why
            self.turn()

    @contextlib.contextmanager
    def serving(self, *, listening: bool = False) -> Iterator[None]:
        """Let a thread run the pump, with a single reminder at its begin; the pump is of no use afterwards.

        Where another one is `listening` to interrupts, the pump has looked for all that they tell before this is
        entered.
        """
        ended: list[int] = []
        works: list[Callable[[], object]] = [
            lambda: ended.append(self.library.cuelight_pump_run(self._pump, _FOREVER_NS))
        ]
        if listening:
            self.library.cuelight_pump_listen(self._pump, (ctypes.c_int * 0)(), 0, 1)
            works.append(self.pushing.listen)
        threads = [threading.Thread(target=work, daemon=True) for work in works]
        for thread in threads:
            thread.start()
        self._served = True
        try:
            self.go_round()
            yield
        finally:
            self.library.cuelight_pump_close(self._pump)
            for thread in threads:
                thread.join(WAIT_S)
        assert ended == [_CLOSED]

    def go_round(self) -> None:
        """Wait until the thread that runs the pump has gone round once from begin to end."""
        for _ in range(2):
            self._check(self.library.cuelight_pump_beat(self._pump, int(1e3 * WAIT_S)))

    def write32(self, offset: int, value: int) -> None:
        """As users of a transport do."""
        self._check(self.library.cuelight_pump_write(self._pump, offset, 4, value))

    def _check(self, status: int) -> None:
        if status:
            self.board.access.fail(status)

    # ------------------------------------------------------------------------------------------- delivery

    def mode(self, lane: int = 0) -> PushMode:
        """A lane's mode, as far as the pump has seen it."""
        return PushMode(self.library.cuelight_pump_mode(self._pump, lane))

    def probe(self, generation: int = 1, lane: int = 0) -> None:
        self._check(self.library.cuelight_pump_probe(self._pump, lane, generation))

    def both(self, mode: PushMode, lane: int = 0) -> bool:
        """Whether the pump and the board agree on a lane's mode."""
        return self.mode(lane) == self.board.mode(lane) == mode

    def push(self, generation: int = 1, lane: int = 0) -> None:
        """Lead a lane from POLL to PUSH."""
        self.probe(generation, lane)
        self.until(lambda: self.both(PushMode.PUSH, lane), "the lane does not come to PUSH")

    # ------------------------------------------------------------------------------------------- lanes

    def take(self, lane: int = 0) -> Dispatch:
        """The next dispatch that the lane may run, the pump being turned until it is there."""
        found: list[Dispatch] = []

        def looks() -> bool:
            dispatch = self.lanes[lane].wait(0)
            if dispatch is not None:
                found.append(dispatch)
            return bool(found)

        self.until(looks, "no dispatch comes")
        return found[0]

    def run(self, count: int, lane: int = 0) -> list[Dispatch]:
        """Have a lane run so many dispatches, one by one."""
        dispatches = []
        for _ in range(count):
            dispatches.append(self.take(lane))
            self.lanes[lane].complete(dispatches[-1].sequence)
        return dispatches

    def oldest(self, lane: int = 0) -> int:
        """The oldest dispatch that the device has for a lane."""
        return self.board.read32(regmap.LANE + regmap.LANE_STRIDE * lane + regmap.Lane.OLDEST)

    def ignored(self) -> int:
        """Completions that the device has ignored."""
        return self.board.read32(regmap.COUNTERS + Counters.COMPLETIONS_IGNORED)

    def port(self, lane: int = 0) -> bytes:
        """A lane's port as it is now, but for its tokens."""
        return self.segment.port_memory(lane).tobytes()[: regmap.LanePort.SIZE]


@contextlib.contextmanager
def push_host(**times: Any) -> Iterator[PushHost]:
    """A host, whose board waits as `TIMES` says, but for what is given."""
    host = PushHost(replace(TIMES, **times))
    try:
        yield host
    finally:
        host.close()
