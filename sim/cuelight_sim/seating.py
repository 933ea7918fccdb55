"""Who gets a seat, and who has to give one up (docs/device.md §6, steps 5 and 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .slots import Request
from .tiers import Tier

__all__ = ["next_seated", "victim"]


def next_seated(
    queues: Sequence[Sequence[Request]], seated: Mapping[int, Request], tiers: Sequence[Tier]
) -> Request | None:
    """The request that the next free seat goes to.

    Parameters
    ----------
    queues
        Of each tier, head first.
    seated
        Requests by seat.
    tiers
        Settings of each tier.
    """
    waiting = [tier for tier, queue in enumerate(queues) if queue]
    if not waiting:
        return None
    poor = (tier for tier in waiting if _taken(seated, tier) < tiers[tier].min_seats)
    return queues[next(poor, waiting[0])][0]


def victim(queues: Sequence[Sequence[Request]], seated: Mapping[int, Request], tiers: Sequence[Tier]) -> Request | None:
    """The request that gives up its seat for one of a higher tier, every seat being taken."""
    waiting = next((tier for tier, queue in enumerate(queues) if queue), len(queues))
    for seat in sorted(seated):
        tier = seated[seat].tier
        if tier > waiting and _taken(seated, tier) > tiers[tier].min_seats:
            return seated[seat]
    return None


def _taken(seated: Mapping[int, Request], tier: int) -> int:
    """Seats that requests of a tier have."""
    return sum(request.tier == tier for request in seated.values())
