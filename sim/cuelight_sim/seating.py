"""Who gets a seat, and who has to give one up (docs/device.md §6, steps 5 and 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .slots import Request
from .tiers import Tier

__all__ = ["next_seated", "victim"]


def next_seated(
    queues: Sequence[Sequence[Request]], seated: Mapping[int, Request], tiers: Sequence[Tier], free: int
) -> Request | None:
    """The request that the next seat goes to.

    Parameters
    ----------
    queues
        Of each tier, head first.
    seated
        Requests by seat.
    tiers
        Settings of each tier.
    free
        Seats that nobody has.
    """
    waiting = [tier for tier, queue in enumerate(queues) if queue] if free else []
    poor = [tier for tier in waiting if _taken(seated, tier) < tiers[tier].min_seats]
    tier = next(iter(poor or (tier for tier in waiting if tiers[tier].seat_floor < free)), None)
    return queues[tier][0] if tier is not None else None


def victim(
    queues: Sequence[Sequence[Request]], seated: Mapping[int, Request], tiers: Sequence[Tier], free: int, in_pass: int
) -> Request | None:
    """The request that gives up its seat for one of a higher tier.

    Parameters
    ----------
    queues, seated, tiers, free
        As in `next_seated`.
    in_pass
        Bitmap of seats that are in a pass alive.
    """
    queues = [queue if _lacks_one(seated, tier, tiers[tier], free) else () for tier, queue in enumerate(queues)]
    waiting = next((tier for tier, queue in enumerate(queues) if queue), len(queues))
    for seat in sorted(seated):
        tier = seated[seat].tier
        if tier > waiting and not in_pass >> seat & 1 and _taken(seated, tier) > tiers[tier].min_seats:
            return seated[seat]
    return None


def _lacks_one(seated: Mapping[int, Request], tier: int, setting: Tier, free: int) -> bool:
    """Whether one free seat more would let a tier in."""
    return free == setting.seat_floor or (not free and _taken(seated, tier) < setting.min_seats)


def _taken(seated: Mapping[int, Request], tier: int) -> int:
    """Seats that requests of a tier have."""
    return sum(request.tier == tier for request in seated.values())
