"""One lane group: its queues, seats, passes and its lane (docs/device.md §6, §7)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial

from cuelight.regmap import CommitKind, RetireReason

from .fifos import Counters
from .passes import Decision, Entry, Forming, LoopPoint, Outstanding, Pass, next_sequence
from .slots import Request, Slots, SlotState
from .steps import Event, Step

__all__ = ["TIERS", "Group"]

TIERS = 4


class Group:
    """A group, and the steps that are legal for it.

    Parameters
    ----------
    index
        Number of the group and of its lane.
    seats
        Seats it has.
    slots, counters
        The device's.
    stage_count
        Gives STAGE_COUNT.
    """

    def __init__(
        self, index: int, seats: int, slots: Slots, counters: Counters, stage_count: Callable[[], int]
    ) -> None:
        self.index = index
        self._slots = slots
        self._counters = counters
        self._stage_count = stage_count
        self.seats = seats
        self.rows = max(256, seats + 16)
        self.kv_blocks = 0
        self.kv_free = 0
        self.queues: tuple[deque[Request], ...] = tuple(deque() for _ in range(TIERS))
        self.prefilling: tuple[list[Request], ...] = tuple([] for _ in range(TIERS))
        self.seated: dict[int, Request] = {}
        self.pass_number = 0
        self.forming: Forming | None = None
        self.alive: Pass | None = None
        self.resetting = False
        self.sequence = 1
        self.outstanding: Outstanding | None = None
        self.seat_begun = False
        """The pass's last dispatch completed while a SEAT may have been on its way."""
        self.decision = Decision()
        self.dispatched = 0
        """Cycle of the latest DISPATCH."""
        self.busy_cycles = 0
        """Cycles from DISPATCH to COMPLETE, of all that are complete."""

    # ------------------------------------------------------------------------------------------- what it looks like

    @property
    def empty(self) -> bool:
        """No request is queued or seated."""
        return not self.seated and not any(self.queues)

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
            alive is not None
            and alive.loop is None
            and self.outstanding is None
            and alive.dispatched == len(alive.stages)
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
        self.alive = None

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
            yield self._forming_step(self.forming)
        elif self.alive is not None:
            yield from self._seat_steps()
        else:
            yield from self._idle_steps()

    def retirement(self, request: Request, reason: RetireReason) -> Step:
        detail = 0x100 if request.seat is None else request.seat
        event = Event(CommitKind.RETIRE, self.index, reason, request.id, detail)
        return Step(event, partial(self.retire, request, reason))

    def retire(self, request: Request, reason: RetireReason) -> None:
        """Takes a queued or seated request out of the group."""
        if request.seat is None:
            self.queues[request.tier].remove(request)
        else:
            del self.seated[request.seat]
            if request in self.prefilling[request.tier]:
                self.prefilling[request.tier].remove(request)
        self.kv_free += request.kv_blocks
        self._counters.retired += 1
        self._slots.retire(request, reason)

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
        return next((entry for entry in pending if entry.request.id not in loop.retired), None)

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
        seats = next(self._seat_steps(), None)
        if marked:
            yield self.retirement(self.seated[min(marked)], RetireReason.CANCELLED)
        elif seats is not None:
            yield seats
        elif self.seated:
            decode = self.decoding
            event = Event(CommitKind.PLAN, self.index, id=self.pass_number + 1 & 0xFFFF_FFFF, detail=decode.bit_count())
            yield Step(event, self._plan)

    def _seat_steps(self) -> Iterator[Step]:
        seat = next((seat for seat in range(self.seats) if seat not in self.seated), None)
        queue = next((queue for queue in self.queues if queue), None)
        if seat is None or queue is None:
            return
        request = queue[0]

        def effect() -> None:
            queue.popleft()
            request.seat = seat
            self.seated[seat] = request
            self.prefilling[request.tier].append(request)
            self._slots.state[request.slot] = SlotState.SEATED
            self.seat_begun = False

        yield Step(Event(CommitKind.SEAT, self.index, seat, request.id, request.tier), effect)

    def _plan(self) -> None:
        self.pass_number = self.pass_number + 1 & 0xFFFF_FFFF
        decode = self.decoding
        walk = tuple(request for tier in self.prefilling for request in tier)
        self.forming = Forming(self.pass_number, decode, self.rows - decode.bit_count(), walk)

    def _forming_step(self, forming: Forming) -> Step:
        entry = forming.next_chunk()
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
        if formed.rows:
            self.alive = Pass(formed, self._stage_count())
            self._counters.passes += 1
            self._counters.rows += formed.rows

    # ------------------------------------------------------------------------------------------- legal steps, lane

    def dispatch(self) -> Step | None:
        """The DISPATCH that is due, its decision cycles left out."""
        alive = self.alive
        if alive is None or alive.loop is not None or self.outstanding is not None:
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
            self.outstanding = outstanding
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
        assert self.outstanding is not None
        assert self.alive is not None
        self.alive.finished |= self.outstanding.kept & self.alive.members
        self.alive.maybe_finished |= self.outstanding.maybe_kept & self.alive.members
        self.outstanding = None
        self.seat_begun = self.loop_due

    def taken(self) -> Step | None:
        """The TAKEN that a pop of the head makes."""
        if self.outstanding is None or not self.outstanding.offered:
            return None
        outstanding = self.outstanding

        def effect() -> None:
            outstanding.offered = False

        return Step(Event(CommitKind.TAKEN, self.index, id=outstanding.sequence), effect)

    # ------------------------------------------------------------------------------------------- commands

    def enqueue(self, request: Request) -> None:
        """Takes an admitted request's KV blocks and queues it."""
        if self.empty and not self.resetting and self.forming is None:
            if self.alive is None:
                self.decision.idle = True
            elif self.loop_over:
                self.decision.idle = None
        self.kv_free -= request.kv_blocks
        self.queues[request.tier].append(request)

    def reset(self) -> None:
        """Drops dispatch and pass; the retirements follow as steps."""
        if self.resetting:
            return
        self.resetting = True
        self.outstanding = None
        self.forming = None
        self.alive = None

    def sequence_verdicts(self, value: int) -> tuple[bool, ...]:
        """Whether a write of SEQUENCE may be accepted; both where the end of a loop point can't be told."""
        if value & 0xFFFF in (0, 0xFFFF) or self.outstanding is not None or self.forming is not None:
            return (False,)
        if self.alive is not None:
            return (False, True) if self.loop_over else (False,)
        return (True,)
