"""Completions of every kind: late, early, repeated, out of order, of somebody else."""

from __future__ import annotations

from cuelight import regmap
from cuelight.regmap import CommitKind, RetireReason

from .bench import Bench, bench
from .host import Host, set_lane, set_tier
from .lane import Lane

IGNORED = regmap.COUNTERS + regmap.Counters.COMPLETIONS_IGNORED


async def ignored(it: Bench, lane: Lane, sequence: int, entry: int | None = None) -> None:
    await lane.done(sequence, entry)
    await it.expect(CommitKind.COMPLETE_IGNORED, lane=lane.number, id=sequence)


@bench
async def only_the_oldest_sequence_in_its_own_entry_counts(it: Bench) -> None:
    lane = Lane(it)
    await Host(it).join(rows=1)
    first = (await lane.take()).sequence
    second = (await lane.take()).sequence
    wrong = (0, 0xFFFF_FFFF, first - 1, first + 16, first + (1 << 16), first ^ 1 << 31, second, second + 1)
    for sequence in wrong:
        await ignored(it, lane, sequence & 0xFFFF_FFFF)
    for entry in range(16):
        if entry != first % 16:
            await ignored(it, lane, first, entry)
    assert await it.read32(IGNORED) == len(wrong) + 15
    await lane.done(first)
    await it.expect(CommitKind.COMPLETE, id=first)
    await ignored(it, lane, first)
    await lane.done(second)
    await it.expect(CommitKind.COMPLETE, id=second)
    await ignored(it, lane, second)


@bench
async def the_younger_of_two_dispatches_waits_for_the_older(it: Bench) -> None:
    lane = Lane(it)
    await Host(it).join(rows=1)
    first, second = (await lane.take()).sequence, (await lane.take()).sequence
    for _ in range(3):
        await ignored(it, lane, second)
    await lane.done(first)
    await it.expect(CommitKind.COMPLETE, id=first)
    await lane.done(second)
    await it.expect(CommitKind.COMPLETE, id=second)


@bench
async def finished_words_wait_for_the_completion_of_their_own_lane(it: Bench) -> None:
    host, lanes = Host(it), (Lane(it, 0), Lane(it, 1))
    requests = [await host.join(rows=1, group=lane.number) for lane in lanes]
    head = await lanes[1].take()
    while not head.last:
        await lanes[1].done(head.sequence)
        head = await lanes[1].take()
    await lanes[1].finish(head.sequence, 0b1)
    await lanes[0].serve_pass()
    await it.rest()
    assert not it.seen(CommitKind.RETIRE)
    await lanes[1].done(head.sequence)
    await it.expect(CommitKind.RETIRE, id=requests[1], stage=RetireReason.FINISHED)


@bench
async def a_completion_may_come_before_its_dispatch_was_taken(it: Bench) -> None:
    lane = Lane(it)
    await Host(it).join(rows=1)
    head = await lane.head()
    await lane.done(head.sequence)
    await it.expect(CommitKind.COMPLETE, id=head.sequence)
    await lane.pop(head.sequence)
    await it.rest()
    assert not it.seen(CommitKind.TAKEN)


@bench
async def nothing_is_outstanding(it: Bench) -> None:
    lane = Lane(it)
    for sequence in (0, 1, 2, 0xFFFF_FFFF):
        await lane.finish(sequence, 0xFFFF)
        await ignored(it, lane, sequence)


@bench
async def the_other_lanes_completions_are_not_ours(it: Bench) -> None:
    host = Host(it)
    await set_lane(it, 1, regmap.Lane.SEQUENCE, 0x500)
    await host.join(rows=1, group=0)
    await host.join(rows=1, group=1)
    lanes = Lane(it, 0), Lane(it, 1)
    sequences = [(await lane.take()).sequence for lane in lanes]
    assert sequences == [1, 0x500]
    await ignored(it, lanes[0], sequences[1])
    await ignored(it, lanes[1], sequences[0])
    for lane, sequence in zip(lanes, sequences, strict=True):
        await lane.done(sequence)
        await it.expect(CommitKind.COMPLETE, lane=lane.number, id=sequence)


async def decoding(it: Bench, lane: Lane, count: int) -> list[int]:
    """Requests that decode in seats 0 and up."""
    host = Host(it, 0)
    requests = [await host.join(rows=1, group=lane.number) for _ in range(count)]
    await lane.serve_pass()
    await lane.serve_pass()
    return requests


@bench
async def finished_words_add_up_until_their_batch_is_done(it: Bench) -> None:
    lane = Lane(it)
    requests = await decoding(it, lane, 6)
    head = await lane.take()
    await lane.finish(head.sequence, 0b000001)
    await lane.finish(head.sequence, 0b001000)
    await ignored(it, lane, head.sequence + 7)
    await lane.finish(head.sequence, 0b100001)
    await lane.done(head.sequence)
    await it.expect(CommitKind.COMPLETE, id=head.sequence)
    await lane.serve_pass()
    for seat in (0, 3, 5):
        await it.expect(CommitKind.RETIRE, id=requests[seat], stage=RetireReason.FINISHED, detail=seat)
    await it.rest()
    assert not it.seen(CommitKind.RETIRE)


