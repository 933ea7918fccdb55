"""Bars of requests, derived from the event trace."""

from __future__ import annotations

from itertools import pairwise

from cuelight.regmap import CommitKind, RetireReason
from cuelight.timeline import Phase, build_timeline
from cuelight.trace import Event

from .recorded_run import FIRST, SECOND, STAGE_COUNT, STAGE_NS, START_NS, record_run


def bars(index: int) -> list[tuple[int, int, Phase, int]]:
    return [(bar.pass_number, bar.stage, bar.phase, bar.rows) for bar in record_run().timeline().requests[index].bars]


def test_each_request_has_one_bar_for_each_stage_that_took_it_along() -> None:
    """kv-init only for whom it takes in, decode only for whom it samples."""
    prefill, decode = Phase.PREFILL, Phase.DECODE
    assert bars(0) == [
        *((1, stage, prefill, 256) for stage in (1, 2, 3)),
        *((2, stage, prefill, 8) for stage in (2, 3, 4)),
        *((3, stage, decode, 1) for stage in (2, 3, 4)),
        *((4, stage, decode, 1) for stage in (2, 3, 4)),
    ]
    assert bars(1) == [
        *((3, stage, prefill, 12) for stage in (1, 2, 3, 4)),
        *((4, stage, decode, 1) for stage in (2, 3, 4)),
    ]


def test_bars_last_from_dispatch_to_completion() -> None:
    """Times count from the first event; a lane's stages don't overlap."""
    timeline = record_run().timeline()
    assert timeline.origin_ns == START_NS
    assert timeline.duration_ns == 13 * STAGE_NS
    runs = [run for one in timeline.passes for run in one.stages]
    assert [run.start_ns for run in runs] == [index * STAGE_NS for index in range(13)]
    assert all(before.end_ns <= after.start_ns for before, after in pairwise(runs))
    assert {run.decision_cycles for run in runs} == {7}


def test_life_of_a_request_is_noted() -> None:
    """Tier, admission, seat and end; None for what the trace does not show."""
    first, second = record_run().timeline().requests
    assert (first.id, first.tier, first.admitted_ns, first.seated_ns) == (FIRST, 2, 0, 0)
    assert (first.reason, first.retired_ns) == (RetireReason.FINISHED, 13 * STAGE_NS)
    assert (second.id, second.admitted_ns) == (SECOND, 3 * STAGE_NS)
    assert (second.reason, second.retired_ns) == (None, None)


def test_passes_know_who_shares_them() -> None:
    """Rows, decode rows and chunks as planned and formed."""
    shapes = [(one.rows, one.decode_rows, one.chunks) for one in record_run().timeline().passes]
    assert shapes == [(256, 0, 1), (8, 0, 1), (13, 1, 1), (2, 2, 0)]


def test_an_entry_that_only_binds_is_a_decode_row() -> None:
    """A paused request that comes back is one of its pass, not two."""
    request = 0x1_0000
    events = [
        Event(0, CommitKind.SEAT, 0, request, 0, 1 << 8),
        Event(0, CommitKind.PLAN, 0, 1, 0, 1 | 1 << 16),
        Event(0, CommitKind.CHUNK, 0, request, 0, 20),
        Event(0, CommitKind.FORM, 0, 1, 1, 1),
    ]
    (one,) = build_timeline(events, STAGE_COUNT).passes
    assert (one.rows, one.decode_rows, one.chunks) == (1, 1, 0)


def test_a_trace_that_begins_amid_a_pass_gives_what_it_can() -> None:
    """No bars for members of a pass whose plan is not in the trace, all of them from the next pass on."""
    events = record_run().events
    cut = next(index for index, event in enumerate(events) if event.kind is CommitKind.DISPATCH and event.id == 4)
    timeline = build_timeline(events[cut:], STAGE_COUNT)
    by_id = {row.id: row for row in timeline.requests}
    assert {bar.pass_number for bar in by_id[FIRST].bars} == {3, 4}
    assert by_id[FIRST].admitted_ns is None


def test_what_was_dispatched_before_the_trace_takes_nothing_with_it() -> None:
    """A lane holds two dispatches; both complete after a second pass was formed, whose bars are all there."""
    request, second = 0x1_0000, 1 << 10
    steps = [
        (CommitKind.SEAT, request, 3, 0),
        (CommitKind.PLAN, 5, 1, 1 << 16),
        (CommitKind.CHUNK, request, 3, 8 << 20 | 1 << 30 | 1 << 31),
        (CommitKind.FORM, 5, 1, 8),
        (CommitKind.COMPLETE, 1, 2, 0),
        (CommitKind.DISPATCH, 3, 1, second | 1 << 28),
        (CommitKind.COMPLETE, 2, 3, 0),
        (CommitKind.DISPATCH, 4, 2, second),
        (CommitKind.COMPLETE, 3, 1, 0),
        (CommitKind.DISPATCH, 5, 3, second),
        (CommitKind.COMPLETE, 4, 2, 0),
        (CommitKind.COMPLETE, 5, 3, 0),
    ]
    events = [Event(at, kind, 0, id, stage, detail) for at, (kind, id, stage, detail) in enumerate(steps, start=1)]
    (row,) = build_timeline(events, STAGE_COUNT).requests
    assert [bar.stage for bar in row.bars] == [1, 2, 3]


def test_a_reset_group_forgets_its_pass() -> None:
    """A completion that comes after the reset makes no bar, and the seat can belong to another request."""
    events = list(record_run().events)
    cut = next(index for index, event in enumerate(events) if event.kind is CommitKind.COMPLETE and event.id == 10)
    reset = Event(events[cut].time_ns, CommitKind.GROUP_RESET, 0, 0, 0, 0)
    lost = [Event(reset.time_ns, CommitKind.RETIRE, 0, FIRST + seat, 3, seat) for seat in (0, 1)]
    timeline = build_timeline([*events[:cut], reset, *lost, events[cut]], STAGE_COUNT)
    assert [row.reason for row in timeline.requests] == [RetireReason.LANE_LOST] * 2
    assert [len(row.bars) for row in timeline.requests] == [8, 3]


def test_a_slot_used_again_is_another_row() -> None:
    """The id is the next epoch's; both lives are shown."""
    events = record_run().events
    again = Event(events[-1].time_ns, CommitKind.ADMIT, 0, FIRST + 0x10000, 1 << 3, 1)
    rows = build_timeline([*events, again], STAGE_COUNT).requests
    assert [row.id for row in rows] == [FIRST, SECOND, FIRST + 0x10000]


def test_an_empty_trace_is_an_empty_timeline() -> None:
    """Nothing to show is no error."""
    timeline = build_timeline([], STAGE_COUNT)
    assert (timeline.requests, timeline.passes, timeline.duration_ns) == ([], [], 0)
    assert [timeline.stage_name(stage) for stage in range(5)] == ["prefill", "kv-init", "layer-1", "layer-2", "decode"]
