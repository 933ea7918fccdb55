"""Edges of the stage table: from 1 stage to 128."""

from __future__ import annotations

from cuelight import regmap
from cuelight.regmap import CommitKind, RejectReason

from .bench import Bench, bench
from .host import Host
from .lane import Lane

STAGE_COUNT = regmap.CONTROL + regmap.Control.STAGE_COUNT


@bench
async def a_model_of_one_stage_is_for_manual_requests_only(it: Bench) -> None:
    host = Host(it)
    await it.write32(STAGE_COUNT, 1)
    request = await host.admit(stage=0)
    await host.done(request)
    await host.command(request, 1)
    await it.expect(CommitKind.REJECT, id=request, stage=RejectReason.UNKNOWN_STAGE)
    await host.command(request, 0)
    await it.expect(CommitKind.RETARGET, id=request, stage=0)
    offered = await host.offer()
    await host.attributes(rows=1)
    await host.command(offered)
    await it.expect(CommitKind.REJECT, id=offered, stage=RejectReason.UNKNOWN_STAGE)


@bench
async def automatic_requests_need_four_stages(it: Bench) -> None:
    host = Host(it)
    for count in (2, 3):
        await it.write32(STAGE_COUNT, count)
        offered = await host.offer()
        await host.attributes(rows=1)
        await host.command(offered)
        await it.expect(CommitKind.REJECT, id=offered, stage=RejectReason.UNKNOWN_STAGE)
    await it.write32(STAGE_COUNT, 4)
    await host.join(rows=1)
    lane = Lane(it)
    assert await lane.serve_pass() == [1, 2, 3]
    assert await lane.serve_pass() == [2, 3]


@bench
async def a_manual_request_walks_through_all_128(it: Bench) -> None:
    host = Host(it)
    request = await host.admit(stage=127)
    for stage in (0, 1, 63, 64, 126, 127):
        await host.done(request)
        await host.command(request, stage)
        await it.expect(CommitKind.RETARGET, id=request, stage=stage)
    await host.done(request)
    await host.command(request, 128)
    await it.expect(CommitKind.REJECT, id=request, stage=RejectReason.UNKNOWN_STAGE)


@bench
async def a_pass_walks_through_all_128(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    request = await host.join(rows=1)
    assert await lane.serve_pass() == list(range(1, 128))
    assert await lane.serve_pass(finished=1) == list(range(2, 128))
    await it.expect(CommitKind.RETIRE, id=request, stage=regmap.RetireReason.FINISHED)


@bench
async def a_pass_that_nobody_samples_leaves_the_last_stage_out(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    await it.write32(STAGE_COUNT, 5)
    await host.join(rows=600)
    assert (await lane.head()).samples == 0
    assert await lane.serve_pass() == [1, 2, 3]
    assert (await lane.head()).samples == 0
    assert await lane.serve_pass() == [2, 3]
    assert (await lane.head()).samples == 1
    assert await lane.serve_pass() == [2, 3, 4]


@bench
async def a_manual_stage_may_lie_beyond_a_count_that_was_lowered(it: Bench) -> None:
    """STAGE_COUNT is free while only manual requests live; later commands are held against the new one."""
    host = Host(it)
    request = await host.admit(stage=100)
    await it.write32(STAGE_COUNT, 4)
    await it.expect(CommitKind.CONFIG)
    await host.done(request)
    await it.expect(CommitKind.STAGE_DONE, id=request)
    await host.command(request, 100)
    await it.expect(CommitKind.REJECT, stage=RejectReason.UNKNOWN_STAGE)
    await host.command(request, 3)
    await it.expect(CommitKind.RETARGET, stage=3)
