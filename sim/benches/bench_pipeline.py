"""Pipelines: several lanes that serve one group, with a pass alive for each of them (docs/device.md §1, §6, §7)."""

from __future__ import annotations

from cuelight import regmap
from cuelight.regmap import CommitKind, RejectReason, RetireReason

from .bench import Bench, bench
from .details import plan
from .host import Host, set_lane
from .lane import Lane

BITMAP = regmap.Poll.RECORD + regmap.Record.BITMAP
ENTRY = regmap.Poll.RECORD + regmap.Record.ENTRY
PIPELINE, FIRST_STAGE = regmap.Lane.PIPELINE, regmap.Lane.FIRST_STAGE


async def configured(it: Bench, lane: int, register: int, value: int, *, accepted: bool = True) -> None:
    """Write a register of a lane, and see whether it is accepted."""
    await set_lane(it, lane, register, value)
    kind = CommitKind.CONFIG if accepted else CommitKind.CONFIG_IGNORED
    await it.expect(kind, id=regmap.LANE + lane * regmap.LANE_STRIDE + register, detail=value)


async def pipeline(it: Bench, first_stage: int = 3, depth: int = 1) -> tuple[Lane, Lane]:
    """Both lanes in a pipeline of five stages, of which lane 1 runs those from ``first_stage`` on."""
    await it.write32(regmap.CONTROL + regmap.Control.STAGE_COUNT, 5)
    await it.expect(CommitKind.CONFIG)
    for lane in (0, 1):
        await configured(it, lane, regmap.Lane.DEPTH, depth)
    await configured(it, 1, regmap.Lane.SEQUENCE, 0x101)
    await configured(it, 1, FIRST_STAGE, first_stage)
    await configured(it, 0, PIPELINE, 2)
    return Lane(it, 0), Lane(it, 1)


async def leg(lane: Lane, finished: int = 0) -> list[int]:
    """Serve a pass's dispatches on a lane, and report seats as finished in the last one; stages served."""
    stages: list[int] = []
    while True:
        head = await lane.head()
        assert head.first == (not stages)
        stages.append(head.stage)
        await lane.serve(finished if head.last else 0)
        if head.last:
            return stages


@bench
async def a_pipeline_begins_at_a_multiple_of_its_lanes_and_ends_within_the_device(it: Bench) -> None:
    for lane, value, accepted in (
        (0, 1, True),
        (0, 2, True),
        (0, 3, False),
        (0, 4, False),
        (0, 8, False),
        (0, 0, False),
        (0, 0x1_0002, False),
        (0, 1, True),
        (1, 1, True),
        (1, 2, False),
    ):
        await configured(it, lane, PIPELINE, value, accepted=accepted)


@bench
async def an_absorbed_lane_keeps_its_pipeline_register(it: Bench) -> None:
    await pipeline(it)
    await configured(it, 1, PIPELINE, 1, accepted=False)
    await configured(it, 0, PIPELINE, 1)
    await configured(it, 1, PIPELINE, 1)


@bench
async def first_stages_are_stages_of_the_device(it: Bench) -> None:
    for lane in (0, 1):
        await configured(it, lane, FIRST_STAGE, it.params.stages - 1)
        await configured(it, lane, FIRST_STAGE, it.params.stages, accepted=False)
        await configured(it, lane, FIRST_STAGE, 0x8000_0000, accepted=False)


@bench
async def lanes_of_a_group_with_requests_are_not_rearranged(it: Bench) -> None:
    host = Host(it)
    request = await host.join(rows=1, group=1)
    await configured(it, 0, PIPELINE, 2, accepted=False)
    await configured(it, 1, FIRST_STAGE, 3, accepted=False)
    await configured(it, 0, FIRST_STAGE, 3)
    lane = Lane(it, 1)
    await lane.serve_pass(finished=1)
    await it.expect(CommitKind.RETIRE, id=request)
    await it.rest()
    await pipeline(it)
    await host.join(rows=1)
    await configured(it, 0, PIPELINE, 1, accepted=False)
    await configured(it, 1, FIRST_STAGE, 2, accepted=False)


