"""Second passes: prompts of higher tiers beside a pass that is alive (docs/device.md §6, §7)."""

from __future__ import annotations

from cuelight import regmap
from cuelight.regmap import CommitKind, RetireReason

from .bench import Bench, bench
from .crowd import Crowd
from .details import chunk, plan
from .host import Host, set_group, set_lane, set_tier
from .lane import Lane

SEATS = regmap.Group.SEATS
BITMAP = regmap.Poll.RECORD + regmap.Record.BITMAP
ENTRY = regmap.Poll.RECORD + regmap.Record.ENTRY
ENTRY_ROWS = ENTRY + regmap.Entry.ROWS
VIP, MIDDLE, LOW = 0, 1, 2


async def decoding(it: Bench, count: int = 1, tier: int = LOW) -> tuple[Lane, list[int]]:
    """Requests of a tier that decode in pass 0, whose first dispatch waits for a lane of depth 1."""
    await set_lane(it, 0, regmap.Lane.DEPTH, 1)
    lane = Lane(it)
    requests = [await Host(it).join(rows=1, tier=tier) for _ in range(count)]
    for _ in range(min(count, 2)):
        await lane.serve_pass()
    await it.rest()
    it.seen()
    return lane, requests


async def served(lane: Lane, dispatches: int) -> list[tuple[int, int]]:
    """Pass and stage of the next dispatches, which are served."""
    heads = [await lane.serve() for _ in range(dispatches)]
    return [(head.buffer >> 1, head.stage) for head in heads]


async def planned(it: Bench) -> list[int]:
    """Which passes were planned since the commits were looked at last."""
    await it.rest()
    return [event.stage for event in it.seen(CommitKind.PLAN)]


@bench
async def a_prompt_of_a_higher_tier_gets_a_pass_while_pass_0_decodes(it: Bench) -> None:
    await decoding(it)
    vip = await Host(it).join(rows=40, tier=VIP)
    await it.expect(CommitKind.SEAT, id=vip, stage=1, detail=VIP)
    await it.expect(CommitKind.PLAN, stage=1, detail=plan(0))
    await it.expect(CommitKind.CHUNK, id=vip, stage=1, detail=chunk(0, 40, first=True, last=True))
    await it.expect(CommitKind.FORM, stage=1, detail=40)


@bench
async def it_goes_first_from_the_next_stage_on_and_leaves_pass_0_a_dispatch_before_the_next_one(it: Bench) -> None:
    lane, _ = await decoding(it)
    await Host(it).join(rows=280, tier=VIP)
    await it.rest()
    assert await served(lane, 1) == [(0, 2)]
    # 256 rows, which do not sample; then the other 24.
    assert await served(lane, 6) == [(1, stage) for stage in range(1, 7)]
    assert await served(lane, 1) == [(0, 3)]
    assert await served(lane, 6) == [(1, stage) for stage in range(2, 8)]
    assert await served(lane, 4) == [(0, stage) for stage in range(4, 8)]


@bench
async def each_pass_has_its_record_and_the_window_shows_the_heads(it: Bench) -> None:
    lane, _ = await decoding(it)
    vip = await Host(it).join(rows=280, tier=VIP)
    await it.rest()
    below = (await lane.head()).buffer
    for buffer, rest in ((2, 5), (3, 5)):
        head = await lane.head()
        assert (head.buffer, head.rows) == (below, 1)
        assert await it.read32(lane.poll(BITMAP)) == 0b1
        assert await it.read32(lane.poll(ENTRY)) == 0
        await lane.serve()
        head = await lane.head()
        assert (head.buffer, head.first) == (buffer, 1)
        assert await it.read32(lane.poll(BITMAP)) == 0
        assert await it.read32(lane.poll(ENTRY)) == vip
        assert await it.read32(lane.poll(ENTRY_ROWS)) == (256, 24)[buffer - 2]
        await served(lane, 1 + rest)


