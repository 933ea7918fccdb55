"""The event trace: what it shows, and what happens when it is full."""

from __future__ import annotations

from cuelight import regmap
from cuelight.regmap import CommitKind, FifoTraceHead, FifoTracePayload, FifoTraceState

from .bench import Bench, bench
from .host import Host

HELD = 256
TRACE_HEAD, TRACE_POP = regmap.FIFO + regmap.Fifo.TRACE_HEAD, regmap.FIFO + regmap.Fifo.TRACE_POP
TRACE_STATE, TRACE_PAYLOAD = regmap.FIFO + regmap.Fifo.TRACE_STATE, regmap.FIFO + regmap.Fifo.TRACE_PAYLOAD
TRACE_LOST = regmap.COUNTERS + regmap.Counters.TRACE_LOST


async def make_events(it: Bench, count: int) -> list[tuple[CommitKind, int]]:
    """Events of a manual request, two for each pair of STAGE_DONE and command."""
    host = Host(it)
    request = await host.admit()
    events = [(CommitKind.ADMIT, request)]
    while len(events) < count:
        if len(events) % 2:
            await host.done(request)
            events.append((CommitKind.STAGE_DONE, request))
        else:
            await host.command(request, 1)
            events.append((CommitKind.RETARGET, request))
    return events


async def pop(it: Bench, index: int) -> tuple[CommitKind, int]:
    await it.rest()
    head = FifoTraceHead.unpack(await it.read64(TRACE_HEAD))
    payload = FifoTracePayload.unpack(await it.read64(TRACE_PAYLOAD))
    await it.write32(TRACE_POP, index)
    return CommitKind(head.kind), payload.id


async def state(it: Bench) -> FifoTraceState:
    await it.rest()
    return FifoTraceState.unpack(await it.read64(TRACE_STATE))


@bench
async def exactly_256_events_are_held(it: Bench) -> None:
    events = await make_events(it, HELD)
    assert await state(it) == FifoTraceState(index=0, held=HELD)
    assert await it.read32(TRACE_LOST) == 0
    for index, event in enumerate(events):
        assert await pop(it, index) == event
    assert await state(it) == FifoTraceState(index=HELD, held=0)


@bench
async def further_events_are_counted_as_lost(it: Bench) -> None:
    events = await make_events(it, HELD + 10)
    assert await state(it) == FifoTraceState(index=0, held=HELD)
    assert await it.read32(TRACE_LOST) == 10
    assert await pop(it, 0) == events[0]
    assert await pop(it, 1) == events[1]
    # There is room for two again; indices count what was held.
    await Host(it).cancel(events[0][1])
    last = await Host(it).admit()
    assert await it.read32(TRACE_LOST) == 10
    await Host(it).cancel(last)
    await it.rest()
    assert await it.read32(TRACE_LOST) == 11
    for index in range(2, HELD):
        assert await pop(it, index) == events[index]
    assert await pop(it, HELD) == (CommitKind.CANCEL, events[0][1])
    assert await pop(it, HELD + 1) == (CommitKind.ADMIT, last)
    assert await state(it) == FifoTraceState(index=HELD + 2, held=0)


@bench
async def times_never_go_back(it: Bench) -> None:
    await make_events(it, 40)
    last = 0
    for index in range(40):
        await it.rest()
        time_ns = FifoTraceHead.unpack(await it.read64(TRACE_HEAD)).time_ns
        assert time_ns >= last
        last = time_ns
        await it.write32(TRACE_POP, index)
    assert last


@bench
async def steps_that_change_nothing_are_not_traced(it: Bench) -> None:
    host = Host(it)
    await it.rest()
    await host.done(5)
    await it.write32(regmap.FIFO + regmap.Fifo.RETIRE_POP, 3)
    await it.write32(regmap.CONTROL + regmap.Control.PAGE_ENABLE, 0xFF)
    await it.write32(regmap.CONTROL + regmap.Control.PAGE_ENABLE, 0x100)
    await it.write32(regmap.CONTROL + regmap.Control.PAGE_ENABLE, 1)
    await it.write32(regmap.COMPLETION + regmap.Completion.BATCH_DONE, 3)
    assert await state(it) == FifoTraceState(index=0, held=0)
