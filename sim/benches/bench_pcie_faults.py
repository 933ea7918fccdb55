"""Random schedules of faults under requests whose lanes are pushed (docs/push.md): none is lost, nothing hangs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import cocotb
from cocotb.triggers import Timer
from cocotbext.pcie.core.tlp import CplStatus, TlpType

from cuelight import regmap
from cuelight.regmap import FallCause, Push, PushCommand

from .bench import STEPS
from .pcie.bench import PcieBench, bench
from .pcie.faults import WELL, Fates, doubled, late, lost, of_length, of_tag, poisoned, refused
from .pcie.ring_lane import Request
from .pcie.service import Service

_STRIKES = range(3, 7)
"""Faults of a schedule."""
_STRIKE_NS = (300, 1_000, 4_000, 8_000)
_FATES: tuple[Fates, ...] = (
    *(lost, doubled, poisoned, late(2_000), late(6_000), late(10_000)),
    *(refused(CplStatus.UR), refused(CplStatus.CA), of_length(0), of_length(2), of_tag(1), of_tag(2), of_tag(31)),
)
_WRITES = (TlpType.MEM_WRITE, TlpType.MEM_WRITE_64)


class Schedule:
    """One fault after the other, each for a while."""

    def __init__(self, service: Service, counts: Counter[str]) -> None:
        self.service, self.it, self.counts = service, service.it, counts
        self.random: Random = service.it.random
        self._ways: tuple[Callable[[], Any], ...] = (
            *(self.spoil_completions, self.spoil_completions, self.take_memory_away, self.lose_writes),
            *(self.lose_answers, self.stop_a_lane, self.command_poll, self.switch_mastering_off),
            *(self.reset_function, self.reset_link),
        )

    async def play(self) -> None:
        for _ in range(self.random.choice(_STRIKES)):
            way = self.random.choice(self._ways)
            self.counts[way.__name__] += 1
            await way()
            await Timer(self.random.choice(_STRIKE_NS), unit="ns")
            await self.heal()
        await self.service.settles()

    async def heal(self) -> None:
        faults, device = self.it.board.faults, self.it.board.device
        faults.completions, faults.loses, faults.gone = (lambda completion: WELL), (lambda packet: False), {}
        device.tells_timeouts = self.random.random() < 0.5
        for ring in self.service.rings:
            ring.port.alive = True
        if not device.function.bus_master_enable:
            await self.it.board.function.set_master()

    def _some(self) -> int:
        return self.random.randrange(self.it.params.lanes)

    async def spoil_completions(self) -> None:
        lane, fates, share = self._some(), self.random.choice(_FATES), self.random.choice((0.3, 1.0))
        self.it.board.faults.completions = lambda completion: (
            fates(completion) if completion.tag // 2 == lane and self.random.random() < share else WELL
        )

    async def take_memory_away(self) -> None:
        area = self.service.rings[self._some()].port.area
        self.it.board.faults.gone = {area: self.random.choice((CplStatus.UR, CplStatus.CA, None))}

    async def lose_writes(self) -> None:
        """Some of what is pushed, or of what lanes report."""
        completions = self.it.board.address(regmap.COMPLETION)
        areas = [ring.port.area for ring in self.service.rings] + [range(completions, completions + 0x2000)]

        def loses(packet: Any) -> bool:
            return packet.fmt_type in _WRITES and packet.address in area and self.random.random() < 0.4

        area = self.random.choice(areas)
        self.it.board.faults.loses = loses

    async def lose_answers(self) -> None:
        """The host reads all ones, once: what it then asks the device tells that it is there."""
        well = iter(range(self.random.randrange(8)))
        lost = iter((True,))
        self.it.board.faults.loses = lambda packet: (
            packet.fmt_type == TlpType.CPL_DATA and next(well, None) is None and next(lost, False)
        )

    async def stop_a_lane(self) -> None:
        self.service.rings[self._some()].port.alive = False
        await Timer(10_000, unit="ns")

    async def command_poll(self) -> None:
        await self.it.write32(self.service.rings[self._some()].port.at(Push.COMMAND), PushCommand.POLL)

    async def switch_mastering_off(self) -> None:
        await self.it.board.function.set_master(False)

    async def reset_function(self) -> None:
        await self.service.stop()
        await self.it.reset_function()
        await self.service.begin()

    async def reset_link(self) -> None:
        self.it.board.faults.down = True
        await Timer(self.random.choice((10, 500)), unit="ns")
        await self.service.stop()
        await self.it.reset_link()
        await self.service.begin()


@bench
async def schedules_of_faults(it: PcieBench) -> None:
    service, counts, asked = Service(it), Counter[str](), 0
    await service.begin()
    for number in range(int(os.environ[STEPS])):
        for _ in range(8):
            rows, left = it.random.choice((1, 20)), it.random.choice((2, 4, 8))
            service.waiting.append(Request(rows, left, group=it.random.randrange(it.params.lanes)))
            asked += left
        await Schedule(service, counts).play()
        asked += 2 * len(service.rings)
        assert len(service.finished) == (8 + len(service.rings)) * (number + 1)
        assert sum(request.said for request in service.finished) == asked
        for ring in service.rings:
            for cause in FallCause:
                offset = Push.FALLS + Push.FALLS_STRIDE * cause
                counts[cause.name] += await ring.port.count(offset)
        await service.stop()
        await it.reset_link()
        await service.begin()
    await service.stop()
    cocotb.log.info("%s", dict(counts))
