"""Heartbeat reads whose completions go astray: why a lane falls, and that nothing comes of it later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cocotb
from cocotb.triggers import Timer
from cocotbext.pcie.core.tlp import CplStatus

from cuelight import regmap
from cuelight.regmap import CommitKind, FallCause, Push, PushMode

from .host import Host
from .lane import Lane
from .pcie.bench import PcieBench, bench
from .pcie.faults import WELL, Fate, Fates, doubled, late, lost, of_length, of_tag, poisoned, refused
from .pcie.port import LanePort, pushed

_LATE_NS, _TOO_LATE_NS = 6_000, 10_000
"""Beyond what the device waits for, and beyond what the hard block waits for."""
_TAGS = {"other": 1, "another_lanes": 2, "nobodys": 31}
_FALLS: dict[str, tuple[Fates, FallCause]] = {
    "lost": (lost, FallCause.TIMEOUT),
    "late": (late(_LATE_NS), FallCause.TIMEOUT),
    "too_late": (late(_TOO_LATE_NS), FallCause.TIMEOUT),
    "poisoned": (poisoned, FallCause.POISONED),
    "unsupported": (refused(CplStatus.UR), FallCause.UNSUPPORTED),
    "aborted": (refused(CplStatus.CA), FallCause.ABORTED),
    "empty": (of_length(0), FallCause.MALFORMED),
    "long": (of_length(2), FallCause.MALFORMED),
    **{f"tag_{name}": (of_tag(tag), FallCause.TIMEOUT) for name, tag in _TAGS.items()},
}


def once(fates: Fates, lane: int = 0) -> Fates:
    """Only the next completion for a lane has these fates."""
    struck: list[int] = []

    def fate(completion: Any) -> Sequence[Fate]:
        if struck or completion.tag // 2 != lane:
            return WELL
        struck.append(completion.tag)
        return fates(completion)

    return fate


async def falls_and_returns(it: PcieBench, port: LanePort, other: LanePort, cause: FallCause, generation: int) -> None:
    """The lane falls for this cause, is served by polling, and is pushed again; the other lane is never disturbed."""
    lane = Lane(it)
    status = await port.reach(PushMode.POLL)
    assert status.cause == cause
    offered = await it.expect(CommitKind.REOFFERED, lane=0)
    assert (await lane.serve()).sequence == offered.id
    await port.push(generation)
    assert await port.count(Push.FALLS) == generation - 1
    await port.arrives(offered.id + 1)
    assert (await other.status()).mode == PushMode.PUSH
    assert await other.count(Push.FALLS) == 0


@bench
async def a_read_that_ends_badly_makes_its_lane_fall(it: PcieBench) -> None:
    """One after the other: each is offered again, served once, and not fatal."""
    port, other = await pushed(it), await pushed(it, 1)
    await Host(it).join(rows=20)
    await port.arrives(1)
    for number, (name, (fates, cause)) in enumerate(_FALLS.items()):
        it.board.faults.completions = once(fates)
        await falls_and_returns(it, port, other, cause, generation=number + 2)
        cocotb.log.info("%s: %s", name, cause.name)
    assert it.board.faults.counts["completions"] == len(_FALLS)


@bench
async def the_hard_blocks_own_timeout_makes_a_lane_fall(it: PcieBench) -> None:
    """It comes long before that of the device, in a descriptor of which nothing else is valid."""
    it.board.device.timeout_ns, it.board.device.tells_timeouts = 2_000, True
    port, other = await pushed(it), await pushed(it, 1)
    await it.write32(port.at(Push.COMPLETION_TIMEOUT), 1_000_000)
    await Host(it).join(rows=20)
    await port.arrives(1)
    it.board.faults.completions = once(lost)
    await falls_and_returns(it, port, other, FallCause.TIMEOUT, generation=2)


@bench
async def completions_that_come_twice_are_counted(it: PcieBench) -> None:
    port = await pushed(it)
    it.board.faults.completions = doubled
    await Timer(6_000, unit="ns")
    assert (await port.status()).mode == PushMode.PUSH
    assert await port.count(Push.LATE) >= 3


@bench
async def a_late_completion_meets_a_tag_that_rests(it: PcieBench) -> None:
    """It is counted, whether the hard block still knows the request or not, and says nothing of the read since."""
    port = LanePort(it)
    port.settings[Push.REST] = 30
    it.board.device.timeout_ns = 15_000
    await port.push()
    for number, delay_ns in enumerate((12_000, 18_000), 1):
        it.board.faults.completions = once(late(delay_ns))
        assert (await port.reach(PushMode.POLL)).resting == 1
        await port.push(number + 1)
        assert await port.count(Push.LATE) == number - 1
        await Timer(delay_ns - 4_000, unit="ns")
        status = await port.status()
        assert (status.mode, status.resting) == (PushMode.PUSH, 1)
        assert await port.count(Push.LATE) == number
        await Timer(40_000 - delay_ns, unit="ns")
        assert (await port.status()).resting == 0


@bench
async def a_late_completion_meets_a_tag_that_is_used_again(it: PcieBench) -> None:
    """Where a host has set REST too short: it is taken for the answer, the true one is late, no dispatch suffers."""
    port, lane = LanePort(it), Lane(it)
    port.settings[Push.REST] = 1
    await Host(it).join(rows=20)
    held: list[Any] = []

    def hold(completion: Any) -> Sequence[Fate]:
        held.append(completion)
        return ()

    await port.push()
    first = await port.arrives(1)
    it.board.faults.completions = hold
    await port.reach(PushMode.POLL)
    await Timer(10_000, unit="ns")
    it.board.faults.completions = lambda completion: WELL
    await port.push(2)
    (old,) = held
    before = await port.count(Push.LATE)

    def overtake(completion: Any) -> Sequence[Fate]:
        """The old one comes in place of the true one, which is late."""
        if completion.tag != old.tag:
            return WELL
        it.board.faults.completions = lambda completion: WELL
        return (Fate(changes={"data": bytearray(old.data)}), Fate(400))

    it.board.faults.completions = overtake
    await Timer(3_000, unit="ns")
    assert await port.count(Push.LATE) == before + 1
    assert (await port.status()).mode == PushMode.PUSH
    await lane.done(first.sequence)
    await it.expect(CommitKind.COMPLETE, id=first.sequence)
    await port.arrives(first.sequence + 2)
    assert await it.read32(regmap.COUNTERS + regmap.Counters.COMPLETIONS_IGNORED) == 0
