"""Who is seated, who is paused, and what a pass takes along (docs/device.md §6)."""

from __future__ import annotations

from cuelight import regmap
from cuelight.regmap import CommitKind, RetireReason
from cuelight_sim.steps import Event

from .bench import Bench, bench
from .details import chunk, plan
from .host import Host, set_group, set_tier
from .lane import Lane

SEATS, ROWS = regmap.Group.SEATS, regmap.Group.ROWS


async def house(it: Bench, seats: int, *tiers: int) -> list[int]:
    """A house of so many seats, and requests of these tiers that have joined in this order."""
    await set_group(it, 0, SEATS, seats)
    return [await Host(it).join(rows=1, tier=tier) for tier in tiers]


@bench
async def a_free_seat_goes_to_the_highest_tier_that_waits(it: Bench) -> None:
    sits, *_ = await house(it, 1, 3)
    low, high, middle = [await Host(it).join(rows=1, tier=tier) for tier in (3, 2, 3)]
    lane = Lane(it)
    await lane.serve_pass(finished=1)
    await it.expect(CommitKind.RETIRE, id=sits)
    for request in (high, low, middle):
        await it.expect(CommitKind.SEAT, id=request, stage=0)
        await lane.serve_pass(finished=1)


@bench
async def a_tier_below_its_minimum_seats_goes_first(it: Bench) -> None:
    await set_tier(it, 3, regmap.Tier.MIN_SEATS, 1)
    await house(it, 2, 0, 0)
    high, low, other = [await Host(it).join(rows=1, tier=tier) for tier in (0, 3, 3)]
    lane = Lane(it)
    await lane.serve_pass(finished=0b01)
    await it.expect(CommitKind.SEAT, id=low, stage=0)
    await lane.serve_pass(finished=0b10)
    await it.expect(CommitKind.SEAT, id=high, stage=1)
    await lane.serve_pass(finished=0b10)
    await it.expect(CommitKind.SEAT, id=other, stage=1)


@bench
async def of_several_tiers_below_their_minimum_the_highest_goes_first(it: Bench) -> None:
    for tier in (2, 3):
        await set_tier(it, tier, regmap.Tier.MIN_SEATS, 1)
    await house(it, 1, 0)
    _, three, two = [await Host(it).join(rows=1, tier=tier) for tier in (0, 3, 2)]
    lane = Lane(it)
    await lane.serve_pass(finished=1)
    await it.expect(CommitKind.SEAT, id=two, stage=0)
    await lane.serve_pass(finished=1)
    await it.expect(CommitKind.SEAT, id=three, stage=0)


@bench
async def a_higher_tier_pauses_the_lowest_seat_of_a_lower_one(it: Bench) -> None:
    lane = Lane(it)
    first, second, third = await house(it, 3, 1, 3, 3)
    waits = await Host(it).join(rows=1, tier=3)
    await lane.serve_pass()
    high = await Host(it).join(rows=1, tier=0)
    await it.rest()
    assert not it.seen(CommitKind.PAUSE), "a pass is alive"
    await lane.serve_pass()
    # Tier 1 is lower than tier 0 too, and its seat is the lowest.
    await it.expect(CommitKind.PAUSE, id=first, stage=0, detail=1)
    await it.expect(CommitKind.SEAT, id=high, stage=0)
    # The one that was paused is the highest that waits now.
    await it.expect(CommitKind.PAUSE, id=second, stage=1, detail=3)
    await it.expect(CommitKind.SEAT, id=first, stage=1, detail=1 | 1 << 8)
    await lane.serve_pass(finished=0b001)
    await it.expect(CommitKind.RETIRE, id=high)
    # Whoever was paused stands in front of those who have waited.
    await it.expect(CommitKind.SEAT, id=second, stage=0, detail=3 | 1 << 8)
    await Host(it).cancel(third)
    await lane.serve_pass()
    await it.expect(CommitKind.SEAT, id=waits, stage=2)


@bench
async def equal_tiers_never_displace_each_other(it: Bench) -> None:
    lane = Lane(it)
    await house(it, 2, 2, 2)
    for tier in (2, 3):
        await Host(it).join(rows=1, tier=tier)
    for _ in range(4):
        await lane.serve_pass()
    await it.rest()
    assert not it.seen(CommitKind.PAUSE)


