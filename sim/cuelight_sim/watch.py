"""Who waits, sits and runs, as the commit port says it; and that nobody is served against the policy's promises."""

from __future__ import annotations

from collections import defaultdict

from cuelight.regmap import CommitKind
from cuelight_rtl.model import Commit

from .golden import Golden
from .steps import Divergence
from .tiers import TIERS

__all__ = ["Watch"]

_FIRST, _LAST = 1, 2
"""Flags of a dispatch."""


class Watch:
    """Follows commits apart from the golden model, of which it reads settings and passes' members only.

    Parameters
    ----------
    golden
        Has followed each commit already.
    """

    def __init__(self, golden: Golden) -> None:
        self._golden = golden
        self.tier: dict[int, int] = {}
        """Of each id that was admitted to a queue."""
        self.waiting: dict[int, set[int]] = defaultdict(set)
        """Ids queued, by group."""
        self.seats: dict[int, dict[int, int]] = defaultdict(dict)
        """Ids by seat, by group."""
        self.passes: dict[int, dict[int, frozenset[int]]] = defaultdict(dict)
        """Ids of the members of each pass that is alive or at its loop point, by group and pass."""
        self.pauses: list[tuple[int, int]] = []
        """Tiers of who was paused and of the highest that waited."""
        self._group: dict[int, int] = {}
        self._overtaken: dict[int, int] = {}
        """Number of the pass 0 that has had no dispatch since the second pass beside it had its last, by group."""
        self._looping: dict[int, int] = {}
        """Pass whose loop point was the latest of its group."""

    def taken(self, group: int, tier: int) -> int:
        """Seats that a tier has."""
        return sum(self.tier[request] == tier for request in self.seats[group].values())

    def waits(self, group: int) -> list[int]:
        """Tiers with somebody queued, the highest first."""
        return sorted({self.tier[request] for request in self.waiting[group]})

    def accepted(self, cycle: int, offset: int) -> None:
        """A write promises nothing."""

    def _free(self, group: int) -> int:
        return self._golden.groups[group].seats - len(self.seats[group])

    def _lacking(self, group: int) -> list[int]:
        """Tiers with somebody queued that one free seat more would let in."""
        tiers, free = self._golden.tiers, self._free(group)
        return [
            tier
            for tier in self.waits(group)
            if free == tiers[tier].seat_floor or (not free and self.taken(group, tier) < tiers[tier].min_seats)
        ]

    def observe(self, event: Commit) -> None:
        """Takes a commit in.

        Raises
        ------
        Divergence
            It breaks a promise.
        """
        group, request = event.lane, event.id
        match event.kind:
            case CommitKind.ADMIT if event.stage & 8:
                self.tier[request], self._group[request] = event.stage >> 4, group
                self.waiting[group].add(request)
            case CommitKind.PARK if event.stage == 1:
                self.waiting[self._group[request]].remove(request)
            case CommitKind.CREDIT if event.stage == 1:
                self.waiting[self._group[request]].add(request)
            case CommitKind.SEAT:
                self._seat(group, event.stage, request)
            case CommitKind.PAUSE:
                self._pause(group, event)
            case CommitKind.RETIRE:
                self._retire(group, event)
            case CommitKind.PLAN:
                self._plan(group, event.stage)
            case CommitKind.FORM:
                self._form(group, event)
            case CommitKind.PARKED:
                self._check_free(group, self.seats[group][event.stage])
            case CommitKind.LOOP_POINT:
                self._end_loop(group)
                self._looping[group] = event.stage
            case CommitKind.DISPATCH:
                self._dispatch(event)
            case CommitKind.GROUP_RESET:
                self._overtaken.pop(group, None)
                self.passes[group].clear()
                self._looping.pop(group, None)
            case _:
                pass

    def rest(self) -> None:
        """Checks what must be true of a device at rest.

        Raises
        ------
        Divergence
            Slots, seats or KV credit got lost.
        """
        for looping in list(self._looping):
            self._end_loop(looping)
        slots = self._golden.slots
        for group in self._golden.groups:
            living = [request for request in slots.request if request is not None and request.group == group.index]
            held = sum(request.kv_blocks for request in living)
            if held + group.kv_free != group.kv_blocks:
                raise Divergence(
                    f"group {group.index} has {group.kv_free} free KV blocks of {group.kv_blocks}, its requests {held}"
                )
            if set(self.seats[group.index].values()) - {request.id for request in living}:
                raise Divergence(f"a seat of group {group.index} is taken by a request that is gone")
        offered = sum(page.offer is not None for page in self._golden.pages)
        if slots.active + len(slots.free) + offered != len(slots):
            raise Divergence(
                f"of {len(slots)} slots {slots.active} are used, {len(slots.free)} free, {offered} offered"
            )

    def _seat(self, group: int, seat: int, request: int) -> None:
        if seat in self.seats[group]:
            raise Divergence(f"seat {seat} of group {group} is given away twice")
        if any(request in seated.values() for seated in self.seats.values()):
            raise Divergence(f"request {request:#x} sits twice")
        tier, waits, tiers = self.tier[request], self.waits(group), self._golden.tiers
        free = self._free(group)
        hungry = [other for other in waits if self.taken(group, other) < tiers[other].min_seats]
        welcome = hungry or [other for other in waits if free > tiers[other].seat_floor]
        if tier not in welcome[:1]:
            raise Divergence(f"tier {tier} gets a seat, {welcome[:1] or 'none'} was to have it")
        self.waiting[group].remove(request)
        self.seats[group][seat] = request

    def _pause(self, group: int, event: Commit) -> None:
        tier, highest = event.detail & 3, next(iter(self._lacking(group)), TIERS)
        if tier <= highest:
            raise Divergence(f"tier {tier} makes room for tier {highest}, which is not higher")
        if self.taken(group, tier) <= self._golden.tiers[tier].min_seats:
            raise Divergence(f"tier {tier} is left with less than its minimum of seats")
        self._leave(group, event.stage, event.id)
        self.pauses.append((tier, highest))
        if not event.detail >> 8:
            self.waiting[group].add(event.id)

    def _retire(self, group: int, event: Commit) -> None:
        self.waiting[group].discard(event.id)
        if not event.detail >> 8:
            self._leave(group, event.detail, event.id)

    def _leave(self, group: int, seat: int, request: int) -> None:
        if self.seats[group].pop(seat, None) != request:
            raise Divergence(f"request {request:#x} leaves seat {seat} of group {group}, which is not its own")
        self._check_free(group, request)

    def _check_free(self, group: int, request: int) -> None:
        for k, members in self.passes[group].items():
            if request in members and k != self._looping.get(group):
                raise Divergence(
                    f"request {request:#x} parks or leaves its seat while pass {k} of group {group} has it"
                )

    def _plan(self, group: int, k: int) -> None:
        self._end_loop(group)
        if k in self.passes[group]:
            raise Divergence(f"pass {k} of group {group} is formed while it is alive")
        busy = {request for members in self.passes[group].values() for request in members}
        waits, lacking = self.waits(group), self._lacking(group)
        seats, tiers, free = self.seats[group], self._golden.tiers, self._free(group)
        for tier in waits if free else ():
            if free > tiers[tier].seat_floor or self.taken(group, tier) < tiers[tier].min_seats:
                raise Divergence(
                    f"a pass of group {group} is formed while tier {tier} waits for one of {free} free seats"
                )
        for seat, request in seats.items():
            tier = self.tier[request]
            yields = request not in busy and self.taken(group, tier) > tiers[tier].min_seats
            if lacking and yields and tier > lacking[0]:
                raise Divergence(f"tier {lacking[0]} waits while seat {seat} of group {group} could make room")

    def _form(self, group: int, event: Commit) -> None:
        run = next(run for run in self._golden.groups[group].alive.values() if run.number == event.id)
        members = frozenset(request for seat, request in self.seats[group].items() if run.members >> seat & 1)
        if len(members) != run.members.bit_count():
            raise Divergence(f"a member of pass {run.k} of group {group} does not sit")
        for k, others in self.passes[group].items():
            if members & others:
                raise Divergence(f"request {min(members & others):#x} is in passes {k} and {run.k} of group {group}")
        self.passes[group][run.k] = members

    def _dispatch(self, event: Commit) -> None:
        k, index = event.detail >> 10 & 7, event.detail >> 13 & 7
        group = self._golden.groups[index]
        if group.pipeline:
            return
        if k == 0:
            self._overtaken.pop(index, None)
            return
        rest = group.alive.get(0)
        number = rest.number if rest is not None and rest.next_leg is not None else None
        if event.detail >> 28 & _FIRST and self._overtaken.get(index) == number is not None:
            raise Divergence(f"two second passes of group {index} go before pass {number}, which has stages left")
        if event.detail >> 28 & _LAST and number is not None:
            self._overtaken[index] = number

    def _end_loop(self, group: int) -> None:
        ended = self._looping.pop(group, None)
        if ended is not None:
            del self.passes[group][ended]