@bench
async def lanes_are_not_rearranged_before_a_loop_point_is_over(it: Bench) -> None:
    host, lane = Host(it), Lane(it, 1)
    refusals = 0
    for cycles in range(28):
        await host.join(rows=1, group=1)
        while not (head := await lane.take()).last:
            await lane.done(head.sequence)
        it.bus.pause = (0,)
        await lane.finish(head.sequence, 0b1)
        await lane.done(head.sequence)
        await it.run(cycles)
        await set_lane(it, 0, PIPELINE, 2)
        await it.write32(regmap.CONTROL + regmap.Control.GROUP_RESET, 0)
        it.bus.pause = (0, 1, 3)
        await it.rest()
        seen = it.seen(CommitKind.RETIRE, CommitKind.CONFIG_IGNORED)
        refusals += [event.kind for event in seen] == [CommitKind.RETIRE, CommitKind.CONFIG_IGNORED]
        await configured(it, 0, PIPELINE, 1)
    assert refusals


@bench
async def an_absorbed_group_takes_no_requests_and_no_resets(it: Bench) -> None:
    host = Host(it)
    reset = regmap.CONTROL + regmap.Control.GROUP_RESET
    await pipeline(it)
    request = await host.offer()
    await host.attributes(group=1)
    await host.command(request)
    await it.expect(CommitKind.REJECT, id=request, stage=RejectReason.BAD_ATTRIBUTE)
    await it.write32(reset, 1)
    await it.expect(CommitKind.CONFIG_IGNORED, id=reset, detail=1)
    await configured(it, 0, PIPELINE, 1)
    request = await host.join(group=1, rows=1)
    assert await Lane(it, 1).serve_pass(finished=1) == [1, 2, 3, 4]
    await it.expect(CommitKind.RETIRE, lane=1, id=request)


@bench
async def seats_are_bound_on_each_lane_before_its_first_stage(it: Bench) -> None:
    front, back = await pipeline(it)
    request = await Host(it).join(rows=5)
    await it.expect(CommitKind.PLAN, stage=0, detail=plan(0, lanes=2))
    await it.rest()
    assert (await back.look()).sequence == 0
    assert await leg(front) == [1, 2]
    assert (await back.head()).sequence == 0x101
    assert await it.read32(back.poll(ENTRY)) == request
    assert await it.read32(front.poll(ENTRY)) == 0
    assert await leg(back) == [1, 3, 4]
    await it.expect(CommitKind.LOOP_POINT, lane=0, stage=0)
    await it.expect(CommitKind.ADVANCE, lane=0, id=request, detail=5 | 1 << 31)
    assert await leg(front) == [2]
    assert await leg(back, finished=1) == [3, 4]
    await it.expect(CommitKind.RETIRE, lane=0, id=request, stage=RetireReason.FINISHED)


@bench
async def a_pass_goes_on_when_all_its_dispatches_are_complete(it: Bench) -> None:
    front, back = await pipeline(it, depth=2)
    await Host(it).join(rows=5)
    first, second = await front.take(), await front.take()
    assert (first.stage, second.stage) == (1, 2)
    await front.done(first.sequence)
    await it.rest()
    assert (await back.look()).sequence == 0
    await front.done(second.sequence)
    assert (await back.head()).stage == 1


@bench
async def all_stages_may_run_on_one_lane(it: Bench) -> None:
    for first_stage, busy in ((7, 0), (2, 1)):
        lanes = await pipeline(it, first_stage=first_stage)
        request = await Host(it).join(rows=5)
        assert await leg(lanes[busy], finished=1) == [1, 2, 3, 4]
        await it.expect(CommitKind.RETIRE, id=request)
        assert (await lanes[1 - busy].look()).sequence == 0
        await configured(it, 0, PIPELINE, 1)
        await configured(it, 1, regmap.Lane.SEQUENCE, 0x101)


async def two_passes(it: Bench, first_stage: int = 3) -> tuple[Lane, Lane, list[int]]:
    """A pipeline with a request in each of two passes; pass 0 has its first dispatch outstanding."""
    front, back = await pipeline(it, first_stage)
    requests = []
    for k in (0, 1):
        requests.append(await Host(it).join(rows=5, tier=1))
        await it.expect(CommitKind.PLAN, stage=k, detail=plan(0, lanes=2))
        await it.expect(CommitKind.CHUNK, id=requests[k], stage=k)
    await it.rest()
    return front, back, requests


