"""Resets in any state: of the device by its reset line, and of a group by GROUP_RESET."""

from __future__ import annotations

import cocotb

from cuelight import regmap
from cuelight.regmap import CommitKind, PageReqStatus, RetireReason

from .bench import Bench, bench
from .host import Host, set_group, set_lane
from .lane import Lane

GROUP_RESET = regmap.CONTROL + regmap.Control.GROUP_RESET


async def fill(it: Bench) -> None:
    """Requests of all kinds, queues, passes, rejects and half commands."""
    host = Host(it)
    await it.write32(regmap.CONTROL + regmap.Control.PAGE_ENABLE, 0x0F)
    await set_group(it, 0, regmap.Group.SEATS, 3)
    await set_group(it, 1, regmap.Group.KV_BLOCKS, 100)
    await set_lane(it, 1, regmap.Lane.SEQUENCE, 0x7777)
    for number in range(10):
        await host.join(rows=it.random.choice((1, 40, 900)), group=number % 2, tier=it.random.randrange(4))
    await host.done(await host.admit())
    await host.command(0)
    await host.admit()
    for page in range(4):
        await it.write16(Host(it, page).at(regmap.Page.SCHED_CMD) + 2, 0xABCD)
        await it.write16(Host(it, page).at(regmap.Page.SCHED_ATTR) + 4, 0xABCD)


async def live_again(it: Bench) -> None:
    """The life of a request from the first to the last step on a device that must know nothing of before."""
    host, lane = Host(it), Lane(it)
    await it.compare()
    assert await host.status() == PageReqStatus(active=0, slot=0)
    assert await it.read32(regmap.CONTROL + regmap.Control.PAGE_ENABLE) == 1
    request = await host.join(rows=1)
    assert request == 1 << 16
    assert (await lane.head()).sequence == 1
    await lane.serve_pass()
    await lane.serve_pass(finished=1)
    await it.expect(CommitKind.RETIRE, id=request, stage=RetireReason.FINISHED)
    await it.write32(regmap.FIFO + regmap.Fifo.RETIRE_POP, 0)
    await it.expect(CommitKind.FREE, id=request)


@bench
async def the_reset_line_at_rest(it: Bench) -> None:
    await fill(it)
    await it.compare()
    await it.reset()
    await live_again(it)


@bench
async def the_reset_line_at_any_moment(it: Bench) -> None:
    for _ in range(6):
        await fill(it)
        lane = Lane(it, it.random.randrange(2))
        for _ in range(it.random.randrange(6)):
            await lane.serve()
        await it.run(it.random.randrange(60))
        await it.reset()
    await live_again(it)


@bench
async def the_reset_line_in_the_middle_of_a_transaction(it: Bench) -> None:
    host = Host(it)
    for cycles in range(1, 12):
        offered = await host.offer()
        await host.attributes(rows=1)
        it.bus.pause = (0,)
        task = cocotb.start_soon(host.command(offered))
        await it.run(cycles)
        if not task.done():
            task.cancel()
        await it.reset()
    await live_again(it)


@bench
async def the_reset_line_in_the_middle_of_the_sweep(it: Bench) -> None:
    """Offers only begin once every slot was made free; a reset before that begins the sweep anew."""
    for cycles in (1, 2, 10, it.params.slots - 1, it.params.slots, it.params.slots + 1):
        await it.run(cycles)
        await it.reset()
    await live_again(it)


@bench
async def the_first_transaction_waits_for_the_sweep(it: Bench) -> None:
    host = Host(it)
    it.bus.pause = (0,)
    await host.status()
    assert it.bus.accepted_at >= it.params.slots
    assert await host.admit() == 1 << 16


@bench
async def a_group_without_requests(it: Bench) -> None:
    for group in range(it.params.lanes):
        await it.write32(GROUP_RESET, group)
        await it.expect(CommitKind.GROUP_RESET, lane=group)
        await it.expect(CommitKind.GROUP_READY, lane=group)


