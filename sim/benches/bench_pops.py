"""FIFO heads and pops: only the full index of the head pops."""

from __future__ import annotations

from cuelight import regmap
from cuelight.regmap import CommitKind, FifoRetireHead, FifoTraceHead, FifoTraceState, RetireReason

from .bench import Bench, bench
from .host import Host, set_group, set_lane
from .lane import Lane

POPS_IGNORED = regmap.COUNTERS + regmap.Counters.POPS_IGNORED
RETIRE_HEAD, RETIRE_POP = regmap.FIFO + regmap.Fifo.RETIRE_HEAD, regmap.FIFO + regmap.Fifo.RETIRE_POP
REJECT_POP = regmap.FIFO + regmap.Fifo.REJECT_POP
TRACE_HEAD, TRACE_POP = regmap.FIFO + regmap.Fifo.TRACE_HEAD, regmap.FIFO + regmap.Fifo.TRACE_POP
TRACE_STATE = regmap.FIFO + regmap.Fifo.TRACE_STATE


def near(index: int) -> list[int]:
    """Values that a head with this index must not take for its own."""
    return [value & 0xFFFF_FFFF for value in (index + 1, index - 1, index ^ 1 << 16, index ^ 1 << 31, index + 64)]


async def retire(it: Bench, host: Host, count: int) -> list[int]:
    """Requests that have retired in this order: cancelled in the queue of a group without a free seat."""
    await set_group(it, 0, regmap.Group.SEATS, 1)
    await host.join(rows=1)
    requests = [await host.join(rows=1) for _ in range(count)]
    it.random.shuffle(requests)
    for request in requests:
        await host.cancel(request)
        await it.expect(CommitKind.RETIRE, id=request, stage=RetireReason.CANCELLED, detail=1 << 8)
    return requests


@bench
async def retirements_pop_in_order_by_index(it: Bench) -> None:
    host = Host(it)
    for index, request in enumerate(await retire(it, host, 12)):
        await it.rest()
        head = FifoRetireHead.unpack(await it.read64(RETIRE_HEAD))
        assert head == FifoRetireHead(id=request, reason=RetireReason.CANCELLED, index=index, valid=1)
        for wrong in near(index):
            await it.write32(RETIRE_POP, wrong)
            await it.expect(CommitKind.POP_IGNORED, detail=wrong)
        await it.write32(RETIRE_POP, index)
        await it.expect(CommitKind.FREE, id=request, detail=index)
        await it.write32(RETIRE_POP, index)
        await it.expect(CommitKind.POP_IGNORED, detail=index)
    assert await it.read32(POPS_IGNORED) == 12 * 6


@bench
async def a_retired_request_keeps_its_slot_until_it_is_popped(it: Bench) -> None:
    host = Host(it)
    (request,) = await retire(it, host, 1)
    active = (await host.status()).active
    slots = {(await host.admit()) & 0xFFFF for _ in range(it.params.slots - active)}
    assert request & 0xFFFF not in slots
    assert (await host.status()).slot == 0xFFFF
    await it.write32(RETIRE_POP, 0)
    assert await host.offer() == request + (1 << 16)


@bench
async def pops_back_to_back(it: Bench) -> None:
    host = Host(it)
    requests = await retire(it, host, 20)
    it.bus.pause = (0,)
    for index in range(len(requests)):
        await it.write32(RETIRE_POP, index)
    for index, request in enumerate(requests):
        await it.expect(CommitKind.FREE, id=request, detail=index)


@bench
async def empty_fifos_pop_nothing(it: Bench) -> None:
    await it.rest()
    for index in (0, 1, 0xFFFF_FFFF):
        await it.write32(RETIRE_POP, index)
        await it.expect(CommitKind.POP_IGNORED, detail=index)
        await it.write32(REJECT_POP, index)
        await it.write32(TRACE_POP, index)
        await Lane(it).pop(index)
    assert await it.read32(POPS_IGNORED) == 12


@bench
async def rejects_pop_by_full_index(it: Bench) -> None:
    host = Host(it)
    for _ in range(5):
        await host.command(0)
    ignored = 0
    for index in range(5):
        await it.rest()
        for wrong in near(index):
            await it.write32(REJECT_POP, wrong)
            ignored += 1
        assert await it.read32(POPS_IGNORED) == ignored
        await it.write32(REJECT_POP, index)
        await it.write32(REJECT_POP, index)
        ignored += 1
    assert await it.read32(POPS_IGNORED) == ignored


