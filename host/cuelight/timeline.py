"""What a run looked like: each request's bars, stage by stage, derived from the device's event trace.

The trace has the atomic steps of docs/device.md §8 and no per-member events: who was in a pass follows from who
decoded when it was planned and from its chunks, so a bar here is a dispatch seen from one member of its pass.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from cuelight.regmap import CommitKind, RetireReason
from cuelight.trace import Event

__all__ = ["Bar", "Pass", "Phase", "RequestRow", "StageRun", "Timeline", "build_timeline"]


_UNPARKED = 2
"""Effect of a CREDIT that lets a seat go on."""


class Phase(enum.StrEnum):
    """What a member does in a pass."""

    PREFILL = "prefill"
    DECODE = "decode"


@dataclass(frozen=True, slots=True)
class Bar:
    """One stage of one request. Times in ns from the start of the timeline, `rows` the request's own."""

    stage: int
    phase: Phase
    pass_number: int
    lane: int
    start_ns: int
    end_ns: int
    rows: int
    position: int | None
    """First position of a prefill chunk."""
    decision_cycles: int
    """Device cycles from the dispatch's cause to the dispatch, 4,095 at most."""


@dataclass(slots=True)
class RequestRow:
    """One request's life. Times in ns from the start of the timeline; None: not within the trace."""

    id: int
    lane: int
    tier: int
    admitted_ns: int | None = None
    seated_ns: int | None = None
    retired_ns: int | None = None
    reason: RetireReason | None = None
    bars: list[Bar] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class StageRun:
    """A dispatch; fields as in `Bar`, `rows` those of its whole pass."""

    lane: int
    stage: int
    sequence: int
    start_ns: int
    end_ns: int
    rows: int
    decision_cycles: int


@dataclass(slots=True)
class Pass:
    """A pass of a lane group, with its dispatches in order."""

    number: int
    group: int
    decode_rows: int
    chunks: int
    rows: int
    stages: list[StageRun] = field(default_factory=list)


@dataclass(slots=True)
class Timeline:
    """A run. `origin_ns` is the device time of its first event, `duration_ns` the time to its last.

    `stage_count` is the device's STAGE_COUNT, so that the last stage is output decode.
    """

    stage_count: int
    origin_ns: int = 0
    duration_ns: int = 0
    requests: list[RequestRow] = field(default_factory=list)
    passes: list[Pass] = field(default_factory=list)

    def stage_name(self, stage: int) -> str:
        """Name of a stage, as in the design: prefill, kv-init, layer-1 …, decode."""
        if stage >= self.stage_count - 1:
            return "decode"
        return ("prefill", "kv-init")[stage] if stage < 2 else f"layer-{stage - 1}"


def build_timeline(events: Iterable[Event], stage_count: int) -> Timeline:
    """Derive the timeline of `events`, which are in order and may begin or end amid requests.

    Members of a pass that was planned before the trace began are not known, nor are requests seated before it as
    long as they only decode; they have no bars.
    """
    timeline = Timeline(stage_count)
    builder = _Builder(timeline)
    for event in events:
        builder.take(event)
    return timeline


@dataclass(slots=True)
class _Member:
    request: RequestRow
    phase: Phase
    rows: int
    position: int | None
    binds: bool
    samples: bool

    def runs(self, stage: int, stage_count: int) -> bool:
        if stage == 1:
            return self.binds
        return stage < stage_count - 1 or self.samples


@dataclass(slots=True)
class _Running:
    shape: Pass
    members: list[_Member]


@dataclass(slots=True)
class _Lane:
    outstanding: deque[tuple[Event, int]] = field(default_factory=deque)
    """Dispatches and when they were made, the oldest first."""
    completed_ns: int = 0


@dataclass(slots=True)
class _Group:
    seats: dict[int, RequestRow] = field(default_factory=dict)
    decoding: dict[int, RequestRow] = field(default_factory=dict)
    unbound: set[int] = field(default_factory=set)
    parked: set[int] = field(default_factory=set)
    passes: dict[int, _Running] = field(default_factory=dict)
    """The latest passes by their place in the group."""
    forming: _Running | None = None

    def leave(self, seat: int) -> None:
        self.seats.pop(seat, None)
        self.decoding.pop(seat, None)
        self.unbound.discard(seat)
        self.parked.discard(seat)


