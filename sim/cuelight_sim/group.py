"""One lane group: in which order it does its work (docs/device.md §6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from cuelight.regmap import LANE_COUNT, CommitKind, RetireReason

from .dispatching import Dispatching
from .fifos import Counters
from .forming import Costs, Entry, Forming
from .house import House
from .lane import Lane, lane_of
from .looping import LoopPoint
from .passes import Pass
from .planning import Plan, next_plan, second_plan
from .slots import Slots
from .steps import Event, Step
from .tiers import Tier

__all__ = ["Group"]

_FIRST_LAYER = 2
"""Stage that a pass runs in any case."""


class Group(House):
    """A group, and the steps that are legal for it.

    Parameters
    ----------
    lane
        Its lane; more of them serve it in a pipeline.
    seats
        Seats it has.
    slots, counters, tiers
        The device's.
    stage_count
        Gives STAGE_COUNT.
    clock
        Gives the cycle of the present commit.
    """

    def __init__(
        self,
        lane: Lane,
        seats: int,
        slots: Slots,
        counters: Counters,
        tiers: Sequence[Tier],
        stage_count: Callable[[], int],
        clock: Callable[[], int],
    ) -> None:
        super().__init__(lane.index, seats, slots, counters, tiers)
        self._stage_count = stage_count
        self._clock = clock
        self.lanes: Sequence[Lane] = (lane,)
        """Lanes that serve it; none if it is absorbed."""
        self.rows = max(256, seats + 16)
        self.costs = Costs()
        self.pass_number = 0
        self.alive: dict[int, Pass] = {}
        self.forming: Forming | None = None
        self.loop: LoopPoint | None = None
        self.resetting = False
        self.dispatching = Dispatching(self.index, self.alive, counters, clock)
        self._turn = LANE_COUNT - 1
        """Which pass, but for second ones, was planned last."""
        self._second_buffer = 1
        """Which of its two buffers the second pass used last."""

    # ------------------------------------------------------------------------------------------- what it looks like

    @property
    def absorbed(self) -> bool:
        """Its lane serves another group."""
        return not self.lanes

    @property
    def pipeline(self) -> bool:
        return len(self.lanes) > 1

    @property
    def busy_core(self) -> bool:
        """A loop point or the forming of a pass has begun and is certainly not finished."""
        return self.forming is not None or (self.loop is not None and not self.loop.over)

    @property
    def ends_last_pass(self) -> bool:
        """The loop point of the only pass that is alive is over, and can't be told to have ended."""
        return self.loop is not None and self.loop.over and len(self.alive) == 1

    def end_loop(self) -> None:
        """Notes that the loop point, if there is one that is over, has ended."""
        if self.loop is None or not self.loop.over:
            return
        run = self.loop.run
        for seat, request in self.seated.items():
            request.parking |= request.stepped and bool(run.sampling >> seat & 1)
        del self.alive[run.k]
        self.loop = None

    def calm_verdicts(self, lane: Lane, fair: bool) -> tuple[bool, ...]:
        """Whether a write of SEQUENCE or DEPTH may be accepted; both where the end of a loop point can't be told."""
        return (False,) if not fair or lane.dispatches else self.without_passes

    @property
    def without_passes(self) -> tuple[bool, ...]:
        """Whether no pass is alive or being formed; both where the end of a loop point can't be told."""
        if self.busy_core or len(self.alive) > (self.loop is not None):
            return (False,)
        return (False, True) if self.alive else (True,)

    # ------------------------------------------------------------------------------------------- legal steps

    def steps(self) -> Iterator[Step]:
        """Steps of the background work that are legal now, the one that is due first."""
        if self.resetting:
            yield self._reset_step()
        elif self.loop is not None:
            yield from self.loop.steps()
            if self.loop.over:
                yield from self._free_steps(self.loop.run)
        elif self.forming is not None:
            for entry in dict.fromkeys(self.forming.next_entries()):
                yield self._forming_step(self.forming, entry)
        else:
            yield from self._free_steps(None)

    def _free_steps(self, ended: Pass | None) -> Iterator[Step]:
        """Steps outside of loop points and forming; more than one where a pass may not have been seen to be due."""
        if not (self.alive or self.seated or any(self.queues)):
            return
        alive = [run for run in self.alive.values() if run is not ended]
        due = [run for run in alive if run.due]
        unseen = [run for run in self.dispatching.unseen if run in due]
        for seen in range(len(unseen), -1, -1):
            visible = [run for run in due if run not in unseen[seen:]]
            step = self._loop_point(visible) if visible else self._idle_step(alive, ended)
            if step is not None:
                yield step

    def _loop_point(self, due: Sequence[Pass]) -> Step:
        run = min(due, key=lambda run: run.k if self.pipeline else -run.k)

        def begin() -> None:
            self.loop = LoopPoint(self, run, _members(self.alive.values()) & ~run.members)

        return Step(Event(CommitKind.LOOP_POINT, self.index, run.k, run.number), begin)

    def _idle_step(self, alive: Sequence[Pass], ended: Pass | None) -> Step | None:
        """The first of steps 3 to 8; ``ended`` is a pass that is no longer alive, but has yet to leave its mark."""
        in_pass = _members(alive)
        sampled = ended.sampling if ended is not None else 0
        free = [(seat, request) for seat, request in sorted(self.seated.items()) if not in_pass >> seat & 1]
        for _, request in free:
            if request.marked:
                return self.retirement(request, RetireReason.CANCELLED)
        for seat, request in free:
            if request.parking or (request.stepped and sampled >> seat & 1):
                return self.parking(request)
        step = self.pause(in_pass) or self.seating()
        if step is not None:
            return step
        requests = [request for _, request in free]
        numbers = {run.k for run in alive}
        plan = next_plan(requests, self.prefilling, len(self.lanes), numbers, self._turn)
        if plan is None and not self.pipeline and numbers == {0}:
            plan = second_plan(self.prefilling, alive[0].top)
        if plan is None:
            return None
        number = self.pass_number + 1 & 0xFFFF_FFFF
        detail = len(plan.decode_rows) | len(self.lanes) << 16
        event = Event(CommitKind.PLAN, self.index, plan.k, number, detail)
        return Step(event, partial(self._plan, plan, number))

    def _plan(self, plan: Plan, number: int) -> None:
        self.pass_number = number
        if self.pipeline or plan.k == 0:
            self._turn = plan.k
            self.lanes[plan.k].buffer ^= 1
            buffer = self.lanes[plan.k].buffer
        else:
            self._second_buffer ^= 1
            buffer = self._second_buffer
        self.forming = Forming(plan, number, 2 * plan.k + buffer, self.rows, self.costs, self.tiers)
        lane_of(self.lanes, _FIRST_LAYER).decision.begin_if_none(self._clock())

    def _forming_step(self, forming: Forming, entry: Entry | None) -> Step:
        if entry is None:
            event = Event(CommitKind.FORM, self.index, len(forming.entries), forming.number, forming.rows)
            return Step(event, self._form)
        detail = entry.start | entry.rows << 20 | entry.last << 30 | entry.first << 31
        event = Event(CommitKind.CHUNK, self.index, entry.seat, entry.request.id, detail)
        return Step(event, partial(forming.take, entry))

    def _form(self) -> None:
        formed = self.forming
        assert formed is not None
        self.forming = None
        run = Pass(formed, self.lanes, self._stage_count(), self._clock())
        run.top = min(request.tier for seat, request in self.seated.items() if run.members >> seat & 1)
        self.alive[run.k] = run
        self.counters.passes += 1
        self.counters.rows += formed.rows

    # ------------------------------------------------------------------------------------------- reset

    def reset(self) -> None:
        """Drops dispatches and passes; the retirements follow as steps."""
        if self.resetting:
            return
        self.resetting = True
        self.forming = None
        self.loop = None
        self.alive.clear()
        for lane in self.lanes:
            lane.dispatches.clear()

    def _reset_step(self) -> Step:
        if self.seated:
            return self.retirement(self.seated[min(self.seated)], RetireReason.LANE_LOST)
        for queue in self.queues:
            if queue:
                return self.retirement(queue[0], RetireReason.LANE_LOST)
        return Step(Event(CommitKind.GROUP_READY, self.index), partial(setattr, self, "resetting", False))


def _members(passes: Iterable[Pass]) -> int:
    """Bitmap of seats in any of them."""
    seats = 0
    for run in passes:
        seats |= run.members
    return seats
