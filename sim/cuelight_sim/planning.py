"""Which pass is formed next, and who may go along (docs/device.md §6, steps 7 and 8)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from cuelight.regmap import LANE_COUNT

from .slots import Request
from .tiers import TIERS

__all__ = ["Plan", "next_plan", "second_plan"]


class Plan(NamedTuple):
    """A pass about to be formed. Parked requests are listed too: a credit may let them come along yet."""

    k: int
    """Which of the group's passes."""
    decoding: Sequence[Request]
    """Requests that decode in it, lowest seat first."""
    prefilling: Sequence[Sequence[Request]]
    """For each tier, requests with rows left."""
    claims: Sequence[bool]
    """For each tier, whether chunks of higher ones leave it its minimum rows."""

    @property
    def decode_rows(self) -> Sequence[Request]:
        """Requests that PLAN counts a row for."""
        return [request for request in self.decoding if not request.parked]


def next_plan(
    free: Sequence[Request], lists: Sequence[Sequence[Request]], lanes: int, alive: Collection[int], turn: int
) -> Plan | None:
    """The pass of step 7; None: nobody can go along.

    Parameters
    ----------
    free
        Requests seated and in no pass, lowest seat first.
    lists
        For each tier, those with rows left, in a pass or not.
    lanes
        Of the group, as many as passes; 1 without a pipeline.
    alive
        Passes that are.
    turn
        The pass that was planned last.
    """
    prefilling = [[request for request in requests if request in free] for requests in lists]
    for step in range(1, LANE_COUNT + 1):
        k = (turn + step) % LANE_COUNT
        if k >= lanes or k in alive:
            continue
        decoding = [request for request in free if request.decoding and _seat(request) % lanes == k]
        if any(not request.parked for requests in (decoding, *prefilling) for request in requests):
            return Plan(k, decoding, prefilling, [bool(requests) for requests in lists])
    return None


def second_plan(free: Sequence[Request], lists: Sequence[Sequence[Request]], top: int) -> Plan | None:
    """The second pass of step 8, beside a pass 0 whose highest tier is ``top``; the rest as in `next_plan`."""
    prefilling = [[request for request in lists[tier] if request in free] for tier in range(top)]
    if any(not request.parked and not request.marked for requests in prefilling for request in requests):
        lower = range(top, TIERS)
        return Plan(1, (), [*prefilling, *([] for _ in lower)], [*map(bool, lists[:top]), *(False for _ in lower)])
    return None


def _seat(request: Request) -> int:
    assert request.seat is not None
    return request.seat
