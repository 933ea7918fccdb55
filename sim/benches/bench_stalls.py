"""Lanes and hosts that stall: late pops, late completions, and pauses on the bus, at random."""

from __future__ import annotations

import cocotb

from cuelight import regmap
from cuelight.regmap import CommitKind, FifoRetireHead, GroupOccupancy, RetireReason

from .bench import Bench, bench
from .host import Host, set_group, set_lane
from .lane import Lane

RETIRE_HEAD, RETIRE_POP = regmap.FIFO + regmap.Fifo.RETIRE_HEAD, regmap.FIFO + regmap.Fifo.RETIRE_POP
LONGEST_STALL = 400


async def stall(it: Bench) -> None:
    """Mostly short, now and then long."""
    await it.run(it.random.choice((0, 0, 0, 3, 20, it.random.randrange(LONGEST_STALL))))


async def lane_with_stalls(it: Bench, number: int, end: list[bool]) -> list[int]:
    """Serves until it is told to end; takes dispatches late, or not at all, and finishes seats at random."""
    lane, served = Lane(it, number), []
    while not end:
        head = await lane.look()
        if not head.sequence:
            await it.run(30)
            continue
        if it.random.random() < 0.8:
            await stall(it)
            await lane.pop(head.sequence)
        await stall(it)
        if head.last and it.random.random() < 0.5:
            await lane.finish(head.sequence, it.random.getrandbits(it.params.seats))
        await lane.done(head.sequence)
        served.append(head.sequence)
        if it.random.random() < 0.3:
            await lane.pop(head.sequence)
    return served


async def host_with_stalls(it: Bench, page: int, count: int) -> list[int]:
    host, mine = Host(it, page), []
    for _ in range(count):
        group = it.random.randrange(it.params.lanes)
        request = await host.offer()
        await host.attributes(rows=it.random.choice((1, 5, 60, 300)), group=group, tier=it.random.randrange(4))
        await stall(it)
        await host.command(request)
        mine.append(request)
        await it.settle()
        if it.random.random() < 0.2:
            await stall(it)
            await host.cancel(it.random.choice(mine))
    return mine


async def reaper_with_stalls(it: Bench, count: int) -> list[int]:
    """Pops retirements until so many have come."""
    popped: list[int] = []
    while len(popped) < count:
        await stall(it)
        head = FifoRetireHead.unpack(await it.peek64(RETIRE_HEAD))
        if head.valid and head.index == len(popped) & 0xFFFF:
            await it.write32(RETIRE_POP, len(popped))
            popped.append(head.id)
            await it.settle()
        else:
            await it.run(50)
    return popped


@bench
async def everybody_stalls_and_nothing_is_lost(it: Bench) -> None:
    pages, each = 3, 8
    await it.write32(regmap.CONTROL + regmap.Control.PAGE_ENABLE, (1 << pages) - 1)
    for group in range(it.params.lanes):
        await set_group(it, group, regmap.Group.SEATS, 5)
        await set_lane(it, group, regmap.Lane.DEPTH, 1 + group % 2)
    end: list[bool] = []
    lanes = [cocotb.start_soon(lane_with_stalls(it, number, end)) for number in range(it.params.lanes)]
    hosts = [cocotb.start_soon(host_with_stalls(it, page, each)) for page in range(pages)]
    reaper = cocotb.start_soon(reaper_with_stalls(it, pages * each))
    admitted = [request for host in hosts for request in await host]
    popped = await reaper
    end.append(True)
    for lane in lanes:
        served = await lane
        assert served == list(range(1, len(served) + 1))
    assert sorted(popped) == sorted(admitted)
    await it.rest()
    assert (await Host(it).status()).active == 0
    for group in range(it.params.lanes):
        offset = regmap.GROUP + group * regmap.GROUP_STRIDE + regmap.Group.OCCUPANCY
        assert GroupOccupancy.unpack(await it.read64(offset)) == GroupOccupancy()


@bench
async def a_lane_that_takes_nothing_holds_nobody_else_up(it: Bench) -> None:
    host = Host(it)
    await host.join(rows=1, group=0)
    other = await host.join(rows=1, group=1)
    await Lane(it, 0).head()
    lane = Lane(it, 1)
    for _ in range(5):
        await lane.serve_pass()
    await lane.serve_pass(finished=1)
    await it.expect(CommitKind.RETIRE, id=other, stage=RetireReason.FINISHED)
    assert (await Lane(it, 0).look()).sequence == 1
    assert await it.read32(regmap.LANE + regmap.Lane.SEQUENCE) == 3


@bench
async def no_more_than_depth_are_outstanding(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    for depth in (1, 2):
        await set_lane(it, 0, regmap.Lane.DEPTH, depth)
        await it.expect(CommitKind.CONFIG)
        request = await host.join(rows=1)
        for _ in range(20):
            await it.rest()
            dispatched = len(it.seen(CommitKind.DISPATCH))
            assert dispatched <= depth
            heads = [await lane.take()]
            if depth == 2 and (await lane.look()).sequence:
                heads.append(await lane.take())
            await it.rest()
            assert (await lane.look()).sequence == 0
            await lane.done(heads[0].sequence)
            await it.expect(CommitKind.COMPLETE, id=heads[0].sequence)
            if len(heads) == 2:
                await lane.done(heads[1].sequence)
                await it.expect(CommitKind.COMPLETE, id=heads[1].sequence)
        await host.cancel(request)
        while (await lane.look()).sequence:
            await lane.serve()
            await it.rest()
