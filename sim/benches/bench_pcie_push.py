"""Lanes in PUSH over the link: rings in the host's memory, heartbeats, falls and returns."""

from __future__ import annotations

import cocotb

from cuelight import regmap
from cuelight.regmap import CommitKind, EntryChunk, FallCause, Push, PushMode

from .bench_pcie_cycles import FastBench
from .bench_pcie_cycles import bench as fast_bench
from .host import Host, set_lane
from .lane import Lane
from .pcie.bench import PcieBench, bench
from .pcie.port import LanePort, pushed

_NOWHERE = 0x7FF0_0000
"""Nothing answers there."""


@bench
async def a_request_lives_in_push(it: PcieBench) -> None:
    port, lane = await pushed(it), Lane(it)
    request = await Host(it).join(rows=20)
    stages = []
    for sequence in range(1, 30):
        head = await port.arrives(sequence)
        stages.append(head.stage)
        if sequence == 1:
            words = port.record(head.buffer)
            chunk = EntryChunk(start=0, seat=0, bind=1, first=1, last=1).pack()
            assert words[:12] == [0, 0, 0, 1 << 16] * 3
            assert words[12:16] == [request, chunk, 20, 1 << 16]
        await lane.finish(sequence, int(head.last and sequence > 8))
        await lane.done(sequence)
        await it.expect(CommitKind.COMPLETE, id=sequence)
        if head.last and sequence > 8:
            break
    await it.expect(CommitKind.RETIRE, id=request, stage=regmap.RetireReason.FINISHED)
    assert (await port.status()).mode == PushMode.PUSH


@bench
async def a_lane_whose_memory_is_gone_is_polled_until_it_is_back(it: PcieBench) -> None:
    """The root complex aborts reads of what nothing answers for."""
    port, lane = LanePort(it), Lane(it)
    await Host(it).join(rows=20)
    await port.start(heartbeat=_NOWHERE)
    status = await port.reach(PushMode.POLL)
    assert status.cause == FallCause.ABORTED
    assert await port.count(Push.FALLS) == 1
    first = await lane.serve()
    await port.push(generation=2)
    second = await port.arrives(first.sequence + 1)
    await lane.done(second.sequence)
    await port.arrives(second.sequence + 1)


@bench
async def a_lane_that_stops_has_its_dispatches_offered_again(it: PcieBench) -> None:
    port, lane = await pushed(it), Lane(it)
    other = await pushed(it, 1)
    await Host(it).join(rows=20)
    first = await port.arrives(1)
    await port.arrives(2)
    await it.write32(port.at(Push.STALL), 6)
    port.alive = False
    assert (await port.reach(PushMode.POLL)).cause == FallCause.STOPPED
    await it.expect(CommitKind.REOFFERED, lane=0, id=1)
    assert await lane.head() == first
    assert (await other.status()).mode == PushMode.PUSH
    await lane.serve()
    await lane.serve()


@fast_bench
async def a_dispatch_goes_out_within_20_cycles_of_the_completion_of_the_one_before(it: FastBench) -> None:
    """From the beat on CQ with BATCH_DONE to the first one on RQ with the dispatch."""
    await set_lane(it, 0, regmap.Lane.DEPTH, 1)
    port, lane = await pushed(it), Lane(it)
    await it.write32(port.at(Push.PERIOD), 1000)
    await Host(it).join(rows=20)
    await port.arrives(1)
    await it.run(200)
    came, goes = cocotb.start_soon(it.beat("m_axis_cq")), cocotb.start_soon(it.beat("s_axis_rq"))
    await lane.done(1)
    await port.arrives(2)
    cycles = await goes - await came
    cocotb.log.info("CQ to RQ: %d cycles", cycles)
    assert 0 < cycles <= 20