class _Builder:
    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._requests: dict[int, RequestRow] = {}
        self._groups: dict[int, _Group] = {}
        self._lanes: dict[int, _Lane] = {}

    def take(self, event: Event) -> None:
        now = self._place(event.time_ns)
        group = self._groups.setdefault(event.lane, _Group())
        fields = event.fields
        match event.kind:
            case CommitKind.ADMIT if fields["automatic"]:
                row = self._request(event)
                row.admitted_ns, row.tier = now, fields["tier"]
            case CommitKind.SEAT:
                row = self._request(event)
                row.tier = fields["tier"]
                if row.seated_ns is None:
                    row.seated_ns = now
                group.seats[fields["seat"]] = row
                group.unbound.add(fields["seat"])
                if fields["decodes"]:
                    group.decoding[fields["seat"]] = row
            case CommitKind.RETIRE:
                row = self._request(event)
                row.retired_ns, row.reason = now, RetireReason(fields["reason"])
                del self._requests[event.id]
                if not fields["unseated"]:
                    group.leave(fields["seat"])
            case CommitKind.PAUSE:
                group.leave(fields["seat"])
            case CommitKind.PARKED if not fields["credited"]:
                group.parked.add(fields["seat"])
            case CommitKind.CREDIT if fields["effect"] == _UNPARKED:
                self._unpark(self._request(event))
            case CommitKind.ADVANCE if fields["decodes"]:
                group.decoding[fields["seat"]] = self._request(event)
            case CommitKind.PLAN:
                self._plan(group, event)
            case CommitKind.CHUNK:
                self._join(group, event)
            case CommitKind.FORM if group.forming:
                # Entries that only bind a seat are among the decode rows.
                shape = group.forming.shape
                shape.chunks = sum(member.phase is Phase.PREFILL for member in group.forming.members)
                shape.rows = fields["rows"]
                if shape.rows:
                    self._timeline.passes.append(shape)
            case CommitKind.DISPATCH:
                self._lanes.setdefault(event.lane, _Lane()).outstanding.append((event, now))
            case CommitKind.COMPLETE:
                self._complete(self._lanes.setdefault(event.lane, _Lane()), event, now)
            case CommitKind.GROUP_RESET:
                self._groups[event.lane] = _Group()
            case _:
                pass

    def _place(self, time_ns: int) -> int:
        if not self._timeline.origin_ns:
            self._timeline.origin_ns = time_ns
        now = time_ns - self._timeline.origin_ns
        self._timeline.duration_ns = max(self._timeline.duration_ns, now)
        return now

    def _request(self, event: Event) -> RequestRow:
        row = self._requests.get(event.id)
        if row is None:
            row = self._requests[event.id] = RequestRow(event.id, event.lane, tier=0)
            self._timeline.requests.append(row)
        return row

    def _plan(self, group: _Group, event: Event) -> None:
        """Begins a pass. In a pipeline the seats take turns; else all decode in the first, none in the second pass."""
        rows, index, lanes = (event.fields[name] for name in ("decode_rows", "pass", "lanes"))
        members = [
            _Member(row, Phase.DECODE, 1, None, binds=False, samples=True)
            for seat, row in group.decoding.items()
            if seat not in group.unbound | group.parked and seat % max(lanes, 1) == index
        ]
        shape = Pass(event.id, event.lane, decode_rows=rows, chunks=0, rows=rows)
        group.forming = group.passes[index] = _Running(shape, members)

    def _join(self, group: _Group, event: Event) -> None:
        """Takes an entry into the pass being formed: a chunk, or without rows a seat that decodes again."""
        fields = event.fields
        binds = fields["seat"] in group.unbound
        group.unbound.discard(fields["seat"])
        if fields["rows"]:
            member = _Member(
                self._request(event),
                Phase.PREFILL,
                fields["rows"],
                fields["start"],
                binds,
                samples=bool(fields["last"]),
            )
        else:
            member = _Member(self._request(event), Phase.DECODE, 1, None, binds, samples=True)
        if group.forming:
            group.forming.members.append(member)

    def _unpark(self, row: RequestRow) -> None:
        for group in self._groups.values():
            group.parked -= {seat for seat in group.parked if group.seats.get(seat) is row}

    def _complete(self, lane: _Lane, event: Event, now: int) -> None:
        if all(dispatch.id != event.id for dispatch, _ in lane.outstanding):
            # Dispatched before the trace began.
            return
        # What a reset has dropped is never complete.
        while lane.outstanding[0][0].id != event.id:
            lane.outstanding.popleft()
        dispatch, dispatched_ns = lane.outstanding.popleft()
        # A lane does one stage after the other: one dispatched ahead begins when the one before it is complete.
        start, lane.completed_ns = max(dispatched_ns, lane.completed_ns), now
        stage, fields = dispatch.stage, dispatch.fields
        running = self._groups.setdefault(fields["group"], _Group()).passes.get(fields["pass"])
        if running is None:
            return
        run = StageRun(dispatch.lane, stage, dispatch.id, start, now, fields["rows"], fields["decision_cycles"])
        running.shape.stages.append(run)
        for member in running.members:
            if member.runs(stage, self._timeline.stage_count):
                member.request.bars.append(
                    Bar(
                        stage,
                        member.phase,
                        running.shape.number,
                        dispatch.lane,
                        start,
                        now,
                        member.rows,
                        member.position,
                        run.decision_cycles,
                    )
                )