@bench
async def minimum_seats_protect_from_a_pause(it: Bench) -> None:
    lane = Lane(it)
    await set_tier(it, 3, regmap.Tier.MIN_SEATS, 2)
    _, _, third = await house(it, 3, 3, 3, 2)
    for _ in range(2):
        await Host(it).join(rows=1, tier=0)
    await lane.serve_pass()
    await it.expect(CommitKind.PAUSE, id=third, stage=2, detail=2)
    for _ in range(3):
        await lane.serve_pass()
    await it.rest()
    assert not it.seen(CommitKind.PAUSE)


@bench
async def a_pause_keeps_blocks_progress_and_a_remembered_credit(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    kv_free = regmap.GROUP + regmap.Group.KV_FREE
    await set_group(it, 0, regmap.Group.KV_BLOCKS, 20)
    await set_group(it, 0, SEATS, 1)
    low = await host.join(rows=600, tier=2, kv_blocks=12)
    await host.credit(low)
    await it.expect(CommitKind.CREDIT, id=low, stage=3)
    await lane.head()
    high = await host.join(rows=1, tier=1, kv_blocks=3)
    await lane.serve_pass()
    await it.expect(CommitKind.PAUSE, id=low, detail=2)
    assert await it.read32(kv_free) == 5
    await lane.serve_pass(finished=1)
    await it.expect(CommitKind.RETIRE, id=high)
    await it.expect(CommitKind.SEAT, id=low, detail=2)
    await it.expect(CommitKind.CHUNK, id=low, detail=chunk(256, 256))
    assert await it.read32(kv_free) == 8
    await host.park(low)
    await it.expect(CommitKind.PARK, id=low, stage=2)
    await lane.serve_pass()
    await it.expect(CommitKind.PARKED, stage=0, detail=1)


@bench
async def one_paused_while_parked_queues_again_when_credited(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    await set_group(it, 0, SEATS, 1)
    low = await host.join(rows=1, tier=2, stepped=1)
    await lane.serve_pass()
    await it.expect(CommitKind.PARKED, stage=0)
    high = await host.join(rows=1, tier=0)
    await it.expect(CommitKind.PAUSE, id=low, detail=2 | 1 << 8)
    await it.expect(CommitKind.SEAT, id=high, stage=0)
    await lane.serve_pass(finished=1)
    await it.expect(CommitKind.RETIRE, id=high)
    await it.rest()
    assert not it.seen(CommitKind.SEAT)
    await host.credit(low)
    await it.expect(CommitKind.CREDIT, id=low, stage=1)
    await it.expect(CommitKind.SEAT, id=low, detail=2 | 1 << 8)


@bench
async def chunks_share_the_row_budget_with_decode_rows(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    await set_group(it, 0, ROWS, it.params.seats + 16)
    for _ in range(3):
        await host.join(rows=1)
    await lane.serve_pass()
    await lane.head()
    prompt = await host.join(rows=100)
    await lane.serve_pass()
    await it.expect(CommitKind.PLAN, detail=plan(3))
    # 32 rows less 3 are 29, and the largest power of two within is 16.
    await it.expect(CommitKind.CHUNK, id=prompt, detail=chunk(0, 16, first=True))
    await it.expect(CommitKind.FORM, detail=19)


@bench
async def a_prompt_that_takes_the_whole_budget_is_complete(it: Bench) -> None:
    prompt = await Host(it).join(rows=256)
    await it.expect(CommitKind.CHUNK, id=prompt, detail=chunk(0, 256, first=True, last=True))


@bench
async def chunks_go_by_tier_then_by_queue_and_leave_minimum_rows(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    await set_group(it, 0, ROWS, 64)
    await set_tier(it, 2, regmap.Tier.MIN_ROWS, 20)
    await house(it, 4, 0)
    await lane.head()
    low, high, second = [await host.join(rows=100, tier=tier) for tier in (2, 0, 0)]
    await lane.serve_pass(finished=1)
    await it.expect(CommitKind.PLAN, detail=plan(0))
    # 64 - 20: 32 rows; then 32 - 20: 8; then 24 are left to tier 2: 16.
    await it.expect(CommitKind.CHUNK, id=high, detail=chunk(0, 32, first=True))
    await it.expect(CommitKind.CHUNK, id=second, detail=chunk(0, 8, first=True))
    await it.expect(CommitKind.CHUNK, id=low, detail=chunk(0, 16, first=True))
    await it.expect(CommitKind.FORM, stage=3, detail=56)


@bench
async def the_cost_of_a_row_grows_with_its_position(it: Bench) -> None:
    host = Host(it)
    await set_group(it, 0, regmap.Group.COST, 100)
    await set_group(it, 0, regmap.Group.COST_CHUNK, 1 << 16 | 1)
    early = await host.join(rows=200)
    await it.expect(CommitKind.CHUNK, id=early, detail=chunk(0, 64, first=True))
    await host.cancel(early)
    await Lane(it).serve_pass()
    late = await host.join(rows=200, start=4096)
    # 1 + 1 x 4 for each row.
    await it.expect(CommitKind.CHUNK, id=late, detail=chunk(4096, 16, first=True))


@bench
async def decode_rows_cost_something_too(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    await set_group(it, 0, regmap.Group.COST, 100)
    await set_group(it, 0, regmap.Group.COST_CHUNK, 1)
    await set_group(it, 0, regmap.Group.COST_DECODE, 30)
    for _ in range(2):
        await host.join(rows=1)
    await lane.serve_pass()
    await lane.head()
    prompt = await host.join(rows=200)
    await lane.serve_pass()
    await it.expect(CommitKind.CHUNK, id=prompt, detail=chunk(0, 32, first=True))
    await host.join(rows=1)
    await host.join(rows=1)
    await lane.serve_pass()
    # 100 - 2 x 30 are 40. The first that came takes one of the 8 left to it; of 7, no chunk can be made.
    await it.expect(CommitKind.CHUNK, id=prompt, detail=chunk(32, 32))
    await it.expect(CommitKind.FORM, stage=2, detail=2 + 32 + 1)
    await set_group(it, 0, regmap.Group.COST_DECODE, 40)
    await lane.serve_pass()
    # Three decode rows cost more than there is, and leave nothing to a prompt.
    await it.expect(CommitKind.FORM, stage=0, detail=3)


@bench
async def a_pass_without_decode_rows_takes_8_rows_at_least(it: Bench) -> None:
    await set_group(it, 0, regmap.Group.COST, 0)
    await set_group(it, 0, regmap.Group.COST_CHUNK, 1)
    lane = Lane(it)
    await house(it, 3, 0)
    await lane.head()
    first, _ = [await Host(it).join(rows=100) for _ in range(2)]
    await lane.serve_pass(finished=1)
    await it.expect(CommitKind.CHUNK, id=first, detail=chunk(0, 8, first=True))
    await it.expect(CommitKind.FORM, stage=1, detail=8)


@bench
async def a_pass_has_16_entries_at_most(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    await house(it, it.params.seats, 0)
    await lane.head()
    requests = [await host.join(rows=2) for _ in range(it.params.seats)]
    await lane.serve_pass(finished=1)
    await it.expect(CommitKind.FORM, stage=16, detail=32)
    await lane.serve_pass()
    await it.expect(CommitKind.PLAN, detail=plan(16))
    assert len(requests) == 16


@bench
async def a_loop_point_goes_in_its_order(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    await set_group(it, 0, SEATS, 5)
    finishes, cancelled, parks = [await host.join(rows=1, tier=3) for _ in range(3)]
    prompts = [await host.join(rows=600, tier=3) for _ in range(2)]
    await lane.serve_pass()
    await lane.serve_pass()
    await lane.head()
    high = [await host.join(rows=1, tier=0) for _ in range(3)]
    await host.cancel(cancelled)
    await host.park(parks)
    it.seen()
    await lane.serve_pass(finished=0b00001)
    await it.rest()
    steps = (
        CommitKind.RETIRE,
        CommitKind.ADVANCE,
        CommitKind.PARKED,
        CommitKind.SEAT,
        CommitKind.PAUSE,
        CommitKind.PLAN,
        CommitKind.CHUNK,
        CommitKind.FORM,
    )
    seen = [(event.kind, event.id if event.kind not in _PASS_KINDS else 0) for event in it.seen(*steps)]
    assert seen[:2] == [(CommitKind.RETIRE, finishes), (CommitKind.RETIRE, cancelled)]
    assert seen[2:4] == [(CommitKind.ADVANCE, prompt) for prompt in reversed(prompts)]
    assert seen[4:9] == [
        (CommitKind.PARKED, 0),
        (CommitKind.SEAT, high[0]),
        (CommitKind.SEAT, high[1]),
        (CommitKind.PAUSE, parks),
        (CommitKind.SEAT, high[2]),
    ]
    assert seen[9] == (CommitKind.PLAN, 0)
    assert seen[10:-1] == [(CommitKind.CHUNK, request) for request in (*high, *prompts)]
    assert seen[-1] == (CommitKind.FORM, 0)


_PASS_KINDS = (CommitKind.PARKED, CommitKind.PLAN, CommitKind.FORM)


@bench
async def requests_that_leave_or_park_are_left_out(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    await house(it, 4, 0)
    await lane.head()
    cancelled, parked, stays = [await host.join(rows=5) for _ in range(3)]
    await host.cancel(cancelled)
    await host.park(parked)
    await it.rest()
    it.seen()
    await lane.serve_pass()
    await it.rest()
    taken = {event.id for event in it.seen(CommitKind.CHUNK)}
    assert stays in taken
    assert not {cancelled, parked} & taken


@bench
async def a_prompt_parked_while_it_is_read_comes_back_to_the_front_when_credited(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    first = await host.join(rows=600)
    await lane.head()
    second, third = await host.join(rows=600), await host.join(rows=100)
    await host.park(first)
    await host.park(second)
    await lane.serve_pass()
    await it.expect(CommitKind.ADVANCE, id=first)
    await it.expect(CommitKind.PARKED, stage=0)
    await it.expect(CommitKind.CHUNK, id=third, detail=chunk(0, 100, first=True, last=True))
    await it.expect(CommitKind.FORM, stage=1)
    await host.credit(second)
    await host.credit(first)
    await lane.serve_pass()
    await it.expect(CommitKind.CHUNK, id=first, detail=chunk(256, 128))
    await it.expect(CommitKind.CHUNK, id=second, detail=chunk(0, 64, first=True))
    await it.expect(CommitKind.FORM, stage=2)


async def comes_along_cancelled(it: Bench, request: int, cycles: int) -> bool:
    """Whether a request cancelled in so many cycles is in the pass that is formed; all is over afterwards."""
    await it.run(cycles)
    await Host(it).cancel(request)
    it.bus.pause = (0, 1, 3)
    await it.rest()
    kinds = [event.kind for event in it.seen(CommitKind.PLAN, CommitKind.CANCEL, CommitKind.CHUNK)]
    while it.golden.groups[0].seated:
        await Lane(it).serve()
        await it.rest()
    return kinds == [CommitKind.PLAN, CommitKind.CANCEL, CommitKind.CHUNK]


@bench
async def one_cancelled_before_it_is_bound_is_bound_all_the_same(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    await set_group(it, 0, SEATS, 1)
    along = 0
    for cycles in range(24):
        low = await host.join(rows=1, tier=2, stepped=1)
        await lane.serve_pass()
        await it.expect(CommitKind.PARKED, stage=0)
        high = await host.join(rows=1, tier=0)
        await it.expect(CommitKind.PAUSE, id=low, detail=2 | 1 << 8)
        await lane.serve_pass(finished=1)
        await it.expect(CommitKind.RETIRE, id=high)
        await it.rest()
        it.seen()
        it.bus.pause = (0,)
        await host.credit(low)
        along += await comes_along_cancelled(it, low, cycles)
    assert along


@bench
async def a_prompt_that_is_cancelled_while_its_pass_is_formed_comes_along_once_more(it: Bench) -> None:
    host = Host(it)
    along = 0
    for cycles in range(24):
        request = await host.offer()
        await host.attributes(rows=5)
        it.bus.pause = (0,)
        await host.command(request)
        along += await comes_along_cancelled(it, request, cycles)
    assert along


@bench
async def the_next_stage_is_dispatched_ahead_but_never_across_the_loop_point(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    request = await host.join(rows=1)
    outstanding: list[Event] = []
    for _ in range(3):
        while True:
            await it.rest()
            outstanding += it.seen(CommitKind.DISPATCH)
            assert len(outstanding) == (1 if outstanding[0].detail >> 29 & 1 else 2)
            head = await lane.take()
            assert head.sequence == outstanding[0].id
            await lane.done(outstanding.pop(0).id)
            if head.last:
                assert not outstanding
                break
    await host.cancel(request)


@bench
async def a_lane_that_finishes_everybody_rests(it: Bench) -> None:
    lane = Lane(it)
    requests = await house(it, 4, 0, 1, 2, 3)
    await lane.serve_pass()
    await lane.serve_pass(finished=0b1111)
    for seat, request in enumerate(requests):
        await it.expect(CommitKind.RETIRE, id=request, stage=RetireReason.FINISHED, detail=seat)
    await it.rest()
    assert not it.seen(CommitKind.FORM)
    assert (await lane.look()).sequence == 0
