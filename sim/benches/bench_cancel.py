"""Cancels: the head, the tail and the only element of a queue, seats in a pass, and twice."""

from __future__ import annotations

from cuelight import regmap
from cuelight.regmap import CommitKind, RejectReason, RetireReason

from .bench import Bench, bench
from .host import Host, set_group
from .lane import Lane


async def queue_up(it: Bench, count: int, tier: int = 0) -> list[int]:
    """Requests queued behind one that has the only seat."""
    await set_group(it, 0, regmap.Group.SEATS, 1)
    await Host(it).join(rows=1)
    return [await Host(it).join(rows=1, tier=tier) for _ in range(count)]


async def leave_queue(it: Bench, request: int) -> None:
    await Host(it).cancel(request)
    await it.expect(CommitKind.CANCEL, id=request, stage=1)
    await it.expect(CommitKind.RETIRE, id=request, stage=RetireReason.CANCELLED, detail=1 << 8)


async def seated_in_turn(it: Bench, requests: list[int]) -> None:
    """Finish whoever sits, again and again; the others must follow in this order."""
    lane = Lane(it)
    for request in requests:
        await lane.serve_pass(finished=1)
        await it.expect(CommitKind.SEAT, id=request, stage=0)
    await lane.serve_pass(finished=1)
    await it.rest()
    assert not it.seen(CommitKind.SEAT)


@bench
async def the_only_one_in_the_queue(it: Bench) -> None:
    (request,) = await queue_up(it, 1)
    await leave_queue(it, request)
    late = await Host(it).join(rows=1)
    await seated_in_turn(it, [late])


@bench
async def the_head_of_the_queue(it: Bench) -> None:
    requests = await queue_up(it, 4)
    await leave_queue(it, requests[0])
    await seated_in_turn(it, requests[1:])


@bench
async def the_tail_of_the_queue(it: Bench) -> None:
    requests = await queue_up(it, 4)
    await leave_queue(it, requests[3])
    late = await Host(it).join(rows=1)
    await seated_in_turn(it, [*requests[:3], late])


@bench
async def the_middle_of_the_queue(it: Bench) -> None:
    requests = await queue_up(it, 5)
    for index in (2, 1, 3):
        await leave_queue(it, requests[index])
    await seated_in_turn(it, [requests[0], requests[4]])


@bench
async def all_of_the_queue_in_any_order(it: Bench) -> None:
    requests = await queue_up(it, 9)
    it.random.shuffle(requests)
    for request in requests:
        await leave_queue(it, request)
    await seated_in_turn(it, [])


@bench
async def queues_of_the_tiers_are_apart(it: Bench) -> None:
    await queue_up(it, 0)
    queues = {tier: [await Host(it).join(rows=1, tier=tier) for _ in range(3)] for tier in (3, 1, 0, 2)}
    await leave_queue(it, queues[1].pop(0))
    await leave_queue(it, queues[3].pop(2))
    await leave_queue(it, queues[0].pop(1))
    await seated_in_turn(it, [request for tier in range(4) for request in queues[tier]])


@bench
async def a_seat_in_a_pass_and_twice(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    first, second = await host.join(rows=1), await host.join(rows=1)
    await lane.serve_pass()
    await lane.serve()
    await host.cancel(second)
    await it.expect(CommitKind.CANCEL, id=second, stage=2)
    await host.cancel(second)
    await it.expect(CommitKind.CANCEL, id=second, stage=3)
    await it.settle()
    assert not it.seen(CommitKind.RETIRE)
    await lane.serve_pass()
    await it.expect(CommitKind.RETIRE, id=second, stage=RetireReason.CANCELLED, detail=1)
    await host.cancel(second)
    await it.expect(CommitKind.REJECT, id=second, stage=RejectReason.ALREADY_RETIRED)
    await host.cancel(first)
    await it.expect(CommitKind.CANCEL, id=first, stage=2)


@bench
async def a_seat_that_is_reported_finished_and_cancelled_has_finished(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    request = await host.join(rows=1)
    await lane.serve(finished=1)
    await host.cancel(request)
    await it.expect(CommitKind.CANCEL, id=request, stage=2)
    await lane.serve_pass()
    await it.expect(CommitKind.RETIRE, id=request, stage=RetireReason.FINISHED)


@bench
async def everybody_in_a_pass(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    requests = [await host.join(rows=it.random.choice((1, 9))) for _ in range(it.params.seats)]
    await lane.serve_pass()
    await lane.head()
    for request in it.random.sample(requests, len(requests)):
        await host.cancel(request)
        await it.expect(CommitKind.CANCEL, id=request, stage=2)
    await lane.serve_pass()
    for seat, request in enumerate(requests):
        await it.expect(CommitKind.RETIRE, id=request, stage=RetireReason.CANCELLED, detail=seat)
    await it.rest()
    assert (await lane.look()).sequence == 0


@bench
async def a_seat_while_no_pass_is_alive(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    request = await host.join(rows=1, stepped=1)
    await lane.serve_pass()
    await it.expect(CommitKind.PARKED)
    await host.cancel(request)
    await it.expect(CommitKind.CANCEL, id=request, stage=2)
    await it.expect(CommitKind.RETIRE, id=request, stage=RetireReason.CANCELLED, detail=0)


@bench
async def a_cancel_meets_every_cycle_from_the_last_report_to_the_next_dispatch(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    for cycles in range(48):
        requests = [await host.join(rows=rows) for rows in (1, 1, 40)]
        await lane.serve_pass()
        while not (head := await lane.take()).last:
            await lane.done(head.sequence)
        it.bus.pause = (0,)
        await lane.done(head.sequence)
        await it.run(cycles)
        await host.cancel(requests[1])
        await it.expect(CommitKind.CANCEL, id=requests[1], stage=2)
        it.bus.pause = (0, 1, 3)
        for request in (requests[0], requests[2]):
            await host.cancel(request)
        while it.golden.groups[0].seated:
            await it.rest()
            if it.golden.groups[0].seated:
                await lane.serve()
        assert {event.id for event in it.seen(CommitKind.RETIRE)} <= set(requests)
        for _ in requests:
            await it.write32(regmap.FIFO + regmap.Fifo.RETIRE_POP, it.golden.slots.retire_index)
            await it.settle()
