"""The requests of a group: who waits, who sits, and who is parked (docs/device.md §4, §6)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial

from cuelight.regmap import CommitKind, RetireReason

from .fifos import Counters
from .seating import next_seated, victim
from .slots import Request, Slots, SlotState
from .steps import Event, Step
from .tiers import TIERS, Tier

__all__ = ["House"]


class House:
    """Queues and seats, and the steps that move a request in or out of them.

    Parameters
    ----------
    index
        Number of the group.
    seats
        Seats it has.
    slots, counters, tiers
        The device's.
    """

    def __init__(self, index: int, seats: int, slots: Slots, counters: Counters, tiers: Sequence[Tier]) -> None:
        self.index = index
        self.slots = slots
        self.counters = counters
        self.tiers = tiers
        self.seats = seats
        self.kv_blocks = 0
        self.kv_free = 0
        self.queues: tuple[deque[Request], ...] = tuple(deque() for _ in range(TIERS))
        self.prefilling: tuple[deque[Request], ...] = tuple(deque() for _ in range(TIERS))
        """Of each tier, who prefills, is not parked, and is in no pass."""
        self.seated: dict[int, Request] = {}
        self.parked: list[Request] = []
        """Requests that are parked without a seat."""

    @property
    def empty(self) -> bool:
        """No request is queued, seated or parked."""
        return not self.seated and not self.parked and not any(self.queues)

    @property
    def at_rest(self) -> bool:
        """Nobody is queued, and everybody seated is parked."""
        return not any(self.queues) and all(request.parked for request in self.seated.values())

    @property
    def queued(self) -> int:
        return sum(map(len, self.queues))

    @property
    def free(self) -> int:
        """Seats that nobody has."""
        return self.seats - len(self.seated)

    @property
    def decoding(self) -> int:
        """Bitmap of decoding seats."""
        return sum(1 << seat for seat, request in self.seated.items() if request.decoding)

    def enqueue(self, request: Request) -> None:
        """Takes an admitted request's KV blocks and queues it."""
        self.kv_free -= request.kv_blocks
        self.queues[request.tier].append(request)

    def retirement(self, request: Request, reason: RetireReason) -> Step:
        detail = 0x100 if request.seat is None else request.seat
        event = Event(CommitKind.RETIRE, self.index, reason, request.id, detail)
        return Step(event, partial(self._retire, request, reason))

    def _retire(self, request: Request, reason: RetireReason) -> None:
        if request.seat is not None:
            self._unseat(request)
        elif request in self.parked:
            self.parked.remove(request)
        else:
            self.queues[request.tier].remove(request)
        self.kv_free += request.kv_blocks
        self.counters.retired += 1
        self.slots.retire(request, reason)

    def _unseat(self, request: Request) -> None:
        assert request.seat is not None
        del self.seated[request.seat]
        if request in self.prefilling[request.tier]:
            self.prefilling[request.tier].remove(request)

    def parking(self, request: Request) -> Step:
        """PARKED of a request that is parking."""
        assert request.seat is not None

        def effect() -> None:
            request.parking = False
            request.parked = not request.credit
            request.credit = False
            if request.parked and request.rows_left:
                self.prefilling[request.tier].remove(request)

        return Step(Event(CommitKind.PARKED, self.index, request.seat, detail=request.credit), effect)

    def pause(self, in_pass: int) -> Step | None:
        """PAUSE, if a seat, not one of the bitmap ``in_pass``, must be given up."""
        request = victim(self.queues, self.seated, self.tiers, self.free, in_pass)
        if request is None:
            return None
        assert request.seat is not None
        return Step(
            Event(CommitKind.PAUSE, self.index, request.seat, request.id, request.tier | request.parked << 8),
            partial(self._pause, request),
        )

    def _pause(self, request: Request) -> None:
        self._unseat(request)
        request.seat = None
        request.bound = False
        if request.parked:
            self.parked.append(request)
            self.slots.state[request.slot] = SlotState.PARKED
        else:
            self.queues[request.tier].appendleft(request)
            self.slots.state[request.slot] = SlotState.QUEUED
        self.counters.pauses += 1

    def seating(self) -> Step | None:
        """SEAT, if a seat is free for somebody who waits."""
        request = next_seated(self.queues, self.seated, self.tiers, self.free)
        if request is None:
            return None
        seat = next(seat for seat in range(self.seats) if seat not in self.seated)
        decodes = request.rows_left == 0

        def effect() -> None:
            self.queues[request.tier].remove(request)
            request.seat = seat
            self.seated[seat] = request
            if not decodes:
                self.prefilling[request.tier].append(request)
            self.slots.state[request.slot] = SlotState.SEATED

        return Step(Event(CommitKind.SEAT, self.index, seat, request.id, request.tier | decodes << 8), effect)
