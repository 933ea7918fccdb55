"""Requests that a host has run on lanes that are pushed, whatever fails on the way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import cocotb
from cocotb.triggers import Timer

from cuelight import regmap
from cuelight.regmap import CommitKind, FifoRetireHead, PageSchedAttr, PageSchedCmd, Push, PushMode, RetireReason

from ..host import set_lane
from .bench import PcieBench
from .lane_host import LaneHost, Lost, sure
from .port import LanePort
from .ring_lane import Request, RingLane

__all__ = ["Service"]

_STAGES = 4
_OVERDUE_US, _STALL_US = 15, 8
_ECHO_NS = 6_000
"""COMPLETION_TIMEOUT and a PERIOD: a read whose completion was lost still makes its lane fall, once faults are over."""
_LOOK_NS = 120
_LIVING = 12
"""Requests that are on the device at once, at most."""
_BEYOND = 16
"""Dispatches of a lane that a lost device may have pushed since the last one that was executed."""
_PATIENCE_NS = 400_000
_OFFER = regmap.PAGE + regmap.Page.OFFER_ID


class Service:
    """A lane of each group, in PUSH whenever it is sound; requests go on after the loss of a device.

    Parameters
    ----------
    it
        The bench, just after a reset.
    """

    def __init__(self, it: PcieBench) -> None:
        self.it = it
        self.waiting: list[Request] = []
        self.finished: list[Request] = []
        self.living: dict[int, Request] = {}
        self.rings = [RingLane(LanePort(it, lane), self.living) for lane in range(it.params.lanes)]
        self.hosts = [LaneHost(ring) for ring in self.rings]
        for ring in self.rings:
            ring.port.settings |= {Push.OVERDUE: _OVERDUE_US, Push.STALL: _STALL_US}
        self._going = False
        self._tasks: list[Any] = []
        self._pops = 0

    async def begin(self) -> None:
        """Set a fresh device up and go on; what was not finished on the one before is admitted again."""
        it = self.it
        self.waiting += self.living.values()
        self.living.clear()
        self._pops = 0
        await it.write32(regmap.CONTROL + regmap.Control.STAGE_COUNT, _STAGES)
        for ring in self.rings:
            start = ring.expected + _BEYOND if it.resets > 1 else 1
            ring.begin(start)
            await set_lane(it, ring.port.lane, regmap.Lane.SEQUENCE, start)
        await it.settle()
        self._going = True
        self._tasks = [cocotb.start_soon(self._repeat(step)) for step in self._steps()]

    def _steps(self) -> list[Callable[[], Awaitable[object]]]:
        return [*(ring.step for ring in self.rings), *(host.step for host in self.hosts), self._admit, self._retire]

    async def _repeat(self, step: Callable[[], Awaitable[object]]) -> None:
        while self._going:
            try:
                if not await step():
                    await Timer(_LOOK_NS * self.it.random.randint(1, 4), unit="ns")
            except Lost:
                assert self.it.board.faults.down, "the device is there"
                return

    async def stop(self) -> None:
        """Before a device is reset, or once it is lost: everybody ends what he has begun."""
        self._going = False
        for task in self._tasks:
            await task
        # Behind all writes: one that still waited in the hard block would be carried out by the device after a reset.
        await self.it.board.load(_OFFER)
        self._check()

    async def until(self, what: Callable[[], Awaitable[bool]], why: str) -> None:
        """Wait until something is so."""
        for _ in range(_PATIENCE_NS // 1_000):
            if await what():
                return
            await Timer(1, unit="us")
        raise AssertionError(f"{why}: {self}")

    async def settles(self) -> None:
        """With all faults over, every request is finished, and then new ones are on every lane, all by pushing."""

        async def is_done() -> bool:
            return not self.waiting and not self.living

        async def is_pushed() -> bool:
            return all([await host.mode() == PushMode.PUSH for host in self.hosts])

        await self.until(is_done, "requests do not end")
        await Timer(_ECHO_NS, unit="ns")
        await self.until(is_pushed, "service does not come back to PUSH")
        before = [(await ring.port.count(Push.PUSHED), await ring.port.count(Push.FALLS)) for ring in self.rings]
        self.waiting += [Request(rows=3, left=2, group=ring.port.lane) for ring in self.rings]
        await self.until(is_done, "requests do not end in PUSH")
        for ring, (pushed, falls) in zip(self.rings, before, strict=True):
            assert await ring.port.count(Push.PUSHED) >= pushed + 2
            assert await ring.port.count(Push.FALLS) == falls

    def _check(self) -> None:
        """Every lane has executed what the device dispatched, in order, and nothing twice."""
        dispatched: list[list[tuple[int, int]]] = [[] for _ in self.rings]
        for event in self.it.seen(CommitKind.DISPATCH):
            dispatched[event.lane].append((event.id, event.stage))
        for ring, known in zip(self.rings, dispatched, strict=True):
            assert ring.executed == known[: len(ring.executed)], f"lane {ring.port.lane}"

    async def _admit(self) -> bool:
        """Admit the next request; if no other offer shows then, the command did not get there."""
        if not self.waiting or len(self.living) >= _LIVING:
            return False
        (offer,) = await sure(self.it, _OFFER)
        if not offer:
            return False
        request = self.waiting[0]
        # Prefilled again with what was said on another device.
        attributes = PageSchedAttr(automatic=1, rows=request.rows + request.said, group=request.group)
        self.living[offer] = request
        await self.it.write64(regmap.PAGE + regmap.Page.SCHED_ATTR, attributes.pack())
        await self.it.write64(regmap.PAGE + regmap.Page.SCHED_CMD, PageSchedCmd(id=offer, stage=0).pack())
        self.waiting.pop(0)
        return True

    async def _retire(self) -> bool:
        """Take the retirement that shows."""
        low, high = await sure(self.it, regmap.FIFO + regmap.Fifo.RETIRE_HEAD, 2)
        head = FifoRetireHead.unpack(high << 32 | low)
        if not head.valid or head.index != self._pops & 0xFFFF:
            return False
        request = self.living.pop(head.id)
        assert (head.reason, request.left) == (RetireReason.FINISHED, 0)
        self.finished.append(request)
        await self.it.write32(regmap.FIFO + regmap.Fifo.RETIRE_POP, self._pops)
        self._pops += 1
        return True

    def __str__(self) -> str:
        lanes = ", ".join(f"lane {ring.port.lane} expects {ring.expected}" for ring in self.rings)
        return f"{len(self.waiting)} wait, {len(self.living)} live, {len(self.finished)} are finished; {lanes}"
