"""The sequences that docs/verification.md shows as waveforms: a story between two quiet stretches in each bench."""

from __future__ import annotations

from cuelight import regmap
from cuelight.regmap import CommitKind, PageSchedAttr, PageSchedCmd, RetireReason

from .bench import Bench, bench
from .host import Host, set_group, set_lane
from .lane import Lane

QUIET = 64
"""Cycles of rest before a story and after it."""
_WORK = 30
"""Cycles that a lane works on a stage."""
VIP, LOW = 0, 2


async def hush(it: Bench) -> None:
    """Nothing goes on for a while; transactions follow each other without a pause from now on."""
    it.bus.pause = (0,)
    await it.rest()
    await it.run(QUIET)
    it.seen()


async def served(it: Bench, lane: Lane, finished: int = 0) -> None:
    """Take a dispatch, work, and report."""
    head = await lane.take()
    await it.run(_WORK)
    await lane.finish(head.sequence, finished)
    await lane.done(head.sequence)


@bench
async def admission(it: Bench) -> None:
    host = Host(it)
    request = await host.offer()
    await hush(it)
    await host.attributes(rows=40, tier=1)
    await host.command(request)
    for stage in (1, 2):
        await it.expect(CommitKind.DISPATCH, stage=stage)
    await hush(it)


@bench
async def next_stage(it: Bench) -> None:
    await set_lane(it, 0, regmap.Lane.DEPTH, 1)
    lane = Lane(it)
    await Host(it).join(rows=40)
    head = await lane.take()
    await hush(it)
    await lane.done(head.sequence)
    await it.expect(CommitKind.DISPATCH, stage=2)
    await served(it, lane)
    await it.expect(CommitKind.DISPATCH, stage=3)
    await hush(it)


@bench
async def dispatch_ahead(it: Bench) -> None:
    lane = Lane(it)
    await Host(it).join(rows=40)
    await hush(it)
    for stage in (1, 2):
        await served(it, lane)
        await it.expect(CommitKind.DISPATCH, stage=stage + 2)
    await hush(it)


@bench
async def loop_point(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    await set_group(it, 0, regmap.Group.SEATS, 2)
    leaves, _, joins = [await host.join(rows=10) for _ in range(3)]
    for _ in range(2):
        await lane.serve_pass()
    while not (head := await lane.take()).last:
        await lane.done(head.sequence)
    await hush(it)
    await lane.finish(head.sequence, 0b01)
    await lane.done(head.sequence)
    await it.expect(CommitKind.RETIRE, id=leaves, stage=RetireReason.FINISHED)
    await it.expect(CommitKind.SEAT, id=joins, stage=0)
    await it.expect(CommitKind.DISPATCH, stage=1)
    await hush(it)


@bench
async def second_pass(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    await it.write32(regmap.CONTROL + regmap.Control.STAGE_COUNT, 4)
    await set_lane(it, 0, regmap.Lane.DEPTH, 1)
    await host.join(rows=10, tier=LOW)
    await lane.serve_pass()
    low = await lane.take()
    vip = await host.offer()
    await hush(it)
    await host.attributes(rows=20, tier=VIP)
    await host.command(vip)
    await it.expect(CommitKind.FORM, stage=1, detail=20)
    await it.run(_WORK)
    await lane.done(low.sequence)
    for stage in (1, 2, 3):
        await it.expect(CommitKind.DISPATCH, stage=stage)
        await served(it, lane)
    await it.expect(CommitKind.LOOP_POINT, stage=1)
    await served(it, lane)
    await it.expect(CommitKind.LOOP_POINT, stage=0)
    await it.expect(CommitKind.FORM, detail=2)
    await hush(it)


@bench
async def park_and_credit(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    await it.write32(regmap.CONTROL + regmap.Control.STAGE_COUNT, 4)
    await set_lane(it, 0, regmap.Lane.DEPTH, 1)
    _, parks = await host.join(rows=10), await host.join(rows=10)
    for _ in range(2):
        await lane.serve_pass()
    head = await lane.take()
    await hush(it)
    await host.park(parks)
    await it.expect(CommitKind.PARK, id=parks, stage=2)
    await it.run(_WORK)
    await lane.done(head.sequence)
    await served(it, lane)
    await it.expect(CommitKind.PARKED, stage=1)
    await served(it, lane)
    await host.credit(parks)
    await it.expect(CommitKind.CREDIT, id=parks, stage=2)
    await served(it, lane)
    await it.expect(CommitKind.FORM, detail=2)
    await hush(it)


@bench
async def halves(it: Bench) -> None:
    host = Host(it)
    first = await host.offer()
    command, attributes = host.at(regmap.Page.SCHED_CMD), host.at(regmap.Page.SCHED_ATTR)
    low, high = 0x0F, 0xF0
    await hush(it)
    value = PageSchedCmd(id=first, stage=3).pack()
    await it.write(command, value, high)
    await it.run(6)
    await it.write(command, value, low)
    await it.expect(CommitKind.ADMIT, id=first, detail=3)
    await it.run(6)
    value = PageSchedCmd(id=first, stage=5).pack()
    await it.write(command, value, high)
    await it.run(6)
    await it.write(attributes, PageSchedAttr().pack())
    await it.run(6)
    await it.write(command, value, low)
    await hush(it)
    assert not it.seen(CommitKind.RETARGET, CommitKind.REJECT)


@bench
async def stale_pop(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    pop = regmap.FIFO + regmap.Fifo.RETIRE_POP
    requests = [await host.join(rows=10) for _ in range(2)]
    await lane.serve_pass()
    await lane.serve_pass(finished=0b11)
    for request in requests:
        await it.expect(CommitKind.RETIRE, id=request)
    await hush(it)
    await it.write32(pop, 0)
    await it.expect(CommitKind.FREE, id=requests[0])
    # A host that did not hear that it was over tries again.
    await it.write32(pop, 0)
    await it.expect(CommitKind.POP_IGNORED, detail=0)
    await it.write32(pop, 1)
    await it.expect(CommitKind.FREE, id=requests[1])
    await hush(it)
