"""Pipelines of two, four and eight of eight lanes, and groups of one lane beside them (docs/device.md §1, §6, §7)."""

from __future__ import annotations

from cuelight import regmap
from cuelight.regmap import CommitKind, RetireReason

from .bench import Bench, bench
from .crowd import Crowd
from .details import plan
from .host import Host, set_group, set_lane, set_tier
from .lane import Lane

PIPELINE, FIRST_STAGE, DEPTH = regmap.Lane.PIPELINE, regmap.Lane.FIRST_STAGE, regmap.Lane.DEPTH
GROUP_RESET = regmap.CONTROL + regmap.Control.GROUP_RESET
STAGES = 16
LENGTHS = (2, 4, 8)


def spread(length: int) -> list[list[int]]:
    """Layer stages of each lane."""
    each = (STAGES - 2) // length
    starts = [2 + index * each for index in range(length)]
    return [[*range(start, end)] for start, end in zip(starts, [*starts[1:], STAGES], strict=True)]


async def pipeline(it: Bench, length: int, *, depth: int = 1, first: int = 0) -> list[Lane]:
    """Lanes of a pipeline, whose layer stages are spread evenly over them."""
    await it.write32(regmap.CONTROL + regmap.Control.STAGE_COUNT, STAGES)
    await it.expect(CommitKind.CONFIG)
    for index, stages in enumerate(spread(length)):
        await set_lane(it, first + index, DEPTH, depth)
        await set_lane(it, first + index, FIRST_STAGE, stages[0])
        for _ in range(2):
            await it.expect(CommitKind.CONFIG)
    await set_lane(it, first, PIPELINE, length)
    await it.expect(CommitKind.CONFIG, detail=length)
    return [Lane(it, first + index) for index in range(length)]


async def afresh(it: Bench, length: int, *, depth: int = 1) -> list[Lane]:
    """The same on a device just reset, so that pass 0 is first."""
    await it.reset()
    return await pipeline(it, length, depth=depth)


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


async def a_pass_each(it: Bench, lanes: list[Lane], group: int = 0, tier: int = 0) -> list[int]:
    """A prompt for each pass that the pipeline may have alive."""
    requests = []
    for k in range(len(lanes)):
        requests.append(await Host(it).join(rows=5, group=group, tier=tier))
        await it.expect(CommitKind.PLAN, lane=group, stage=k, detail=plan(0, lanes=len(lanes)))
        await it.expect(CommitKind.FORM, lane=group, stage=1, detail=5)
    await it.rest()
    return requests


async def fill(lanes: list[Lane]) -> None:
    """Each pass but the last moves on, until every lane has another one."""
    for ahead in reversed(range(len(lanes))):
        for lane in lanes[:ahead]:
            await leg(lane)


@bench
async def every_lane_has_another_pass(it: Bench) -> None:
    for length in LENGTHS:
        lanes = await afresh(it, length)
        requests = await a_pass_each(it, lanes)
        await fill(lanes)
        buffers = [(await lane.head()).buffer >> 1 for lane in lanes]
        assert buffers == list(reversed(range(length)))
        for lane, request in zip(lanes, reversed(requests), strict=True):
            assert await it.read32(lane.poll(regmap.Poll.RECORD + regmap.Record.ENTRY)) == request
        await it.write32(GROUP_RESET, 0)
        for request in requests:
            await it.expect(CommitKind.RETIRE, lane=0, id=request, stage=RetireReason.LANE_LOST)
        await it.expect(CommitKind.GROUP_READY, lane=0)


@bench
async def stages_are_spread_and_bind_on_each_lane(it: Bench) -> None:
    for length in LENGTHS:
        lanes = await afresh(it, length, depth=2)
        request = await Host(it).join(rows=5)
        for lane, stages in zip(lanes, spread(length), strict=True):
            assert await leg(lane) == [1, *stages]
        await it.expect(CommitKind.ADVANCE, lane=0, id=request, detail=5 | 1 << 31)
        for lane, stages in zip(lanes, spread(length), strict=True):
            assert await leg(lane, finished=1 if lane is lanes[-1] else 0) == stages
        await it.expect(CommitKind.RETIRE, lane=0, id=request, stage=RetireReason.FINISHED)


