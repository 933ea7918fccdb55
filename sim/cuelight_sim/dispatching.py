"""Which pass a lane's next dispatch belongs to, and what completes it (docs/device.md §7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import combinations

from cuelight.regmap import LANE_COUNT, CommitKind

from .fifos import Counters
from .lane import Lane, Outstanding, next_sequence
from .passes import Pass
from .slots import Request
from .steps import Event, Step

__all__ = ["Dispatching"]


class Dispatching:
    """Sends a group's passes to its lanes.

    Parameters
    ----------
    index
        Number of the group.
    alive
        Its passes.
    counters
        The device's.
    clock
        Gives the cycle of the present commit.
    """

    def __init__(self, index: int, alive: Mapping[int, Pass], counters: Counters, clock: Callable[[], int]) -> None:
        self._index = index
        self._alive = alive
        self._counters = counters
        self._clock = clock
        self.unseen: list[Pass] = []
        """Passes whose last dispatch completed when a step may have been on its way, in the order in which they did."""

    def dispatches(self, lane: Lane, *, pipeline: bool) -> list[Step]:
        """DISPATCHes of which one is due on a lane, their decision cycles left out.

        It is more than one where a pass became ready in this very cycle.
        """
        if len(lane.dispatches) >= lane.depth:
            return []
        ready = [run for run in self._alive.values() if run.ready_for(lane)]
        fresh = [run for run in ready if run.ready_since == self._clock()]
        chosen: dict[int, Pass] = {}
        for count in range(len(fresh) + 1):
            for hidden in combinations(fresh, count):
                seen = {run.k: run for run in ready if run not in hidden}
                k = next((k for k in self._order(lane, pipeline=pipeline) if k in seen), None)
                if k is not None:
                    chosen[k] = seen[k]
        return [self._dispatch(lane, run, second=not pipeline and run.k == 1) for run in chosen.values()]

    def _order(self, lane: Lane, *, pipeline: bool) -> Iterable[int]:
        """Passes in the order in which they go first."""
        if not pipeline:
            return (1, 0)
        return ((lane.latest + turn) % LANE_COUNT - self._index for turn in range(LANE_COUNT))

    def _dispatch(self, lane: Lane, run: Pass, *, second: bool) -> Step:
        leg = run.next_leg
        assert leg is not None
        sequence = lane.sequence
        flags = leg.first | leg.last << 1 | run.samples << 2
        detail = run.rows | run.k << 10 | self._index << 13 | flags << 28
        event = Event(CommitKind.DISPATCH, lane.index, leg.stage, sequence, detail)

        def effect() -> None:
            run.stamps.setdefault(lane.index, sequence & 0xFFFF)
            run.dispatched += 1
            run.outstanding += 1
            lane.dispatches.append(Outstanding(run, leg, sequence))
            lane.sequence = next_sequence(sequence)
            self._counters.dispatches += 1
            if not second:
                lane.latest = self._index + run.k

        return Step(event, effect)

    def completion(self, lane: Lane, entry: int, value: int) -> Step:
        """What writing ``value`` to BATCH_DONE of a completion entry does."""
        outstanding = lane.outstanding
        if outstanding is None or value != outstanding.sequence or entry != value % 16:
            return Step(Event(CommitKind.COMPLETE_IGNORED, lane.index, id=value), self._ignore_completion)
        event = Event(CommitKind.COMPLETE, lane.index, outstanding.leg.stage, value)
        return Step(event, partial(self._complete, lane))

    def _ignore_completion(self) -> None:
        self._counters.completions_ignored += 1

    def _complete(self, lane: Lane) -> None:
        now = self._clock()
        complete = lane.dispatches.popleft()
        run = complete.run
        run.finished |= complete.kept & run.members
        run.maybe_finished |= complete.maybe_kept & run.members
        run.outstanding -= 1
        lane.busy_cycles += now - lane.busy_since
        lane.busy_since = now
        lane.decision.begin(now)
        if run.due:
            self.unseen.append(run)
        elif run.crosses and not run.outstanding:
            run.ready_since = now
            assert run.next_leg is not None
            run.next_leg.lane.decision.begin(now)

    def reportable(self, lanes: Iterable[Lane], request: Request) -> Outstanding | None:
        """The dispatch that STAGE_DONE of a request counts for now."""
        if request.seat is None:
            return None
        oldest = (lane.outstanding for lane in lanes)
        return next((out for out in oldest if out and out.run.members & ~out.reported & 1 << request.seat), None)
