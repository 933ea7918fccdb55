"""A lane: its settings, and the dispatches that it has outstanding (docs/device.md §5, §7)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cuelight.regmap import CommitKind

from .decision import Decision
from .steps import Event, Step

if TYPE_CHECKING:
    from .passes import Leg, Pass

__all__ = ["Lane", "Outstanding", "lane_of", "next_sequence", "server_of"]


def next_sequence(sequence: int) -> int:
    """Sequence after ``sequence``: low halves 0 and 0xFFFF are skipped, the high half wraps."""
    low = sequence & 0xFFFF
    if low == 0xFFFE:
        return ((sequence >> 16) + 1 & 0xFFFF) << 16 | 1
    return sequence + 1


@dataclass(slots=True, eq=False)
class Outstanding:
    """A dispatch that is not complete."""

    run: Pass
    """The pass it belongs to."""
    leg: Leg
    sequence: int
    offered: bool = True
    kept: int = 0
    """FINISHED bits written since it is the oldest outstanding one."""
    maybe_kept: int = 0
    """FINISHED bits written while it was on its way: kept or not, both are right."""
    reported: int = 0
    """Members that STAGE_DONE named since it is the oldest outstanding one."""


class Lane:
    """A lane, just after reset.

    Parameters
    ----------
    index
        Its number.
    """

    def __init__(self, index: int) -> None:
        self.index = index
        self.sequence = 1
        self.depth = 2
        self.first_stage = 0
        self.pipeline = 1
        self.dispatches: deque[Outstanding] = deque()
        """Those outstanding, the oldest first."""
        self.latest = 0
        """Group + k of the pass that the latest dispatch belonged to, second passes left out."""
        self.buffer = 1
        """Which of its two buffers was used last by pass k of group g, g + k being the lane's number."""
        self.decision = Decision()
        self.busy_since = 0
        """Cycle since which the busy time is not counted yet."""
        self.busy_cycles = 0
        """Cycles in which a dispatch was outstanding, up to the latest COMPLETE."""

    @property
    def outstanding(self) -> Outstanding | None:
        """The oldest outstanding dispatch."""
        return self.dispatches[0] if self.dispatches else None

    @property
    def offered(self) -> Outstanding | None:
        """The oldest outstanding dispatch that was not taken: the one in the poll registers."""
        return next((dispatch for dispatch in self.dispatches if dispatch.offered), None)

    def taken(self) -> Step | None:
        """The TAKEN that a pop of the head makes."""
        head = self.offered
        if head is None:
            return None

        def effect() -> None:
            head.offered = False

        return Step(Event(CommitKind.TAKEN, self.index, id=head.sequence), effect)

    def reoffered(self) -> Step | None:
        """The REOFFERED that naming the oldest outstanding dispatch makes."""
        if self.outstanding is None:
            return None

        def effect() -> None:
            for dispatch in self.dispatches:
                dispatch.offered = True

        return Step(Event(CommitKind.REOFFERED, self.index, id=self.outstanding.sequence), effect)


def server_of(lanes: Sequence[Lane], index: int) -> int:
    """Group that a lane serves: of the PIPELINE registers that claim it, the larger one's."""
    claims = [lane for lane in lanes if lane.index <= index < lane.index + lane.pipeline]
    return max(claims, key=lambda lane: lane.pipeline).index


def lane_of(lanes: Sequence[Lane], stage: int) -> Lane:
    """Lane of a group that runs a stage from 2 on."""
    return next((lane for lane in reversed(lanes[1:]) if lane.first_stage <= stage), lanes[0])
