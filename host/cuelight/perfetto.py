"""A run as Perfetto, or chrome://tracing, shows it: tracks for requests, lanes and the device itself.

Reference: Trace Event Format, the JSON object form ("traceEvents", complete events "X", instants "i", counters "C",
metadata "M"; times in microseconds).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from cuelight.regmap import CommitKind, RejectReason
from cuelight.timeline import Bar, Pass, Phase, RequestRow, Timeline
from cuelight.trace import Event

__all__ = ["trace_events"]

REQUESTS, LANES, DEVICE = 1, 2, 3


def trace_events(timeline: Timeline, events: Iterable[Event], labels: Mapping[int, str]) -> list[dict[str, Any]]:
    """Make the "traceEvents" of a run.

    Parameters
    ----------
    timeline, events
        The run, and the events that it was derived from.
    labels
        Titles for request ids; others are named by their id.
    """
    made = list(_name_processes())
    for track, row in enumerate(timeline.requests, 1):
        made += _request(timeline, row, track, labels.get(row.id, f"request {row.id:#010x}"))
    for lane in sorted({run.lane for one in timeline.passes for run in one.stages}):
        made.append(_meta("thread_name", LANES, lane + 1, name=f"lane {lane}"))
        for one in timeline.passes:
            made += _pass(timeline, one, lane)
    made += _device(timeline, events)
    return made


def _name_processes() -> Iterator[dict[str, Any]]:
    for pid, name in ((REQUESTS, "Requests"), (LANES, "Lanes"), (DEVICE, "Device")):
        yield _meta("process_name", pid, 0, name=name)
        yield _meta("process_sort_index", pid, 0, sort_index=pid)


def _request(timeline: Timeline, row: RequestRow, track: int, label: str) -> Iterator[dict[str, Any]]:
    yield _meta("thread_name", REQUESTS, track, name=label)
    yield _meta("thread_sort_index", REQUESTS, track, sort_index=track)
    if row.admitted_ns is not None:
        ends = [bar.start_ns for bar in row.bars[:1]] or [row.retired_ns or timeline.duration_ns]
        yield _slice("waits", REQUESTS, track, row.admitted_ns, ends[0], id=f"{row.id:#010x}", tier=row.tier)
    for number, group in groupby(row.bars, key=lambda bar: bar.pass_number):
        bars = list(group)
        yield _slice(_describe(bars[0]), REQUESTS, track, bars[0].start_ns, bars[-1].end_ns, pass_number=number)
        for bar in bars:
            yield _slice(timeline.stage_name(bar.stage), REQUESTS, track, bar.start_ns, bar.end_ns, lane=bar.lane)
    sampled = next((bar for bar in row.bars if bar.stage == timeline.stage_count - 1), None)
    if sampled:
        yield _instant("first token", REQUESTS, track, sampled.end_ns)
    if row.retired_ns is not None and row.reason is not None:
        yield _instant(row.reason.name.lower().replace("_", " "), REQUESTS, track, row.retired_ns)


def _describe(bar: Bar) -> str:
    return "decode" if bar.phase is Phase.DECODE else f"prefill {bar.rows} rows from {bar.position}"


def _pass(timeline: Timeline, one: Pass, lane: int) -> Iterator[dict[str, Any]]:
    """A pass on a lane."""
    stages = [run for run in one.stages if run.lane == lane]
    if not stages:
        return
    start, end, track = stages[0].start_ns, stages[-1].end_ns, lane + 1
    shape = {"rows": one.rows, "decode_rows": one.decode_rows, "chunks": one.chunks}
    yield _slice(f"pass {one.number}", LANES, track, start, end, **shape)
    yield _counter(f"lane {lane} rows", LANES, start, one.rows)
    yield _counter(f"lane {lane} rows", LANES, end, 0)
    for run in stages:
        yield _slice(
            timeline.stage_name(run.stage),
            LANES,
            track,
            run.start_ns,
            run.end_ns,
            sequence=run.sequence,
            rows=run.rows,
            decision_cycles=run.decision_cycles,
        )


def _device(timeline: Timeline, events: Iterable[Event]) -> Iterator[dict[str, Any]]:
    """Commands and their outcome, and how many requests live, which a trace that begins amid them counts from 0."""
    yield _meta("thread_name", DEVICE, 1, name="commands")
    live = 0
    for event in events:
        now = event.time_ns - timeline.origin_ns
        match event.kind:
            case CommitKind.ADMIT:
                live += 1
                yield _instant("admit", DEVICE, 1, now, id=f"{event.id:#010x}", **event.fields)
                yield _counter("active requests", DEVICE, now, live)
            case CommitKind.FREE:
                live = max(live - 1, 0)
                yield _counter("active requests", DEVICE, now, live)
            case CommitKind.CANCEL:
                yield _instant("cancel", DEVICE, 1, now, id=f"{event.id:#010x}")
            case CommitKind.REJECT:
                reason = RejectReason(event.fields["reason"]).name.lower().replace("_", " ")
                yield _instant(f"reject: {reason}", DEVICE, 1, now, id=f"{event.id:#010x}")
            case CommitKind.GROUP_RESET:
                yield _instant(f"reset group {event.lane}", DEVICE, 1, now)
            case _:
                pass


def _slice(name: str, pid: int, tid: int, start_ns: int, end_ns: int, /, **args: Any) -> dict[str, Any]:
    span = {"ts": start_ns / 1000, "dur": (end_ns - start_ns) / 1000}
    return {"name": name, "ph": "X", "pid": pid, "tid": tid, **span, "args": args}


def _instant(name: str, pid: int, tid: int, time_ns: int, /, **args: Any) -> dict[str, Any]:
    return {"name": name, "ph": "i", "s": "t", "pid": pid, "tid": tid, "ts": time_ns / 1000, "args": args}


def _counter(name: str, pid: int, time_ns: int, value: int) -> dict[str, Any]:
    return {"name": name, "ph": "C", "pid": pid, "tid": 0, "ts": time_ns / 1000, "args": {"value": value}}


def _meta(name: str, pid: int, tid: int, /, **args: Any) -> dict[str, Any]:
    return {"name": name, "ph": "M", "pid": pid, "tid": tid, "args": args}