@bench
async def with_two_dispatches_outstanding_the_window_changes_with_the_head(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    await host.join(rows=1, tier=LOW)
    await lane.serve_pass()
    await it.rest()
    vip = await host.join(rows=5, tier=VIP)
    await it.expect(CommitKind.FORM, stage=1, detail=5)
    # Both that are outstanding belong to pass 0.
    heads = await lane.take(), await lane.take()
    assert [head.buffer >> 1 for head in heads] == [0, 0]
    await lane.done(heads[0].sequence)
    head = await lane.head()
    assert (head.buffer >> 1, head.stage) == (1, 1)
    assert await it.read32(lane.poll(ENTRY)) == vip
    # It is completed before it was taken, so the window goes on to the next.
    for sequence in (heads[1].sequence, head.sequence):
        await lane.done(sequence)
    assert (await lane.head()).stage == 2
    await it.expect(CommitKind.COMPLETE, id=heads[0].sequence)
    await it.expect(CommitKind.COMPLETE, id=heads[1].sequence)
    await it.expect(CommitKind.COMPLETE, id=head.sequence)


@bench
async def its_requests_decode_from_the_next_pass_0_on(it: Bench) -> None:
    lane, _ = await decoding(it)
    vip = await Host(it).join(rows=5, tier=VIP)
    await it.rest()
    await lane.serve()
    await served(lane, 7)
    await it.expect(CommitKind.LOOP_POINT, stage=1)
    await it.expect(CommitKind.ADVANCE, id=vip, stage=1, detail=5 | 1 << 31)
    await it.rest()
    it.seen()
    # It is in no pass until pass 0 has gone through 3 to 7.
    await served(lane, 5)
    await it.expect(CommitKind.LOOP_POINT, stage=0)
    await it.expect(CommitKind.PLAN, stage=0, detail=plan(2))
    await lane.head()
    assert await it.read32(lane.poll(BITMAP)) == 0b11


@bench
async def pass_0_is_formed_beside_a_second_pass(it: Bench) -> None:
    lane, _ = await decoding(it)
    await served(lane, 5)
    last = await lane.take()
    assert last.last
    await Host(it).join(rows=5, tier=VIP)
    await it.expect(CommitKind.FORM, stage=1, detail=5)
    await lane.done(last.sequence)
    await it.expect(CommitKind.LOOP_POINT, stage=0)
    await it.expect(CommitKind.PLAN, stage=0, detail=plan(1))
    assert await served(lane, 8) == [*((1, stage) for stage in range(1, 8)), (0, 2)]


@bench
async def equal_and_lower_tiers_wait_for_pass_0(it: Bench) -> None:
    lane, _ = await decoding(it, tier=MIDDLE)
    for tier in (MIDDLE, LOW):
        await Host(it).join(rows=5, tier=tier)
    assert await planned(it) == []
    assert await served(lane, 6) == [(0, stage) for stage in range(2, 8)]
    assert await planned(it) == [0]


@bench
async def it_takes_along_only_tiers_above_all_members_of_pass_0(it: Bench) -> None:
    host = Host(it)
    _, (high,) = await decoding(it, tier=MIDDLE)
    await host.join(rows=300, tier=LOW)
    assert await planned(it) == []
    first, second = await host.join(rows=5, tier=VIP), await host.join(rows=5, tier=VIP)
    await it.rest()
    assert {event.id for event in it.seen(CommitKind.CHUNK)} <= {first, second}
    assert high not in (first, second)


@bench
async def its_loop_point_does_not_wait_for_pass_0(it: Bench) -> None:
    host = Host(it)
    lane, (low,) = await decoding(it)
    finishes, cancelled = await host.join(rows=5, tier=VIP), await host.join(rows=5, tier=VIP)
    await it.rest()
    await lane.serve()
    await lane.serve_pass(finished=0b010)
    await it.expect(CommitKind.RETIRE, id=finishes, stage=RetireReason.FINISHED, detail=1)
    await host.cancel(low)
    await it.expect(CommitKind.CANCEL, id=low, stage=2)
    await lane.serve()
    await host.cancel(cancelled)
    await lane.serve_pass()
    # The one of pass 0 stays until that pass is through.
    await it.expect(CommitKind.RETIRE, id=cancelled, stage=RetireReason.CANCELLED, detail=2)
    await it.rest()
    assert not it.seen(CommitKind.RETIRE)
    await lane.serve_pass()
    await it.expect(CommitKind.RETIRE, id=low, stage=RetireReason.CANCELLED, detail=0)


@bench
async def finished_bits_reach_their_own_pass_only(it: Bench) -> None:
    lane, (low,) = await decoding(it)
    vip = await Host(it).join(rows=5, tier=VIP)
    await it.rest()
    await lane.serve(finished=0b10)
    await served(lane, 6)
    await lane.serve(finished=0b01)
    await it.expect(CommitKind.LOOP_POINT, stage=1)
    await it.rest()
    assert not it.seen(CommitKind.RETIRE)
    await lane.serve_pass(finished=0b11)
    await it.expect(CommitKind.RETIRE, id=low, stage=RetireReason.FINISHED)
    await it.rest()
    assert vip in {request.id for request in it.golden.groups[0].seated.values()}


@bench
async def a_seat_in_no_pass_is_paused_at_once(it: Bench) -> None:
    host = Host(it)
    await set_group(it, 0, SEATS, 2)
    _, (low,) = await decoding(it)
    waits = await host.join(rows=5, tier=LOW)
    await it.expect(CommitKind.SEAT, id=waits, stage=1)
    vip = await host.join(rows=5, tier=VIP)
    await it.expect(CommitKind.PAUSE, id=waits, stage=1, detail=LOW)
    await it.expect(CommitKind.SEAT, id=vip, stage=1, detail=VIP)
    await it.expect(CommitKind.PLAN, stage=1)
    assert it.golden.groups[0].seated[0].id == low


@bench
async def a_seat_floor_keeps_seats_for_higher_tiers(it: Bench) -> None:
    host = Host(it)
    await set_group(it, 0, SEATS, 3)
    await set_tier(it, LOW, regmap.Tier.SEAT_FLOOR, 1)
    lane, _ = await decoding(it, count=3)
    group = it.golden.groups[0]
    assert sorted(group.seated) == [0, 1]
    vip = await host.join(rows=5, tier=VIP)
    await it.expect(CommitKind.SEAT, id=vip, stage=2, detail=VIP)
    await lane.serve()
    await lane.serve_pass(finished=0b100)
    await it.expect(CommitKind.RETIRE, id=vip)
    await it.rest()
    assert not it.seen(CommitKind.SEAT)
    # Below its minimum seats a tier's floor does not hold.
    await set_tier(it, LOW, regmap.Tier.MIN_SEATS, 3)
    await it.expect(CommitKind.SEAT, stage=2, detail=LOW)


@bench
async def a_seat_that_its_floor_takes_from_a_tier_goes_to_a_higher_one(it: Bench) -> None:
    """All seats but the floor's are taken; a higher tier with the same floor gets one of a lower tier."""
    host = Host(it)
    await set_group(it, 0, SEATS, 2)
    for tier in (MIDDLE, LOW):
        await set_tier(it, tier, regmap.Tier.SEAT_FLOOR, 1)
    lane, (low,) = await decoding(it)
    middle = await host.join(rows=5, tier=MIDDLE)
    await it.rest()
    assert not it.seen(CommitKind.SEAT, CommitKind.PAUSE), "the only seat taken is in a pass"
    await lane.serve_pass()
    await it.expect(CommitKind.PAUSE, id=low, stage=0, detail=LOW)
    await it.expect(CommitKind.SEAT, id=middle, stage=0, detail=MIDDLE)


@bench
async def a_lower_tier_gets_the_seat_that_a_higher_one_leaves_free(it: Bench) -> None:
    host = Host(it)
    await set_group(it, 0, SEATS, 3)
    await set_tier(it, MIDDLE, regmap.Tier.SEAT_FLOOR, 3)
    await host.join(rows=5, tier=MIDDLE)
    await it.rest()
    assert not it.seen(CommitKind.SEAT)
    low = await host.join(rows=5, tier=LOW)
    await it.expect(CommitKind.SEAT, id=low, stage=0, detail=LOW)


@bench
async def nobody_is_paused_in_a_pass(it: Bench) -> None:
    """A full house, in which a tier below its minimum waits through two second passes for the one in pass 0.

    Between them the higher tier is parked: the second one is planned with no loop point before it.
    """
    host = Host(it)
    await set_group(it, 0, SEATS, 2)
    await set_tier(it, MIDDLE, regmap.Tier.MIN_SEATS, 1)
    lane, (low,) = await decoding(it)
    vip = await host.join(rows=280, tier=VIP)
    middle = await host.join(rows=5, tier=MIDDLE)
    await host.park(vip)
    assert [run for run, _ in await served(lane, 7)] == [0, *6 * [1]]
    await it.rest()
    await host.credit(vip)
    assert [run for run, _ in await served(lane, 11)] == [0, *6 * [1], *4 * [0]]
    await it.expect(CommitKind.PAUSE, id=low, stage=0, detail=LOW)
    await it.expect(CommitKind.SEAT, id=middle, stage=0, detail=MIDDLE)


@bench
async def a_reset_drops_both_passes(it: Bench) -> None:
    host = Host(it)
    lane, (low,) = await decoding(it)
    vip = await host.join(rows=5, tier=VIP)
    await it.rest()
    await lane.serve()
    head = await lane.take()
    assert head.buffer >> 1 == 1
    await it.write32(regmap.CONTROL + regmap.Control.GROUP_RESET, 0)
    for request in (low, vip):
        await it.expect(CommitKind.RETIRE, id=request, stage=RetireReason.LANE_LOST)
    await it.expect(CommitKind.GROUP_READY)
    await lane.done(head.sequence)
    await it.expect(CommitKind.COMPLETE_IGNORED, id=head.sequence)
    assert (await lane.look()).sequence == 0
    await host.join(rows=5)
    assert (await lane.head()).sequence == head.sequence + 1


@bench
async def it_takes_along_all_tiers_above(it: Bench) -> None:
    host = Host(it)
    lane, _ = await decoding(it)
    await host.join(rows=5, tier=MIDDLE)
    await it.expect(CommitKind.FORM, stage=1, detail=5)
    later = [await host.join(rows=5, tier=tier) for tier in (MIDDLE, VIP)]
    await lane.serve()
    await served(lane, 7)
    await lane.serve()
    await it.expect(CommitKind.PLAN, stage=1, detail=plan(0))
    await it.expect(CommitKind.CHUNK, id=later[1])
    await it.expect(CommitKind.CHUNK, id=later[0])


@bench
async def one_who_is_parked_gets_none(it: Bench) -> None:
    host = Host(it)
    lane, _ = await decoding(it)
    vip = await host.join(rows=300, tier=VIP)
    await it.expect(CommitKind.FORM, stage=1, detail=256)
    await host.park(vip)
    await lane.serve()
    await served(lane, 6)
    await it.expect(CommitKind.PARKED, stage=1, detail=0)
    await lane.serve()
    assert await planned(it) == []
    await host.credit(vip)
    await it.expect(CommitKind.CREDIT, id=vip, stage=2)
    await it.expect(CommitKind.PLAN, stage=1)


async def both_outstanding(it: Bench) -> tuple[Lane, list[int], int]:
    """Two dispatches are outstanding: the last of a second pass, then that of pass 0; their sequences."""
    host, lane = Host(it), Lane(it)
    await host.join(rows=1, tier=LOW)
    await lane.serve_pass()
    for _ in range(3):
        await lane.serve()
    vip = await host.join(rows=5, tier=VIP)
    await it.expect(CommitKind.FORM, stage=1, detail=5)
    while (head := await lane.head()).buffer >> 1 != 1 or not head.last:
        await lane.serve()
    heads = await lane.take(), await lane.take()
    assert [(head.buffer >> 1, head.last) for head in heads] == [(1, 1), (0, 1)]
    return lane, [head.sequence for head in heads], vip


@bench
async def its_loop_point_comes_first(it: Bench) -> None:
    crowd = Crowd(it)
    await crowd.gather()
    lane, sequences, _ = await both_outstanding(it)
    await crowd.hold()
    for sequence in sequences:
        await lane.done(sequence)
    await it.settle()
    assert crowd.holds
    for k in (1, 0):
        await it.expect(CommitKind.LOOP_POINT, lane=0, stage=k)


@bench
async def a_seat_is_reported_for_the_oldest_dispatch_only(it: Bench) -> None:
    _, sequences, vip = await both_outstanding(it)
    low = next(request.id for request in it.golden.groups[0].seated.values() if request.tier == LOW)
    host = Host(it)
    await host.done(low)
    await it.expect(CommitKind.STAGE_DONE_IGNORED, id=low)
    await host.done(vip)
    await it.expect(CommitKind.STAGE_DONE, id=vip)
    await it.expect(CommitKind.COMPLETE, id=sequences[0])
    await host.done(low)
    await it.expect(CommitKind.STAGE_DONE, id=low)
    await it.expect(CommitKind.COMPLETE, id=sequences[1])


@bench
async def a_tier_below_its_minimum_takes_a_seat_past_its_own_floor(it: Bench) -> None:
    host = Host(it)
    await set_group(it, 0, SEATS, 2)
    lane, requests = await decoding(it, count=2)
    await set_tier(it, VIP, regmap.Tier.SEAT_FLOOR, 1)
    await set_tier(it, VIP, regmap.Tier.MIN_SEATS, 1)
    vip = await host.join(rows=5, tier=VIP)
    await lane.serve_pass()
    await it.expect(CommitKind.PAUSE, id=requests[0], stage=0, detail=LOW)
    await it.expect(CommitKind.SEAT, id=vip, stage=0, detail=VIP)


@bench
async def one_leaves_or_parks_in_the_very_cycle_between_two_dispatches(it: Bench) -> None:
    host = Host(it)
    for cycles in range(16):
        await it.reset()
        lane, _ = await decoding(it)
        waits = [await host.join(rows=5, tier=LOW) for _ in range(2)]
        it.bus.pause = (0,)
        for act, kind, request in (
            (host.cancel, CommitKind.RETIRE, waits[0]),
            (host.park, CommitKind.PARKED, waits[1]),
        ):
            head = await lane.take()
            await act(request)
            await it.run(cycles)
            await lane.done(head.sequence)
            await it.expect(kind)
