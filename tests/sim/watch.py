"""What the commit port says about who waits, sits and runs, kept apart from the golden model."""

from __future__ import annotations

from collections import defaultdict

from cuelight.regmap import CommitKind
from cuelight_sim.steps import Event

__all__ = ["Watch"]


class Watch:
    """Follows commits and demands what the policy promises; settings are what the test made them.

    Parameters
    ----------
    min_seats
        MIN_SEATS of each tier.
    """

    def __init__(self, min_seats: tuple[int, int, int, int] = (0, 0, 0, 0)) -> None:
        self.min_seats = min_seats
        self.tier: dict[int, int] = {}
        self.group: dict[int, int] = {}
        self.waiting: dict[int, set[int]] = defaultdict(set)
        """Ids queued, by group."""
        self.seats: dict[int, dict[int, int]] = defaultdict(dict)
        """Ids by seat, by group."""
        self.alive: dict[int, set[int]] = {}
        """Ids in the pass that is formed or alive, by group."""
        self.decoding: set[int] = set()
        self.pauses: list[tuple[int, int]] = []
        """Tiers of who was paused and of the highest that waited."""

    def taken(self, group: int, tier: int) -> int:
        return sum(self.tier[request] == tier for request in self.seats[group].values())

    def waits(self, group: int) -> list[int]:
        """Tiers with somebody queued, the highest first."""
        return sorted({self.tier[request] for request in self.waiting[group]})

    def observe(self, event: Event) -> None:
        group, request = event.lane, event.id
        match event.kind:
            case CommitKind.ADMIT if event.stage & 8:
                self.tier[request], self.group[request] = event.stage >> 4, group
                self.decoding.discard(request)
                self.waiting[group].add(request)
            case CommitKind.PARK if event.stage == 1:
                self.waiting[self.group[request]].remove(request)
            case CommitKind.CREDIT if event.stage == 1:
                self.waiting[self.group[request]].add(request)
            case CommitKind.SEAT:
                self._seat(group, event.stage, request)
            case CommitKind.PAUSE:
                self._pause(group, event)
            case CommitKind.RETIRE:
                self.waiting[group].discard(request)
                if not event.detail >> 8:
                    assert self.seats[group].pop(event.detail) == request
            case CommitKind.ADVANCE if event.detail >> 31:
                self.decoding.add(request)
            case CommitKind.PLAN:
                assert group not in self.alive, "a second pass is formed beside the first"
                self.alive[group] = set()
            case CommitKind.CHUNK:
                assert self.seats[group][event.stage] == request
                assert all(request not in members for members in self.alive.values()), "somebody is in a pass twice"
                self.alive[group].add(request)
            case CommitKind.FORM if not event.detail:
                del self.alive[group]
            case CommitKind.LOOP_POINT | CommitKind.GROUP_RESET:
                self.alive.pop(group, None)
            case _:
                pass

    def _seat(self, group: int, seat: int, request: int) -> None:
        assert seat not in self.seats[group], "a seat is given away twice"
        assert all(request not in seated.values() for seated in self.seats.values()), "somebody sits twice"
        tier, waits = self.tier[request], self.waits(group)
        hungry = [other for other in waits if self.taken(group, other) < self.min_seats[other]]
        assert tier == (hungry or waits)[0]
        self.waiting[group].remove(request)
        self.seats[group][seat] = request

    def _pause(self, group: int, event: Event) -> None:
        tier, highest = event.detail & 3, self.waits(group)[0]
        assert tier > highest, "somebody makes room for an equal or lower tier"
        assert self.taken(group, tier) > self.min_seats[tier], "a tier is left with less than its minimum"
        self.pauses.append((tier, highest))
        assert self.seats[group].pop(event.stage) == event.id
        if not event.detail >> 8:
            self.waiting[group].add(event.id)
