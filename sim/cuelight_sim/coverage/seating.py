"""Who gets a seat and who gives one up: the branches of docs/device.md §6, steps 5 and 6."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cuelight.regmap import CommitKind

from ..golden import Golden
from ..group import Group
from ..situations import unsure
from ..steps import Event
from ..tiers import TIERS
from .family import Family

__all__ = ["Seating"]


class Seating(Family):
    """SEAT and PAUSE by what decided them, and PLAN by why neither of them came before."""

    title = "seats: the branches of the policy"
    bins = (
        *(f"seat for tier {tier}" for tier in range(TIERS)),
        "seat for the highest tier that waits",
        "seat for a tier below its minimum, before a higher one",
        "seat for the higher of two tiers below their minimums",
        "seat for a tier below its minimum, past its own floor",
        "seat for a lower tier, past one that its floor keeps out",
        "seat between others that are taken",
        "last free seat",
        "seat for one that was paused, before others of its tier",
        "pause in a full house",
        "pause for a seat above a floor",
        "pause for a tier below its minimum, past its own floor",
        "pause of the lowest of several possible victims",
        "pause past a seat in a pass",
        "pause past a tier that is not lower",
        "pause past a tier at its minimum",
        "no pause: lower tiers are in a pass",
        "no pause: lower tiers are at their minimum",
        "no pause: nobody is of a lower tier",
        "no seat: the floor keeps the free ones",
    )

    def __init__(self, golden: Golden) -> None:
        super().__init__(golden)
        self._paused: set[int] = set()

    def before(self, event: Event) -> Iterable[str]:
        group = self.golden.groups[event.lane % len(self.golden.groups)]
        match event.kind:
            case CommitKind.SEAT:
                yield from self._seat(event, group)
            case CommitKind.PAUSE:
                self._paused.add(event.id)
                yield from self._pause(event, group)
            case CommitKind.PLAN if not unsure(group):
                yield from self._plan(group)
            case _:
                pass

    def _seat(self, event: Event, group: Group) -> Iterator[str]:
        tier, tiers = event.detail & 3, self.golden.tiers
        waiting = _waiting(group)
        poor = [other for other in waiting if self._taken(group, other) < tiers[other].min_seats]
        yield f"seat for tier {tier}"
        if tier == waiting[0] and not poor:
            yield "seat for the highest tier that waits"
        if tier in poor:
            if tier != waiting[0]:
                yield "seat for a tier below its minimum, before a higher one"
            if len(poor) > 1:
                yield "seat for the higher of two tiers below their minimums"
            if tiers[tier].seat_floor >= group.free:
                yield "seat for a tier below its minimum, past its own floor"
        elif tier != waiting[0]:
            yield "seat for a lower tier, past one that its floor keeps out"
        if group.seated and event.stage < max(group.seated):
            yield "seat between others that are taken"
        if group.free == 1:
            yield "last free seat"
        if event.id in self._paused and len(group.queues[tier]) > 1:
            yield "seat for one that was paused, before others of its tier"
        self._paused.discard(event.id)

    def _pause(self, event: Event, group: Group) -> Iterator[str]:
        tiers, in_pass = self.golden.tiers, _in_pass(group)
        for_tier = self._lacking(group)
        if group.free:
            yield "pause for a seat above a floor"
        elif tiers[for_tier].seat_floor:
            yield "pause for a tier below its minimum, past its own floor"
        else:
            yield "pause in a full house"
        for seat, request in group.seated.items():
            lower = request.tier > for_tier
            spare = self._taken(group, request.tier) > tiers[request.tier].min_seats
            calm = not in_pass >> seat & 1
            if seat > event.stage and lower and spare and calm:
                yield "pause of the lowest of several possible victims"
            if seat < event.stage:
                if lower and spare:
                    yield "pause past a seat in a pass"
                elif lower and calm:
                    yield "pause past a tier at its minimum"
                elif calm:
                    yield "pause past a tier that is not lower"

    def _plan(self, group: Group) -> Iterator[str]:
        if group.free and _waiting(group):
            yield "no seat: the floor keeps the free ones"
        for_tier, in_pass = self._lacking(group), _in_pass(group)
        if for_tier == TIERS:
            return
        lower = {seat: request for seat, request in group.seated.items() if request.tier > for_tier}
        if not lower:
            yield "no pause: nobody is of a lower tier"
        elif all(in_pass >> seat & 1 for seat in lower):
            yield "no pause: lower tiers are in a pass"
        elif not any(in_pass >> seat & 1 for seat in lower):
            yield "no pause: lower tiers are at their minimum"

    def _taken(self, group: Group, tier: int) -> int:
        return sum(request.tier == tier for request in group.seated.values())

    def _lacking(self, group: Group) -> int:
        """The highest tier with somebody queued that one free seat more would let in; TIERS if there is none."""
        tiers = self.golden.tiers
        return next(
            (
                tier
                for tier in _waiting(group)
                if group.free == tiers[tier].seat_floor
                or (not group.free and self._taken(group, tier) < tiers[tier].min_seats)
            ),
            TIERS,
        )


def _waiting(group: Group) -> list[int]:
    return [tier for tier, queue in enumerate(group.queues) if queue]


def _in_pass(group: Group) -> int:
    """Bitmap of seats in a pass alive."""
    seats = 0
    for run in group.alive.values():
        if group.loop is None or run is not group.loop.run:
            seats |= run.members
    return seats