@bench
async def a_group_loses_seats_in_order_then_queues_by_tier(it: Bench) -> None:
    host = Host(it)
    await set_group(it, 0, regmap.Group.SEATS, 3)
    await set_group(it, 0, regmap.Group.KV_BLOCKS, 50)
    seated = [await host.join(rows=1, kv_blocks=5) for _ in range(3)]
    queued = {tier: [await host.join(rows=1, tier=tier, kv_blocks=5) for _ in range(2)] for tier in (2, 0, 3)}
    aside = await host.join(rows=1)
    await host.park(aside)
    other = await host.join(rows=1, group=1)
    await Lane(it, 1).head()
    await it.rest()
    it.seen()
    await it.write32(GROUP_RESET, 0)
    await it.expect(CommitKind.GROUP_RESET, lane=0)
    for seat, request in enumerate(seated):
        await it.expect(CommitKind.RETIRE, id=request, stage=RetireReason.LANE_LOST, detail=seat)
    for request in (request for tier in (0, 2, 3) for request in queued[tier]):
        await it.expect(CommitKind.RETIRE, id=request, stage=RetireReason.LANE_LOST, detail=1 << 8)
    await it.expect(CommitKind.GROUP_READY, lane=0)
    assert (await Lane(it, 0).look()).sequence == 0
    assert await it.read32(regmap.GROUP + regmap.Group.KV_FREE) == 50
    # The one that was set aside stays, and the other group never noticed.
    await host.credit(aside)
    await it.expect(CommitKind.SEAT, id=aside, stage=0)
    await Lane(it, 1).serve_pass()
    await Lane(it, 1).serve_pass(finished=1)
    await it.expect(CommitKind.RETIRE, id=other, stage=RetireReason.FINISHED)


@bench
async def sequences_go_on_after_a_group_reset(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    await host.join(rows=1)
    await lane.take()
    lost = (await lane.take()).sequence
    await it.write32(GROUP_RESET, 0)
    await it.expect(CommitKind.GROUP_READY)
    await lane.done(lost - 1)
    await it.expect(CommitKind.COMPLETE_IGNORED)
    await lane.done(lost)
    await it.expect(CommitKind.COMPLETE_IGNORED)
    await host.join(rows=1)
    assert (await lane.head()).sequence == lost + 1


@bench
async def a_report_begun_before_a_group_reset_is_forgotten(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    lost = await host.join(rows=1)
    await lane.finish((await lane.take()).sequence, 1)
    await it.write32(GROUP_RESET, 0)
    await it.expect(CommitKind.RETIRE, id=lost, stage=RetireReason.LANE_LOST)
    await it.expect(CommitKind.GROUP_READY)
    # In the same seat.
    request = await host.join(rows=1)
    await lane.serve_pass()
    assert it.seen(CommitKind.RETIRE) == []
    await lane.serve_pass(finished=1)
    await it.expect(CommitKind.RETIRE, id=request, stage=RetireReason.FINISHED)


@bench
async def a_second_group_reset_changes_nothing(it: Bench) -> None:
    host = Host(it)
    requests = [await host.join(rows=1) for _ in range(8)]
    it.bus.pause = (0,)
    for _ in range(3):
        await it.write32(GROUP_RESET, 0)
    await it.rest()
    events = it.seen(CommitKind.GROUP_RESET, CommitKind.RETIRE, CommitKind.GROUP_READY)
    assert [event.kind for event in events].count(CommitKind.GROUP_RESET) == 3
    assert [event.id for event in events if event.kind == CommitKind.RETIRE] == requests
    assert [event.kind for event in events].count(CommitKind.GROUP_READY) == 1


@bench
async def a_group_reset_meets_every_cycle_from_the_last_report_to_the_next_dispatch(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    for cycles in range(0, 48, 3):
        requests = [await host.join(rows=rows) for rows in (1, 1, 40)]
        await lane.serve_pass()
        while not (head := await lane.take()).last:
            await lane.done(head.sequence)
        it.bus.pause = (0,)
        await lane.finish(head.sequence, 0b010)
        await lane.done(head.sequence)
        await it.run(cycles)
        await it.write32(GROUP_RESET, 0)
        await it.expect(CommitKind.GROUP_RESET)
        await it.expect(CommitKind.GROUP_READY)
        it.bus.pause = (0, 1, 3)
        await it.rest()
        for _ in requests:
            await it.write32(regmap.FIFO + regmap.Fifo.RETIRE_POP, it.golden.slots.retire_index)
            await it.settle()
        assert (await host.status()).active == 0