@bench
async def seats_decode_in_the_pass_of_their_number(it: Bench) -> None:
    for length in LENGTHS:
        lanes = await afresh(it, length)
        await a_pass_each(it, lanes)
        for _ in range(length):
            for lane in lanes:
                await leg(lane)
        await it.rest()
        for k in range(length):
            head = await lanes[0].head()
            assert (head.buffer >> 1, head.rows) == (k, 1)
            word = regmap.Poll.RECORD + regmap.Record.BITMAP
            assert await it.read32(lanes[0].poll(word)) == 1 << k
            await leg(lanes[0])


@bench
async def a_pass_is_formed_as_soon_as_one_has_ended(it: Bench) -> None:
    """Beside all the others, which go on."""
    for length in LENGTHS:
        lanes = await afresh(it, length)
        requests = await a_pass_each(it, lanes)
        for lane in lanes:
            await leg(lane)
        await it.expect(CommitKind.ADVANCE, lane=0, id=requests[0], detail=5 | 1 << 31)
        await it.expect(CommitKind.PLAN, lane=0, stage=0, detail=plan(1, lanes=length))


@bench
async def lanes_without_a_stage_are_left_out(it: Bench) -> None:
    for length in LENGTHS:
        lanes = await afresh(it, length)
        for first_stages, busy in (
            ([STAGES] * length, [0]),
            ([2] * length, [length - 1]),
            ([2] + [STAGES - 1] * (length - 1), [0, length - 1]),
        ):
            for lane, stage in zip(lanes, first_stages, strict=True):
                await set_lane(it, lane.number, FIRST_STAGE, stage)
                await it.expect(CommitKind.CONFIG)
            request = await Host(it).join(rows=5)
            for index in busy:
                await leg(lanes[index], finished=1 if index == busy[-1] else 0)
            await it.expect(CommitKind.RETIRE, id=request, stage=RetireReason.FINISHED)
            await it.rest()
            for lane in lanes:
                assert (await lane.look()).sequence == 0


@bench
async def a_lane_finishes_its_part_of_a_pass_and_turns_to_the_next_one(it: Bench) -> None:
    for length in LENGTHS:
        lanes = await afresh(it, length)
        await a_pass_each(it, lanes)
        turns = []
        for _ in range(length):
            turns.append((await lanes[0].head()).buffer >> 1)
            await leg(lanes[0])
        assert turns == list(range(length))


@bench
async def loop_points_of_two_lanes_that_are_due_at_once(it: Bench) -> None:
    crowd = Crowd(it, group=2)
    lanes = await pipeline(it, 2)
    await output_decode_last(it, lanes)
    await crowd.gather()
    await a_pass_each(it, lanes)
    sequences = await both_at_the_end(it, lanes)
    await crowd.hold()
    for sequence in sequences:
        await lanes[-1].done(sequence)
    await it.settle()
    assert crowd.holds
    for k in (0, 1):
        await it.expect(CommitKind.LOOP_POINT, lane=0, stage=k)


@bench
async def loop_points_of_more_lanes_that_are_due_at_once(it: Bench) -> None:
    """Two passes end while the core is at the loop point of a third one."""
    for length in LENGTHS[1:]:
        lanes = await afresh(it, length)
        await output_decode_last(it, lanes)
        await a_pass_each(it, lanes)
        sequences = await both_at_the_end(it, lanes)
        it.seen()
        it.bus.pause = (0,)
        # The first one's seat is given up, which takes the core some cycles.
        await lanes[-1].finish(sequences[0], 1)
        for sequence in sequences:
            await lanes[-1].done(sequence)
        # By now the lane has the dispatch of the third one.
        await it.run(3)
        await lanes[-1].done(sequences[-1] + 1)
        it.bus.pause = (0, 1)
        await it.rest()
        assert [event.stage for event in it.seen(CommitKind.LOOP_POINT)] == [0, 1, 2]
        assert it.coverage.counts[f"pipelines: {length} lanes: loop points due at once"]


async def output_decode_last(it: Bench, lanes: list[Lane]) -> None:
    """The last lane does output decode only, and has two dispatches outstanding."""
    for register, value in ((FIRST_STAGE, STAGES - 1), (DEPTH, 2)):
        await set_lane(it, lanes[-1].number, register, value)
        await it.expect(CommitKind.CONFIG)


