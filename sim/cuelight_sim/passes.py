"""Passes while they live, and the dispatches that each of them walks through (docs/device.md §6, §7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .forming import Entry, Forming
from .lane import Lane, lane_of

__all__ = ["Leg", "Pass"]


class Leg(NamedTuple):
    """One dispatch of a pass."""

    lane: Lane
    stage: int
    first: bool
    """The pass's first dispatch on the lane."""
    last: bool
    """Its last one there."""


class Pass:
    """A pass that is alive, from FORM until its loop point is over.

    Parameters
    ----------
    formed
        The pass as it was formed.
    lanes
        The group's.
    stage_count
        Stages of the model.
    cycle
        When it was formed.
    """

    def __init__(self, formed: Forming, lanes: Sequence[Lane], stage_count: int, cycle: int) -> None:
        self.k = formed.k
        self.number = formed.number
        self.buffer = formed.buffer
        self.top = 0
        """The highest tier of its members."""
        self.decode = formed.decode
        self.entries: tuple[Entry, ...] = tuple(formed.entries)
        self.rows = formed.rows
        self.samples = bool(self.decode) or any(entry.last for entry in self.entries)
        self.members = self.sampling = self.decode
        for entry in self.entries:
            self.members |= 1 << entry.seat
            self.sampling |= entry.last << entry.seat
        self.finished = 0
        """Bitmap of members reported finished."""
        self.maybe_finished = 0
        """Members whose FINISHED word was written while its dispatch was on its way: kept or not, both are right."""
        binds = any(entry.bind for entry in self.entries)
        self.legs = _walk(lanes, range(2, stage_count - (not self.samples)), binds=binds)
        self.dispatched = 0
        """Legs that have had their dispatch."""
        self.outstanding = 0
        """Dispatches that are not complete."""
        self.ready_since = cycle
        """When it was formed, or could go on to its present lane."""
        self.stamps: dict[int, int] = {}
        """For each lane, the low half of the sequence of its first dispatch there."""

    @property
    def next_leg(self) -> Leg | None:
        """What is dispatched next."""
        return self.legs[self.dispatched] if self.dispatched < len(self.legs) else None

    @property
    def crosses(self) -> bool:
        """The next dispatch is on another lane than the one before."""
        return 0 < self.dispatched < len(self.legs) and self.legs[self.dispatched].first

    @property
    def due(self) -> bool:
        """Its last dispatch is complete, so its loop point is due."""
        return self.dispatched == len(self.legs) and not self.outstanding

    def ready_for(self, lane: Lane) -> bool:
        """It has a stage for the lane now."""
        leg = self.next_leg
        return leg is not None and leg.lane is lane and not (self.crosses and self.outstanding)


def _walk(lanes: Sequence[Lane], stages: range, *, binds: bool) -> tuple[Leg, ...]:
    legs: list[Leg] = []
    for stage in stages:
        lane = lane_of(lanes, stage)
        first = not legs or legs[-1].lane is not lane
        if first and legs:
            legs[-1] = legs[-1]._replace(last=True)
        if first and binds:
            legs.append(Leg(lane, 1, first=True, last=False))
        legs.append(Leg(lane, stage, first=first and not binds, last=False))
    legs[-1] = legs[-1]._replace(last=True)
    return tuple(legs)
