"""How long a queued request waits for its seat, in seats given to others and in steps (docs/device.md §9)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from cuelight.regmap import CommitKind
from cuelight_rtl.model import Commit

from .golden import Golden
from .group import Group
from .steps import OF_WRITES, Divergence
from .tiers import TIERS

__all__ = ["ENTRIES", "LEFT", "TURNS", "SeatWaits"]

ENTRIES = 17
"""Steps of a loop point or of forming a pass at most, beside those in which a seat is left."""
LEFT = 2
"""Steps at most in which a seat is parked, and left."""
TURNS = 2
"""Turns of another group at most between two steps of a group that has one to take."""

_CORE = 0


@dataclass(slots=True)
class _Wait:
    """A queued request, and what may come before it."""

    tier: int
    before: int
    """Seats that others may be given first."""
    given: int = 0
    """Seats that others were given."""


@dataclass(slots=True)
class _Due:
    """A seat is free for somebody who waits."""

    most: int
    """Steps of the group before it is given away."""
    steps: int = 0
    others: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    """Steps of each other group since the latest one of this group."""


class SeatWaits:
    """Demands that queued requests get their seats in turn, and that a seat which is free is given away soon.

    Parameters
    ----------
    golden
        Has followed each commit already; read for queues, seats and settings.
    """

    def __init__(self, golden: Golden) -> None:
        self._golden = golden
        self._waits: dict[int, dict[int, _Wait]] = defaultdict(dict)
        """Of each group's queued requests, by id."""
        self._due: dict[int, _Due] = {}

    def accepted(self, cycle: int, offset: int) -> None:
        """A write is looked at when it is committed."""

    def rest(self) -> None:
        """Checks that no seat is free for anybody.

        Raises
        ------
        Divergence
            One is.
        """
        for group in self._due:
            raise Divergence(f"a seat of group {group} is free for a request that waits, and the device rests")

    def observe(self, event: Commit) -> None:
        """Takes a commit in.

        Raises
        ------
        Divergence
            Somebody waits for longer than is promised.
        """
        if event.port != _CORE:
            return
        match event.kind:
            case CommitKind.ADMIT if event.stage & 8:
                self._join(event.id, front=False)
            case CommitKind.CREDIT if event.stage == 1:
                self._join(event.id, front=True)
            case CommitKind.PAUSE if not event.detail >> 8:
                self._join(event.id, front=True)
            case CommitKind.SEAT:
                self._seat(event)
            case CommitKind.PARK if event.stage == 1:
                self._waits[self._group(event.id).index].pop(event.id, None)
            case CommitKind.RETIRE:
                self._waits[event.lane].pop(event.id, None)
            case _:
                pass
        self._note_steps(event)

    def _group(self, request: int) -> Group:
        known = self._golden.slots.request[request & 0xFFFF]
        assert known is not None
        return self._golden.groups[known.group]

    def _join(self, request: int, *, front: bool) -> None:
        known = self._golden.slots.request[request & 0xFFFF]
        assert known is not None
        group = self._golden.groups[known.group]
        for other in self._waits[group.index].values():
            other.before += known.tier < other.tier or (front and known.tier == other.tier)
        higher = sum(map(len, group.queues[: known.tier]))
        ahead = 0 if front else len(group.queues[known.tier]) - 1
        self._waits[group.index][request] = _Wait(known.tier, ahead + higher)

    def _seat(self, event: Commit) -> None:
        waits, tier = self._waits[event.lane], event.detail & 3
        waits.pop(event.id, None)
        group, tiers = self._golden.groups[event.lane], self._golden.tiers
        taken = [sum(request.tier == each for request in group.seated.values()) for each in range(TIERS)]
        taken[tier] -= 1
        poor = [have < settings.min_seats for have, settings in zip(taken, tiers, strict=True)]
        welcome = [poor[each] or settings.seat_floor <= group.free for each, settings in enumerate(tiers)]
        for request, wait in waits.items():
            wait.given += 1
            wait.before += tier > wait.tier and (poor[tier] or not welcome[wait.tier])
            if wait.given > wait.before:
                raise Divergence(
                    f"request {request:#x} of group {event.lane} waits while {wait.given} others get seats, "
                    f"{wait.before} at most may"
                )

    def _note_steps(self, event: Commit) -> None:
        written = event.kind in OF_WRITES
        for group in self._golden.groups if written else (self._golden.groups[event.lane],):
            given = event.kind == CommitKind.SEAT
            due = None if given else self._due.get(group.index)
            self._due.pop(group.index, None)
            if group.resetting or group.seating() is None:
                continue
            if due is None:
                due = _Due(_most(group))
            elif written:
                due.most += 1
            else:
                due.steps += 1
                due.others.clear()
            self._due[group.index] = due
        if not written:
            for index, due in self._due.items():
                if index != event.lane:
                    due.others[event.lane] += 1
        for index, due in self._due.items():
            self._check(index, due)

    def _check(self, group: int, due: _Due) -> None:
        if due.steps >= due.most:
            raise Divergence(f"a seat of group {group} stays free for a request that waits, {due.steps} steps long")
        for other, steps in due.others.items():
            most = TURNS * (ENTRIES + self._golden.groups[other].seats)
            if steps > most:
                raise Divergence(
                    f"group {group} waits while group {other} takes {steps} steps, {most} at most are promised"
                )


def _most(group: Group) -> int:
    """Steps of a group from when a seat is free for somebody who waits to SEAT, which is the last of them."""
    passes = len(group.alive) + (group.forming is not None)
    return ENTRIES * (passes + (group.forming is not None)) + LEFT * group.seats + 1
