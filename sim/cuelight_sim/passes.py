"""Passes while they live and at their loop point, and their dispatches (docs/device.md §6, §7)."""

from __future__ import annotations

from dataclasses import dataclass, field

from .forming import Entry, Forming

__all__ = ["Decision", "LoopPoint", "Outstanding", "Pass", "next_sequence"]


def next_sequence(sequence: int) -> int:
    """Sequence after ``sequence``: low halves 0 and 0xFFFF are skipped, the high half wraps."""
    low = sequence & 0xFFFF
    if low == 0xFFFE:
        return ((sequence >> 16) + 1 & 0xFFFF) << 16 | 1
    return sequence + 1


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
        self.entries: tuple[Entry, ...] = tuple(formed.entries)
        self.rows = formed.rows
        self.samples = bool(self.decode) or any(entry.last for entry in self.entries)
        binds = any(entry.bind for entry in self.entries)
        first, last = (1 if binds else 2), stage_count - (0 if self.samples else 1)
        self.stages = range(first, last)
        self.dispatched = 0
        """Stages that have had their dispatch."""
        self.stamp: int | None = None
        """Low half of the first dispatch's sequence."""
        self.members = self.sampling = self.decode
        for entry in self.entries:
            self.members |= 1 << entry.seat
            self.sampling |= entry.last << entry.seat
        self.reported = 0
        """Members that STAGE_DONE named since the oldest outstanding dispatch became it."""
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
    """A dispatch that is not complete."""

    sequence: int
    stage: int
    first: bool
    last: bool
    offered: bool = True
    kept: int = 0
    """FINISHED bits written since it is the oldest outstanding one."""
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
    dispatched: int = -1
    """Cycle of the latest DISPATCH."""

    def spans(self, cycle: int, *, first: bool) -> set[int]:
        """Values that a DISPATCH in ``cycle`` may show, the first of its pass or not."""
        if not first and self.dispatched >= self.completed:
            return {1}
        spans: set[int] = set()
        if self.idle is not False and first:
            spans.update(cycle - planned for planned in self.planned)
        if not (self.idle and first):
            spans.add(cycle - self.completed)
        return {min(span, self.SATURATED) for span in spans}