async def both_at_the_end(it: Bench, lanes: list[Lane]) -> list[int]:
    """All passes decode and have but output decode before them; sequences of the two that the last lane has."""
    for _ in lanes:
        for lane in lanes:
            await leg(lane)
    for _ in lanes:
        for lane in lanes[:-1]:
            await leg(lane)
    heads = [await lanes[-1].take() for _ in range(2)]
    assert [(head.first, head.last) for head in heads] == [(1, 1), (1, 1)]
    return [head.sequence for head in heads]


@bench
async def seats_change_beside_the_passes(it: Bench) -> None:
    """Somebody is seated, parked, cancelled and paused while other seats are in passes."""
    host = Host(it)
    for length in LENGTHS:
        lanes = await afresh(it, length)
        await set_group(it, 0, regmap.Group.SEATS, length + 1)
        await it.expect(CommitKind.CONFIG)
        await a_pass_each(it, lanes, tier=2)
        waits = await host.join(rows=5, tier=2)
        await it.expect(CommitKind.SEAT, id=waits, stage=length)
        await host.park(waits)
        await it.expect(CommitKind.PARKED, stage=length)
        vip = await host.join(rows=5, tier=0)
        await it.expect(CommitKind.PAUSE, id=waits, stage=length)
        await it.expect(CommitKind.SEAT, id=vip, stage=length)
        await host.cancel(vip)
        await it.expect(CommitKind.RETIRE, id=vip, stage=RetireReason.CANCELLED)
        await host.cancel(waits)
        await it.expect(CommitKind.RETIRE, id=waits, stage=RetireReason.CANCELLED)


@bench
async def pipelines_side_by_side(it: Bench) -> None:
    """One of four lanes, one of two, and two groups of one lane."""
    host = Host(it)
    four = await pipeline(it, 4)
    two = await pipeline(it, 2, first=4)
    alone = [Lane(it, 6), Lane(it, 7)]
    groups = {lanes[0].number: lanes for lanes in (four, two, alone[:1], alone[1:])}
    requests = {group: await host.join(rows=5, group=group) for group in groups}
    for group, lanes in groups.items():
        for lane in lanes:
            await leg(lane, finished=1 if lane is lanes[-1] else 0)
        await it.expect(CommitKind.RETIRE, lane=group, id=requests[group], stage=RetireReason.FINISHED)


@bench
async def the_larger_of_two_pipelines_has_a_lane_that_both_claim(it: Bench) -> None:
    host = Host(it)
    await pipeline(it, 2, first=2)
    request = await host.join(rows=5, group=2)
    await set_lane(it, 0, PIPELINE, 4)
    await it.expect(CommitKind.CONFIG_IGNORED, detail=4)
    for lane in (2, 3):
        await leg(Lane(it, lane), finished=1)
    await it.expect(CommitKind.RETIRE, id=request)
    lanes = await pipeline(it, 4)
    await a_pass_each(it, lanes)
    await fill(lanes)
    # A pipeline is not shortened while a group that it would give up has requests.
    await set_lane(it, 0, PIPELINE, 2)
    await it.expect(CommitKind.CONFIG_IGNORED, detail=2)
    it.bus.pause = (0,)
    await it.write32(GROUP_RESET, 0)
    await set_lane(it, 0, PIPELINE, 2)
    await it.expect(CommitKind.CONFIG_IGNORED, detail=2)
    await it.expect(CommitKind.GROUP_READY, lane=0)
    # Claims of the smaller one count again.
    await set_lane(it, 0, PIPELINE, 1)
    await it.expect(CommitKind.CONFIG, detail=1)
    request = await host.join(rows=5, group=2)
    for lane in (2, 3):
        await leg(Lane(it, lane), finished=1)
    await it.expect(CommitKind.RETIRE, lane=2, id=request)


@bench
async def every_lane_of_its_own(it: Bench) -> None:
    host = Host(it)
    await set_tier(it, 0, regmap.Tier.MIN_ROWS, 0)
    requests = [await host.join(rows=1, group=group) for group in range(8)]
    for group, request in enumerate(requests):
        await leg(Lane(it, group), finished=1)
        await it.expect(CommitKind.RETIRE, lane=group, id=request, stage=RetireReason.FINISHED)