@bench
async def the_trace_pops_by_full_index_and_shows_every_step_in_order(it: Bench) -> None:
    host = Host(it)
    await host.join(rows=1)
    await Lane(it).head()
    await it.rest()
    state = FifoTraceState.unpack(await it.read64(TRACE_STATE))
    assert state.index == 0
    kinds = []
    ignored = 0
    for index in range(state.held):
        await it.rest()
        kinds.append(CommitKind(FifoTraceHead.unpack(await it.read64(TRACE_HEAD)).kind))
        await it.read64(regmap.FIFO + regmap.Fifo.TRACE_PAYLOAD)
        for wrong in near(index):
            await it.write32(TRACE_POP, wrong)
            ignored += 1
        await it.write32(TRACE_POP, index)
    await it.rest()
    assert kinds == [
        CommitKind.ADMIT,
        CommitKind.SEAT,
        CommitKind.PLAN,
        CommitKind.CHUNK,
        CommitKind.FORM,
        CommitKind.DISPATCH,
        CommitKind.DISPATCH,
    ]
    assert FifoTraceState.unpack(await it.read64(TRACE_STATE)) == FifoTraceState(index=len(kinds), held=0)
    assert await it.read32(POPS_IGNORED) == ignored


@bench
async def poll_heads_pop_by_sequence(it: Bench) -> None:
    lane = Lane(it)
    await Host(it).join(rows=1)
    first = (await lane.head()).sequence
    for wrong in near(first):
        await lane.pop(wrong)
    await lane.pop(first)
    await it.expect(CommitKind.TAKEN, id=first)
    await lane.pop(first)
    second = (await lane.head()).sequence
    assert second == first + 1
    await lane.pop(second)
    await it.expect(CommitKind.TAKEN, id=second)
    await it.rest()
    assert (await lane.look()).sequence == 0
    # `near` names the second dispatch, which was not the head yet.
    assert await it.read32(POPS_IGNORED) == 6


@bench
async def outstanding_dispatches_are_offered_again(it: Bench) -> None:
    """As a restarted host asks for, whatever the one before it had taken."""
    lane = Lane(it)
    request = await Host(it).join(rows=1)
    first = (await lane.head()).sequence
    for taken in (0, 1, 2):
        for _ in range(taken):
            await lane.take()
        for wrong in (*near(first), 0):
            await lane.reoffer(wrong)
        assert await it.read32(regmap.LANE + regmap.Lane.OLDEST) == first
        await lane.reoffer(first)
        await it.expect(CommitKind.REOFFERED, id=first)
        assert (await lane.look()).sequence == first
        record = await it.read64(lane.poll(regmap.Poll.RECORD + regmap.Record.ENTRY))
        assert record & 0xFFFF_FFFF == request
    assert await it.read32(POPS_IGNORED) == 3 * 6
    assert [(await lane.serve()).sequence for _ in range(2)] == [first, first + 1]
    await lane.reoffer(first)
    await it.rest()
    assert (await lane.look()).sequence == first + 2
    assert await it.read32(POPS_IGNORED) == 3 * 6 + 1


@bench
async def the_only_outstanding_dispatch_is_offered_again(it: Bench) -> None:
    await set_lane(it, 0, regmap.Lane.DEPTH, 1)
    lane = Lane(it)
    await Host(it).join(rows=1)
    head = await lane.take()
    await lane.reoffer(head.sequence)
    await it.expect(CommitKind.REOFFERED, id=head.sequence)
    assert await lane.serve() == head


@bench
async def nothing_is_offered_again_of_a_lane_at_rest(it: Bench) -> None:
    lane = Lane(it)
    assert await it.read32(regmap.LANE + regmap.Lane.OLDEST) == 0
    await lane.reoffer(0)
    await lane.reoffer(1)
    await it.rest()
    assert (await lane.look()).sequence == 0
    assert await it.read32(POPS_IGNORED) == 2


@bench
async def a_dispatch_taken_twice_is_complete_once(it: Bench) -> None:
    lane = Lane(it)
    request = await Host(it).join(rows=1)
    await lane.serve_pass()
    head = await lane.take()
    await lane.reoffer(head.sequence)
    again = await lane.take()
    assert again == head
    for _ in range(2):
        await lane.done(head.sequence)
    await it.expect(CommitKind.COMPLETE, id=head.sequence)
    await it.expect(CommitKind.COMPLETE_IGNORED, id=head.sequence)
    await Host(it).cancel(request)
