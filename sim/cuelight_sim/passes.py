"""Passes: what one is made of while it is formed, while it lives and at its loop point (docs/device.md §6, §7)."""

from __future__ import annotations

from dataclasses import dataclass, field

from .slots import Request

__all__ = ["Decision", "Entry", "Forming", "LoopPoint", "Outstanding", "Pass", "next_sequence"]

_MAX_ENTRIES = 16
_MIN_CHUNK_BUDGET = 8


def next_sequence(sequence: int) -> int:
    """Sequence after ``sequence``: low halves 0 and 0xFFFF are skipped, the high half wraps."""
    low = sequence & 0xFFFF
    if low == 0xFFFE:
        return ((sequence >> 16) + 1 & 0xFFFF) << 16 | 1
    return sequence + 1


@dataclass(frozen=True, slots=True)
class Entry:
    """A chunk of rows that a pass prefills for one request."""

    request: Request
    seat: int
    start: int
    rows: int
    first: bool
    last: bool


@dataclass(slots=True)
class Forming:
    """A pass between PLAN and FORM."""

    number: int
    decode: int
    """Bitmap of decoding seats."""
    budget: int
    walk: tuple[Request, ...]
    """Prefilling requests in the order in which they are offered rows."""
    position: int = 0
    entries: list[Entry] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return self.decode.bit_count() + sum(entry.rows for entry in self.entries)

    def next_chunk(self) -> Entry | None:
        """The chunk that must be taken next, or None when the pass is complete."""
        if len(self.entries) == _MAX_ENTRIES or self.budget < _MIN_CHUNK_BUDGET:
            return None
        for request in self.walk[self.position :]:
            if not request.marked:
                assert request.seat is not None
                rows = min(request.rows_left, 1 << self.budget.bit_length() - 1)
                return Entry(
                    request,
                    request.seat,
                    request.start,
                    rows,
                    first=request.start == request.began,
                    last=rows == request.rows_left,
                )
        return None

    def take(self, entry: Entry) -> None:
        self.position = self.walk.index(entry.request) + 1
        self.budget -= entry.rows
        self.entries.append(entry)


@dataclass(slots=True)
class LoopPoint:
    """A pass between LOOP_POINT and its last ADVANCE."""

    retiring: bool = True
    """No ADVANCE has been seen."""
    settled: bool = False
    """After the step before, no seat was left to retire; seats marked since may be passed over."""
    doubtful: bool = False
    """A marked request retired when the loop point may have been over already."""
    retired: set[int] = field(default_factory=set)
    """Ids that retired in this loop point."""
    advanced: int = 0
    """Entries done or dropped."""


class Pass:
    """A pass that is alive, from FORM until its loop point is over.

    Parameters
    ----------
    formed
        The pass as it was formed.
    stage_count
        Stages of the model.
    """

    def __init__(self, formed: Forming, stage_count: int) -> None:
        self.number = formed.number
        self.decode = formed.decode
        self.entries = tuple(formed.entries)
        self.rows = formed.rows
        self.samples = bool(self.decode) or any(entry.last for entry in self.entries)
        binds = any(entry.first for entry in self.entries)
        first, last = (1 if binds else 2), stage_count - (0 if self.samples else 1)
        self.stages = range(first, last)
        self.dispatched = 0
        """Stages that have had their dispatch."""
        self.stamp: int | None = None
        """Low half of the first dispatch's sequence."""
        self.members = self.decode
        for entry in self.entries:
            self.members |= 1 << entry.seat
        self.finished = 0
        """Bitmap of members reported finished."""
        self.maybe_finished = 0
        """Members whose FINISHED word was written while its dispatch was on its way: kept or not, both are right."""
        self.loop: LoopPoint | None = None

    @property
    def buffer(self) -> int:
        return (self.number - 1) % 2


@dataclass(slots=True)
class Outstanding:
    """The lane's dispatch that is not complete."""

    sequence: int
    stage: int
    first: bool
    last: bool
    offered: bool = True
    kept: int = 0
    """FINISHED bits written since the dispatch."""
    maybe_kept: int = 0


@dataclass(slots=True)
class Decision:
    """Since when the group's next dispatch is being decided, in cycles."""

    SATURATED = 0xFFF
    idle: bool | None = True
    """Whether the pass to come follows idleness; None: an admission met the end of a loop point, either is right."""
    planned: list[int] = field(default_factory=list)
    """Cycles of the PLANs since the latest DISPATCH; passes that came to nothing make it more than one."""
    completed: int = 0
    """Cycle of the latest COMPLETE."""

    def spans(self, cycle: int, *, first: bool) -> set[int]:
        """Values that a DISPATCH in ``cycle`` may show."""
        spans: set[int] = set()
        if self.idle is not False and first:
            spans.update(cycle - planned for planned in self.planned)
        if not (self.idle and first):
            spans.add(cycle - self.completed)
        return {min(span, self.SATURATED) for span in spans}
