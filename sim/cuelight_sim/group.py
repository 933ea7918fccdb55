"""One lane group: its queues, seats, passes and its lane (docs/device.md §6, §7)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from cuelight.regmap import CommitKind, RetireReason

from .fifos import Counters
from .forming import Costs, Entry, Forming
from .passes import Decision, LoopPoint, Outstanding, Pass, next_sequence
from .seating import next_seated, victim
from .slots import Request, Slots, SlotState
from .steps import Event, Step
from .tiers import TIERS, Tier

__all__ = ["Group"]


class Group:
    """A group, and the steps that are legal for it.

    Parameters
    ----------
    index
        Number of the group and of its lane.
    seats
        Seats it has.
    slots, counters, tiers
        The device's.
    stage_count
        Gives STAGE_COUNT.
    """

    def __init__(
        self,
        index: int,
        seats: int,
        slots: Slots,
        counters: Counters,
        tiers: Sequence[Tier],
        stage_count: Callable[[], int],
    ) -> None:
        self.index = index
        self._slots = slots
        self._counters = counters
        self._tiers = tiers
        self._stage_count = stage_count
        self.seats = seats
        self.rows = max(256, seats + 16)
        self.kv_blocks = 0
        self.kv_free = 0
        self.costs = Costs()
        self.queues: tuple[deque[Request], ...] = tuple(deque() for _ in range(TIERS))
        self.prefilling: tuple[list[Request], ...] = tuple([] for _ in range(TIERS))
        self.seated: dict[int, Request] = {}
        self.parked: list[Request] = []
        """Requests that are parked without a seat."""
        self.pass_number = 0
        self.forming: Forming | None = None
        self.alive: Pass | None = None
        self.resetting = False
        self.sequence = 1
        self.depth = 2
        self.dispatches: deque[Outstanding] = deque()
        """Those outstanding, the oldest first."""
        self.seat_begun = False
        """The pass's last dispatch completed while a SEAT may have been on its way."""
        self.decision = Decision()
        self.busy_since = 0
        """Cycle since which the lane's busy time is not counted yet."""
        self.busy_cycles = 0
        """Cycles in which a dispatch was outstanding, up to the latest COMPLETE."""

    # ------------------------------------------------------------------------------------------- what it looks like

    @property
    def empty(self) -> bool:
        """No request is queued, seated or parked."""
        return not self.seated and not self.parked and not any(self.queues)

    @property
    def outstanding(self) -> Outstanding | None:
        """The oldest outstanding dispatch."""
        return self.dispatches[0] if self.dispatches else None

    @property
    def offered(self) -> Outstanding | None:
        """The oldest outstanding dispatch that was not taken: the one in the poll registers."""
        return next((dispatch for dispatch in self.dispatches if dispatch.offered), None)

    @property
    def queued(self) -> int:
        return sum(map(len, self.queues))

    @property
    def decoding(self) -> int:
        """Bitmap of decoding seats."""
        return sum(1 << seat for seat, request in self.seated.items() if request.decoding)

    @property
    def loop_due(self) -> bool:
        alive = self.alive
        return (
            alive is not None and alive.loop is None and not self.dispatches and alive.dispatched == len(alive.stages)
        )

    @property
    def loop_over(self) -> bool:
        """The loop point has shown all that it must show; nothing on the commit port tells when it ends."""
        if self.alive is None or self.alive.loop is None:
            return False
        loop = self.alive.loop
        return loop.doubtful or ((not loop.retiring or loop.settled) and self._next_advance() is None)

    @property
    def busy_core(self) -> bool:
        """A loop point or the forming of a pass has begun and is certainly not finished."""
        if self.alive is not None and self.alive.loop is not None:
            return not self.loop_over
        return self.forming is not None

    def end_loop(self) -> None:
        """Notes that the loop point, over by :attr:`loop_over`, has ended."""
        for request in self._parkers():
            request.parking = True
        self.alive = None

    def _parkers(self) -> list[Request]:
        """Requests to be parked, lowest seat first; stepped ones that sampled count once the loop point is over."""
        sampled = self.alive.sampling if self.alive is not None and self.loop_over else 0
        return [
            request
            for seat, request in sorted(self.seated.items())
            if request.parking or (request.stepped and sampled >> seat & 1)
        ]

    # ------------------------------------------------------------------------------------------- legal steps, core

    def steps(self) -> Iterator[Step]:
        """Steps of the background work that are legal now, the one that is due first."""
        if self.resetting:
            yield self._reset_step()
        elif self.alive is not None and self.alive.loop is not None:
            yield from self._loop_steps(self.alive, self.alive.loop)
            if self.loop_over:
                yield from self._idle_steps()
        elif self.loop_due:
            assert self.alive is not None
            yield Step(Event(CommitKind.LOOP_POINT, self.index, id=self.alive.number), self._begin_loop)
            if self.seat_begun:
                yield from self._seat_steps()
        elif self.forming is not None:
            for entry in dict.fromkeys(self.forming.next_entries()):
                yield self._forming_step(self.forming, entry)
        elif self.alive is not None:
            yield from self._seat_steps()
        else:
            yield from self._idle_steps()

    def retirement(self, request: Request, reason: RetireReason) -> Step:
        detail = 0x100 if request.seat is None else request.seat
        event = Event(CommitKind.RETIRE, self.index, reason, request.id, detail)
        return Step(event, partial(self.retire, request, reason))

    def retire(self, request: Request, reason: RetireReason) -> None:
        """Takes a request out of the group."""
        if request.seat is not None:
            self._unseat(request)
        elif request in self.parked:
            self.parked.remove(request)
        else:
            self.queues[request.tier].remove(request)
        self.kv_free += request.kv_blocks
        self._counters.retired += 1
        self._slots.retire(request, reason)

    def _unseat(self, request: Request) -> None:
        assert request.seat is not None
        del self.seated[request.seat]
        if request in self.prefilling[request.tier]:
            self.prefilling[request.tier].remove(request)

    def _reset_step(self) -> Step:
        if self.seated:
            return self.retirement(self.seated[min(self.seated)], RetireReason.LANE_LOST)
        for queue in self.queues:
            if queue:
                return self.retirement(queue[0], RetireReason.LANE_LOST)
        return Step(Event(CommitKind.GROUP_READY, self.index), self._end_reset)

    def _end_reset(self) -> None:
        self.resetting = False
        self.decision.idle = True

    def _begin_loop(self) -> None:
        assert self.alive is not None
        self.alive.loop = LoopPoint()
        self._settle(self.alive, self.alive.loop)

    def _settle(self, alive: Pass, loop: LoopPoint) -> None:
        certain = (seat for seat, request in self.seated.items() if request.marked or alive.finished >> seat & 1)
        loop.settled = next(certain, None) is None

    def _loop_steps(self, alive: Pass, loop: LoopPoint) -> Iterator[Step]:
        if loop.retiring:
            for seat in sorted(self.seated):
                request = self.seated[seat]
                finished = bool(alive.finished >> seat & 1)
                maybe = bool(alive.maybe_finished >> seat & 1)
                if finished or maybe:
                    yield self._loop_retirement(alive, loop, request, RetireReason.FINISHED)
                if request.marked and not finished:
                    yield self._loop_retirement(alive, loop, request, RetireReason.CANCELLED)
                if request.marked or finished:
                    break
        if not loop.retiring or loop.settled:
            entry = self._next_advance()
            if entry is not None:
                yield self._advance(entry)

    def _loop_retirement(self, alive: Pass, loop: LoopPoint, request: Request, reason: RetireReason) -> Step:
        step = self.retirement(request, reason)
        doubtful = self.loop_over and reason == RetireReason.CANCELLED

        def effect() -> None:
            step.effect()
            loop.doubtful |= doubtful
            loop.retired.add(request.id)
            self._settle(alive, loop)

        return Step(step.event, effect)

    def _next_advance(self) -> Entry | None:
        assert self.alive is not None
        assert self.alive.loop is not None
        loop = self.alive.loop
        pending = self.alive.entries[loop.advanced :]
        return next((entry for entry in pending if entry.rows and entry.request.id not in loop.retired), None)

    def _advance(self, entry: Entry) -> Step:
        done = entry.last
        detail = entry.start + entry.rows | done << 31
        event = Event(CommitKind.ADVANCE, self.index, entry.seat, entry.request.id, detail)

        def effect() -> None:
            assert self.alive is not None
            assert self.alive.loop is not None
            self.alive.loop.retiring = False
            self.alive.loop.advanced = self.alive.entries.index(entry) + 1
            entry.request.start += entry.rows
            entry.request.rows_left -= entry.rows
            if done:
                self.prefilling[entry.request.tier].remove(entry.request)

        return Step(event, effect)

    def _idle_steps(self) -> Iterator[Step]:
        """Steps while no pass is alive or being formed."""
        marked = [seat for seat, request in self.seated.items() if request.marked]
        parkers = self._parkers()
        if marked:
            yield self.retirement(self.seated[min(marked)], RetireReason.CANCELLED)
        elif parkers:
            yield self._park_step(parkers[0])
        elif len(self.seated) == self.seats and (pushed := victim(self.queues, self.seated, self._tiers)) is not None:
            yield self._pause_step(pushed)
        elif (seats := next(self._seat_steps(), None)) is not None:
            yield seats
        elif any(not request.parked for request in self.seated.values()):
            rows = sum(request.decoding and not request.parked for request in self.seated.values())
            event = Event(CommitKind.PLAN, self.index, id=self.pass_number + 1 & 0xFFFF_FFFF, detail=rows)
            yield Step(event, self._plan)

    def _park_step(self, request: Request) -> Step:
        assert request.seat is not None

        def effect() -> None:
            request.parking = False
            request.parked = not request.credit
            request.credit = False

        return Step(Event(CommitKind.PARKED, self.index, request.seat, detail=request.credit), effect)

    def _pause_step(self, request: Request) -> Step:
        assert request.seat is not None

        def effect() -> None:
            self._unseat(request)
            request.seat = None
            request.bound = False
            if request.parked:
                self.parked.append(request)
                self._slots.state[request.slot] = SlotState.PARKED
            else:
                self.queues[request.tier].appendleft(request)
                self._slots.state[request.slot] = SlotState.QUEUED
            self._counters.pauses += 1

        detail = request.tier | request.parked << 8
        return Step(Event(CommitKind.PAUSE, self.index, request.seat, request.id, detail), effect)

    def _seat_steps(self) -> Iterator[Step]:
        seat = next((seat for seat in range(self.seats) if seat not in self.seated), None)
        request = next_seated(self.queues, self.seated, self._tiers)
        if seat is None or request is None:
            return
        decodes = request.rows_left == 0

        def effect() -> None:
            self.queues[request.tier].remove(request)
            request.seat = seat
            self.seated[seat] = request
            if not decodes:
                self.prefilling[request.tier].append(request)
            self._slots.state[request.slot] = SlotState.SEATED
            self.seat_begun = False

        yield Step(Event(CommitKind.SEAT, self.index, seat, request.id, request.tier | decodes << 8), effect)

    def _plan(self) -> None:
        self.pass_number = self.pass_number + 1 & 0xFFFF_FFFF
        decoding = [request for _, request in sorted(self.seated.items()) if request.decoding]
        rows = [request for request in decoding if not request.parked]
        self.forming = Forming(
            self.pass_number,
            decode=sum(1 << request.seat for request in rows if request.bound and request.seat is not None),
            row_budget=self.rows - len(rows),
            cost_budget=max(0, self.costs.budget - len(rows) * self.costs.decode),
            costs=self.costs,
            tiers=self._tiers,
            joining=[request for request in decoding if not request.bound],
            to_bind=sum(not request.bound for request in rows),
            prefilling=tuple(map(tuple, self.prefilling)),
        )

    def _forming_step(self, forming: Forming, entry: Entry | None) -> Step:
        if entry is None:
            event = Event(CommitKind.FORM, self.index, len(forming.entries), forming.number, forming.rows)
            return Step(event, self._form)
        detail = entry.start | entry.rows << 20 | entry.last << 30 | entry.first << 31
        event = Event(CommitKind.CHUNK, self.index, entry.seat, entry.request.id, detail)
        return Step(event, partial(forming.take, entry))

    def _form(self) -> None:
        assert self.forming is not None
        formed = self.forming
        self.forming = None
        if formed.decode or formed.entries:
            self.alive = Pass(formed, self._stage_count())
            self._counters.passes += 1
            self._counters.rows += formed.rows

    # ------------------------------------------------------------------------------------------- legal steps, lane

    def dispatch(self) -> Step | None:
        """The DISPATCH that is due, its decision cycles left out."""
        alive = self.alive
        if alive is None or alive.loop is not None or len(self.dispatches) >= self.depth:
            return None
        if alive.dispatched == len(alive.stages):
            return None
        outstanding = Outstanding(
            self.sequence,
            alive.stages[alive.dispatched],
            first=alive.dispatched == 0,
            last=alive.dispatched == len(alive.stages) - 1,
        )
        flags = outstanding.first | outstanding.last << 1 | alive.samples << 2
        event = Event(CommitKind.DISPATCH, self.index, outstanding.stage, self.sequence, alive.rows | flags << 28)

        def effect() -> None:
            if alive.stamp is None:
                alive.stamp = self.sequence & 0xFFFF
            alive.dispatched += 1
            self.dispatches.append(outstanding)
            self.sequence = next_sequence(self.sequence)
            self._counters.dispatches += 1

        return Step(event, effect)

    def completion(self, entry: int, value: int) -> Step:
        """What writing ``value`` to BATCH_DONE of a completion entry does."""
        outstanding = self.outstanding
        if outstanding is None or value != outstanding.sequence or entry != value % 16:
            return Step(Event(CommitKind.COMPLETE_IGNORED, self.index, id=value), self._ignore_completion)
        return Step(Event(CommitKind.COMPLETE, self.index, outstanding.stage, value), self._complete)

    def _ignore_completion(self) -> None:
        self._counters.completions_ignored += 1

    def _complete(self) -> None:
        assert self.alive is not None
        complete = self.dispatches.popleft()
        self.alive.finished |= complete.kept & self.alive.members
        self.alive.maybe_finished |= complete.maybe_kept & self.alive.members
        self.alive.reported = 0
        self.seat_begun = self.loop_due

    def taken(self) -> Step | None:
        """The TAKEN that a pop of the head makes."""
        head = self.offered
        if head is None:
            return None

        def effect() -> None:
            head.offered = False

        return Step(Event(CommitKind.TAKEN, self.index, id=head.sequence), effect)

    def stage_done(self, request: Request) -> bool:
        """Whether STAGE_DONE of a request counts now."""
        alive = self.alive
        if alive is None or not self.dispatches or request.seat is None:
            return False
        return bool(alive.members & ~alive.reported & 1 << request.seat)

    def report(self, request: Request) -> bool:
        """Counts STAGE_DONE of a request; whether it was the last member's."""
        assert self.alive is not None
        assert request.seat is not None
        self.alive.reported |= 1 << request.seat
        return self.alive.reported == self.alive.members

    # ------------------------------------------------------------------------------------------- commands

    def enqueue(self, request: Request) -> None:
        """Takes an admitted request's KV blocks and queues it."""
        self.kv_free -= request.kv_blocks
        self.queues[request.tier].append(request)

    def reset(self) -> None:
        """Drops dispatch and pass; the retirements follow as steps."""
        if self.resetting:
            return
        self.resetting = True
        self.dispatches.clear()
        self.forming = None
        self.alive = None

    def note_idleness(self) -> None:
        """Notes, before a write acts, whether the group waits for one."""
        if self.resetting or self.forming is not None or (self.alive is not None and not self.loop_over):
            return
        if not any(self.queues) and all(request.parked for request in self.seated.values()):
            self.decision.idle = True if self.alive is None else None

    def park(self, request: Request) -> list[tuple[int, Callable[[], None]]]:
        """Effect codes that a PARK may show, each with what it does."""

        def leave_queue() -> None:
            self.queues[request.tier].remove(request)
            self.parked.append(request)
            request.parked = True
            self._slots.state[request.slot] = SlotState.PARKED

        def use_credit() -> None:
            request.credit = False

        def begin() -> None:
            request.parking = True

        if request.seat is None:
            if request.parked:
                return [(3, lambda: None)]
            return [(4, use_credit)] if request.credit else [(1, leave_queue)]
        if request.parked or request.parking:
            return [(3, lambda: None)]
        if request in self._parkers():
            # A stepped one: nothing tells whether the loop point has ended yet.
            return [(3, begin), (2, begin)]
        return [(2, begin)]

    def credit(self, request: Request) -> tuple[int, Callable[[], None]]:
        """Effect code of a CREDIT, and what it does."""

        def queue_again() -> None:
            self.parked.remove(request)
            self.queues[request.tier].appendleft(request)
            request.parked = False
            self._slots.state[request.slot] = SlotState.QUEUED

        def go_on() -> None:
            request.parked = False
            if self.forming is not None:
                self.forming.credited.append(request)

        def remember() -> None:
            request.credit = True

        if request.parked:
            return (1, queue_again) if request.seat is None else (2, go_on)
        return (4, lambda: None) if request.credit else (3, remember)

    def calm_verdicts(self, fair: bool) -> tuple[bool, ...]:
        """Whether a write of SEQUENCE or DEPTH may be accepted; both where the end of a loop point can't be told."""
        if not fair or self.dispatches or self.forming is not None:
            return (False,)
        if self.alive is not None:
            return (False, True) if self.loop_over else (False,)
        return (True,)