@bench
async def two_passes_are_alive_each_on_its_lane(it: Bench) -> None:
    front, back, requests = await two_passes(it)
    await leg(front)
    heads = await back.head(), await front.head()
    assert [head.buffer >> 1 for head in heads] == [0, 1]
    for lane, request in ((back, requests[0]), (front, requests[1])):
        assert await it.read32(lane.poll(ENTRY)) == request
    assert await leg(back) == [1, 3, 4]
    await it.expect(CommitKind.LOOP_POINT, stage=0)
    await it.expect(CommitKind.PLAN, stage=0, detail=plan(1, lanes=2))
    assert await leg(front) == [1, 2]
    assert await leg(back) == [1, 3, 4]
    await it.expect(CommitKind.LOOP_POINT, stage=1)


@bench
async def seats_decode_in_the_pass_of_their_number(it: Bench) -> None:
    front, back, _ = await two_passes(it)
    for _ in range(2):
        await leg(front)
        await leg(back)
    for k in (0, 1):
        assert (await front.head()).buffer >> 1 == k
        assert await it.read32(front.poll(BITMAP)) == 1 << k
        await leg(front)
        await leg(back)


@bench
async def a_lane_stays_with_a_pass_and_then_turns_to_the_other(it: Bench) -> None:
    front, back, _ = await two_passes(it, first_stage=4)
    # Pass 1 waits all the time.
    turns = []
    for _ in range(6):
        head = await front.serve()
        turns.append((head.buffer >> 1, head.stage))
    assert turns == [(k, stage) for k in (0, 1) for stage in (1, 2, 3)]
    assert [(await back.serve()).buffer >> 1 for _ in range(4)] == [0, 0, 1, 1]


@bench
async def a_pipeline_has_no_second_passes(it: Bench) -> None:
    front, _, _ = await two_passes(it)
    it.seen()
    vip = await Host(it).join(rows=5, tier=0)
    await it.expect(CommitKind.SEAT, id=vip, stage=2)
    await it.rest()
    assert not it.seen(CommitKind.PLAN)
    assert await leg(front) == [1, 2]


@bench
async def a_reset_drops_what_all_lanes_have(it: Bench) -> None:
    front, back, requests = await two_passes(it)
    await leg(front)
    lost = await front.take(), await back.take()
    await it.write32(regmap.CONTROL + regmap.Control.GROUP_RESET, 0)
    await it.expect(CommitKind.GROUP_RESET, lane=0)
    for request in requests:
        await it.expect(CommitKind.RETIRE, lane=0, id=request, stage=RetireReason.LANE_LOST)
    await it.expect(CommitKind.GROUP_READY, lane=0)
    for lane, head in zip((front, back), lost, strict=True):
        await lane.done(head.sequence)
        await it.expect(CommitKind.COMPLETE_IGNORED, lane=lane.number, id=head.sequence)
        assert (await lane.look()).sequence == 0
    await Host(it).join(rows=5)
    assert (await front.head()).sequence == lost[0].sequence + 1
    await leg(front)
    assert (await back.head()).sequence == lost[1].sequence + 1


@bench
async def a_pass_goes_on_by_seat_reports_too(it: Bench) -> None:
    host = Host(it)
    for depth in (1, 2):
        await it.reset()
        front, back = await pipeline(it, depth=depth)
        request = await host.join(rows=5)
        while (head := await front.take()).stage != 2:
            await front.done(head.sequence)
            await it.expect(CommitKind.COMPLETE, lane=0, id=head.sequence)
        await host.done(request)
        await it.expect(CommitKind.STAGE_DONE, id=request)
        await it.expect(CommitKind.COMPLETE, lane=0, id=head.sequence, stage=2)
        await it.expect(CommitKind.DISPATCH, lane=1, stage=1)
        # The other lane's settings wait too, though it has no dispatch outstanding.
        await configured(it, 0, regmap.Lane.SEQUENCE, 9, accepted=False)
        await configured(it, 0, regmap.Lane.DEPTH, 1, accepted=False)
        assert await leg(back, finished=1) == [1, 3, 4]
        await it.expect(CommitKind.RETIRE, id=request, stage=RetireReason.FINISHED)
