"""Which pass is formed next, and who may go along (docs/device.md §6, steps 7 and 8)."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from typing import NamedTuple

from cuelight.regmap import LANE_COUNT

from .slots import Request

__all__ = ["Plan", "next_plan", "second_plan"]


class Plan(NamedTuple):
    """A pass about to be formed."""

    k: int
    """Which of the group's passes."""
    decoding: Sequence[Request]
    """Requests that decode in it, lowest seat first; parked ones too: a credit may let them come along yet."""
    prefilling: Sequence[deque[Request]]
    """The group's lists of those tiers that may come along, the highest first."""

    @property
    def decode_rows(self) -> Sequence[Request]:
        """Requests that PLAN counts a row for."""
        return [request for request in self.decoding if not request.parked]


def next_plan(
    free: Sequence[Request], lists: Sequence[deque[Request]], lanes: int, alive: Collection[int], turn: int
) -> Plan | None:
    """The pass of step 7; None: nobody can go along.

    Parameters
    ----------
    free
        Requests seated and in no pass, lowest seat first.
    lists
        The group's prefilling lists.
    lanes
        Of the group, as many as passes; 1 without a pipeline.
    alive
        Passes that are.
    turn
        The pass that was planned last.
    """
    for step in range(1, LANE_COUNT + 1):
        k = (turn + step) % LANE_COUNT
        if k >= lanes or k in alive:
            continue
        decoding = [request for request in free if request.decoding and _seat(request) % lanes == k]
        if any(lists) or any(not request.parked for request in decoding):
            return Plan(k, decoding, lists)
    return None


def second_plan(lists: Sequence[deque[Request]], top: int) -> Plan | None:
    """The second pass of step 8, beside a pass 0 whose highest tier is ``top``; the rest as in `next_plan`."""
    return Plan(1, (), lists[:top]) if any(lists[:top]) else None


def _seat(request: Request) -> int:
    assert request.seat is not None
    return request.seat
