"""The life of an automatic request, transition by transition."""

from __future__ import annotations

from cuelight import regmap
from cuelight.regmap import CommitKind, FifoRetireHead, GroupOccupancy, RetireReason

from .bench import Bench, bench
from .details import chunk, plan
from .host import Host, set_group
from .lane import Lane

RETIRE_HEAD, RETIRE_POP = regmap.FIFO + regmap.Fifo.RETIRE_HEAD, regmap.FIFO + regmap.Fifo.RETIRE_POP


async def occupancy(it: Bench, group: int = 0) -> GroupOccupancy:
    await it.rest()
    offset = regmap.GROUP + group * regmap.GROUP_STRIDE + regmap.Group.OCCUPANCY
    return GroupOccupancy.unpack(await it.read64(offset))


@bench
async def free_queued_seated_prefilling_decoding_retired_free(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    await set_group(it, 0, regmap.Group.KV_BLOCKS, 10)
    request = await host.join(rows=300, kv_blocks=4)
    assert await it.read32(regmap.GROUP + regmap.Group.KV_FREE) == 6
    await it.expect(CommitKind.SEAT, id=request, stage=0, detail=0)
    await it.expect(CommitKind.PLAN, id=1, detail=plan(0))
    await it.expect(CommitKind.CHUNK, id=request, stage=0, detail=chunk(0, 256, first=True))
    await it.expect(CommitKind.FORM, id=1, stage=1, detail=256)
    assert await occupancy(it) == GroupOccupancy(seated=1)
    await lane.serve_pass()
    await it.expect(CommitKind.ADVANCE, id=request, detail=256)
    await it.expect(CommitKind.CHUNK, id=request, detail=chunk(256, 44, last=True))
    await lane.serve_pass()
    await it.expect(CommitKind.ADVANCE, id=request, detail=300 | 1 << 31)
    await it.expect(CommitKind.PLAN, detail=plan(1))
    assert await occupancy(it) == GroupOccupancy(seated=1, decoding=1)
    for _ in range(3):
        await lane.serve_pass()
    await lane.serve_pass(finished=1)
    await it.expect(CommitKind.RETIRE, id=request, stage=RetireReason.FINISHED, detail=0)
    assert await occupancy(it) == GroupOccupancy()
    assert await it.read32(regmap.GROUP + regmap.Group.KV_FREE) == 10
    assert FifoRetireHead.unpack(await it.read64(RETIRE_HEAD)).id == request
    assert (await host.status()).active == 1
    await it.write32(RETIRE_POP, 0)
    await it.expect(CommitKind.FREE, id=request)
    assert (await host.status()).active == 0


@bench
async def a_prompt_of_one_row_decodes_after_one_pass(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    request = await host.join(rows=1, start=77)
    await it.expect(CommitKind.CHUNK, id=request, detail=chunk(77, 1, first=True, last=True))
    await lane.serve_pass()
    await it.expect(CommitKind.ADVANCE, id=request, detail=78 | 1 << 31)


@bench
async def queued_while_the_house_is_full(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    await set_group(it, 0, regmap.Group.SEATS, 2)
    first, second, third = [await host.join(rows=1) for _ in range(3)]
    assert await occupancy(it) == GroupOccupancy(queued=1, seated=2)
    it.seen()
    await lane.serve_pass()
    await lane.serve_pass(finished=0b10)
    await it.expect(CommitKind.RETIRE, id=second, detail=1)
    await it.expect(CommitKind.SEAT, id=third, stage=1)
    await host.cancel(first)
    await it.expect(CommitKind.CANCEL, id=first, stage=2)


@bench
async def finished_while_prefilling(it: Bench) -> None:
    """A lane may give up on a request before its prompt is complete."""
    host, lane = Host(it), Lane(it)
    request = await host.join(rows=1000)
    await lane.serve_pass(finished=1)
    await it.expect(CommitKind.RETIRE, id=request, stage=RetireReason.FINISHED)


@bench
async def parked_and_credited_in_a_seat(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    stays, parks = await host.join(rows=1), await host.join(rows=1)
    await lane.serve_pass()
    await lane.serve_pass()
    await host.park(parks)
    await it.expect(CommitKind.PARK, id=parks, stage=2)
    await host.park(parks)
    await it.expect(CommitKind.PARK, id=parks, stage=3)
    await lane.serve_pass()
    await it.expect(CommitKind.PARKED, stage=1, detail=0)
    assert await occupancy(it) == GroupOccupancy(seated=2, decoding=2, parked=1)
    await lane.serve_pass()
    await it.expect(CommitKind.PLAN, detail=plan(1))
    await host.credit(parks)
    await it.expect(CommitKind.CREDIT, id=parks, stage=2)
    await lane.serve_pass()
    await it.expect(CommitKind.PLAN, detail=plan(2))
    await host.cancel(stays)


@bench
async def parked_and_credited_in_the_queue(it: Bench) -> None:
    host = Host(it)
    await set_group(it, 0, regmap.Group.SEATS, 1)
    await host.join(rows=1)
    first, second = await host.join(rows=1), await host.join(rows=1)
    for request in (first, second):
        await host.park(request)
        await it.expect(CommitKind.PARK, id=request, stage=1)
        await host.park(request)
        await it.expect(CommitKind.PARK, id=request, stage=3)
    assert await occupancy(it) == GroupOccupancy(seated=1)
    await host.credit(second)
    await it.expect(CommitKind.CREDIT, id=second, stage=1)
    await host.cancel(first)
    await it.expect(CommitKind.CANCEL, id=first, stage=1)
    await it.expect(CommitKind.RETIRE, id=first, detail=1 << 8)
    assert await occupancy(it) == GroupOccupancy(queued=1, seated=1)


@bench
async def a_credited_request_goes_before_those_that_came_later(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    await set_group(it, 0, regmap.Group.SEATS, 1)
    await host.join(rows=1)
    first, second = await host.join(rows=1), await host.join(rows=1)
    await host.park(first)
    await host.credit(first)
    for request in (first, second):
        await lane.serve_pass(finished=1)
        await it.expect(CommitKind.SEAT, id=request)


@bench
async def park_and_credit_from_a_disabled_page_are_ignored(it: Bench) -> None:
    host, stranger = Host(it), Host(it, page=1)
    await set_group(it, 0, regmap.Group.SEATS, 1)
    await host.join(rows=1)
    request = await host.join(rows=1)
    await stranger.park(request)
    await it.expect(CommitKind.PARK, id=request, stage=0, detail=1)
    await host.park(request)
    await stranger.credit(request)
    await it.expect(CommitKind.CREDIT, id=request, stage=0, detail=1)
    assert await occupancy(it) == GroupOccupancy(seated=1)


@bench
async def an_early_credit_is_remembered_once(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    await set_group(it, 0, regmap.Group.SEATS, 1)
    seated, queued = await host.join(rows=1), await host.join(rows=1)
    for request in (seated, queued):
        await host.credit(request)
        await it.expect(CommitKind.CREDIT, id=request, stage=3)
        await host.credit(request)
        await it.expect(CommitKind.CREDIT, id=request, stage=4)
    await host.park(queued)
    await it.expect(CommitKind.PARK, id=queued, stage=4)
    await host.park(queued)
    await it.expect(CommitKind.PARK, id=queued, stage=1)
    await host.park(seated)
    await it.expect(CommitKind.PARK, id=seated, stage=2)
    await lane.serve_pass()
    await it.expect(CommitKind.PARKED, stage=0, detail=1)
    await host.park(seated)
    await lane.serve_pass()
    await it.expect(CommitKind.PARKED, stage=0, detail=0)


@bench
async def a_stepped_request_parks_after_each_pass_that_samples_it(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    request = await host.join(rows=280, stepped=1)
    await lane.serve_pass()
    await it.rest()
    assert not it.seen(CommitKind.PARKED)
    await lane.serve_pass()
    for _ in range(3):
        await it.expect(CommitKind.PARKED, stage=0, detail=0)
        await it.rest()
        assert (await lane.look()).sequence == 0
        await host.credit(request)
        await it.expect(CommitKind.CREDIT, id=request, stage=2)
        await lane.serve_pass()


@bench
async def cancel_in_every_state(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    await set_group(it, 0, regmap.Group.SEATS, 3)
    decoding, prefilling, parked = await host.join(rows=1), await host.join(rows=2000), await host.join(rows=1)
    queued, aside = await host.join(rows=1), await host.join(rows=1)
    await host.park(aside)
    await host.park(parked)
    await it.expect(CommitKind.PARKED, stage=2)
    await lane.serve_pass()
    for request in (queued, aside):
        await host.cancel(request)
        await it.expect(CommitKind.CANCEL, id=request, stage=1)
        await it.expect(CommitKind.RETIRE, id=request, stage=RetireReason.CANCELLED)
    await it.rest()
    for request in (decoding, prefilling, parked):
        await host.cancel(request)
        await it.expect(CommitKind.CANCEL, id=request, stage=2)
    # It is in no pass, and need not wait for one.
    await it.expect(CommitKind.RETIRE, id=parked, stage=RetireReason.CANCELLED, detail=2)
    await lane.serve_pass()
    for seat, request in enumerate((decoding, prefilling)):
        await it.expect(CommitKind.RETIRE, id=request, stage=RetireReason.CANCELLED, detail=seat)


@bench
async def groups_live_side_by_side(it: Bench) -> None:
    host = Host(it)
    requests = [await host.join(rows=1, group=group) for group in range(it.params.lanes)]
    for group, request in enumerate(requests):
        lane = Lane(it, group)
        await lane.serve_pass()
        await lane.serve_pass(finished=1)
        await it.expect(CommitKind.RETIRE, lane=group, id=request)