@bench
async def finished_words_of_any_stage_count_at_the_loop_point(it: Bench) -> None:
    lane = Lane(it)
    requests = await decoding(it, lane, 3)
    await lane.serve(finished=0b001)
    await lane.serve(finished=0b100)
    await lane.serve_pass()
    await it.expect(CommitKind.RETIRE, id=requests[0])
    await it.expect(CommitKind.RETIRE, id=requests[2])


@bench
async def finished_words_in_other_entries_are_lost(it: Bench) -> None:
    lane = Lane(it)
    await decoding(it, lane, 4)
    head = await lane.take()
    younger = await lane.take()
    for entry in range(16):
        if entry != head.sequence % 16:
            await lane.finish(entry, 0b1111)
    await lane.done(head.sequence)
    await it.expect(CommitKind.COMPLETE)
    await lane.done(younger.sequence)
    await it.expect(CommitKind.COMPLETE)
    await lane.serve_pass()
    await it.rest()
    assert not it.seen(CommitKind.RETIRE)


@bench
async def finished_seats_outside_the_pass_do_not_matter(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    (request,) = await decoding(it, lane, 1)
    late = await host.join(rows=1)
    await it.expect(CommitKind.SEAT, id=late, stage=1)
    await lane.serve_pass(finished=(1 << 256) - 2)
    await it.rest()
    assert not it.seen(CommitKind.RETIRE)
    await lane.serve_pass(finished=(1 << 256) - 1)
    await it.expect(CommitKind.RETIRE, id=request)
    await it.expect(CommitKind.RETIRE, id=late)


@bench
async def a_lane_may_report_seat_by_seat(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    await set_lane(it, 0, regmap.Lane.DEPTH, 1)
    requests = await decoding(it, lane, 5)
    for _ in range(6):
        head = await lane.take()
        it.random.shuffle(requests)
        for request in requests[:-1]:
            await host.done(request)
            await it.expect(CommitKind.STAGE_DONE, id=request)
            await host.done(request)
            await it.expect(CommitKind.STAGE_DONE_IGNORED, id=request)
        await it.settle()
        assert not it.seen(CommitKind.COMPLETE)
        await host.done(requests[-1])
        await it.expect(CommitKind.STAGE_DONE, id=requests[-1])
        await it.expect(CommitKind.COMPLETE, id=head.sequence, stage=head.stage)


@bench
async def both_kinds_of_report_for_one_dispatch(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    await set_lane(it, 0, regmap.Lane.DEPTH, 1)
    requests = await decoding(it, lane, 3)
    head = await lane.take()
    await host.done(requests[0])
    await host.done(requests[1])
    await lane.done(head.sequence)
    await it.expect(CommitKind.COMPLETE, id=head.sequence)
    # The next dispatch begins with nobody reported.
    head = await lane.take()
    await host.done(requests[2])
    await it.expect(CommitKind.STAGE_DONE, id=requests[2])
    await lane.finish(head.sequence, 0b010)
    for request in requests[:2]:
        await host.done(request)
    await it.expect(CommitKind.COMPLETE, id=head.sequence)
    await ignored(it, lane, head.sequence)
    await lane.serve_pass()
    await it.expect(CommitKind.RETIRE, id=requests[1], stage=RetireReason.FINISHED)


@bench
async def stage_done_of_somebody_who_is_not_in_the_pass(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    await decoding(it, lane, 1)
    late = await host.join(rows=1)
    await lane.head()
    await host.done(late)
    await it.expect(CommitKind.STAGE_DONE_IGNORED, id=late)


@bench
async def sequences_that_begin_at_ffff_fff0_skip_zero_and_ffff(it: Bench) -> None:
    lane = Lane(it)
    await set_lane(it, 0, regmap.Lane.SEQUENCE, 0xFFFF_FFF0)
    await Host(it).join(rows=1)
    expected = [*range(0xFFFF_FFF0, 0xFFFF_FFFF), *range(1, 9)]
    for number, sequence in enumerate(expected):
        head = await lane.take()
        assert head.sequence == sequence
        await ignored(it, lane, expected[number - 1] if number else 0xFFFF_FFEF)
        await lane.done(sequence)
        await it.expect(CommitKind.COMPLETE, id=sequence)


@bench
async def low_halves_of_any_high_half_skip_zero_and_ffff(it: Bench) -> None:
    lane = Lane(it)
    await set_lane(it, 0, regmap.Lane.SEQUENCE, 0x0041_FFFD)
    await Host(it).join(rows=1)
    for sequence in (0x0041_FFFD, 0x0041_FFFE, 0x0042_0001, 0x0042_0002):
        assert (await lane.serve()).sequence == sequence


@bench
async def decision_cycles_are_saturated(it: Bench) -> None:
    """A request waits for a seat that its tier's floor keeps, for longer than a dispatch can tell."""
    host, lane = Host(it), Lane(it)
    first = await host.join(rows=1)
    await set_tier(it, 3, regmap.Tier.SEAT_FLOOR, it.params.seats)
    await host.join(rows=1, tier=3)
    await lane.serve_pass(finished=1)
    await it.expect(CommitKind.RETIRE, id=first)
    await it.run(4200)
    it.seen()
    await set_tier(it, 3, regmap.Tier.SEAT_FLOOR, 0)
    event = await it.expect(CommitKind.DISPATCH)
    assert event.detail >> 16 & 0xFFF == 0xFFF
