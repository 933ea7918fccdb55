"""What a random run has reached."""

from __future__ import annotations

from collections import Counter

from cuelight.regmap import CommitKind, RejectReason, RetireReason

from .goals import EFFECTS, goals
from .golden import Golden
from .group import Group
from .pass_coverage import PassCoverage
from .state import Sizes
from .steps import Event
from .tiers import TIERS

__all__ = ["Coverage", "situation"]

_LONG_PROMPT = 1000


class Coverage:
    """Counts what was reached.

    Parameters
    ----------
    sizes
        Of the device.
    """

    def __init__(self, sizes: Sizes) -> None:
        self._goals = goals(sizes)
        self._known = frozenset(self._goals)
        self.counts: Counter[str] = Counter()
        self._passes = PassCoverage()
        self._latest: CommitKind | None = None

    def note(self, goal: str) -> None:
        """Counts one more time that ``goal`` was reached."""
        if goal not in self._known:
            raise ValueError(f"{goal!r} is not a goal")
        self.counts[goal] += 1

    @property
    def commits(self) -> int:
        """Commits observed."""
        return sum(count for goal, count in self.counts.items() if goal.startswith("commit "))

    @property
    def missing(self) -> list[str]:
        """Goals not reached yet."""
        return [goal for goal in self._goals if not self.counts[goal]]

    def table(self) -> str:
        """All goals and how often each was reached."""
        width = max(map(len, self._goals))
        return "\n".join(f"{goal:<{width}}  {self.counts[goal]:>9,}" for goal in self._goals)

    def observe(self, event: Event, golden: Golden) -> None:
        """Counts what a commit shows, the golden model having followed it."""
        self.note(f"commit {event.kind.name}")
        for goal in self._passes.reached(event, golden):
            self.note(goal)
        match event.kind:
            case CommitKind.REJECT:
                self.note(f"reject {RejectReason(event.stage).name}")
                if golden.counters.rejects_lost:
                    self.note("reject FIFO full")
            case CommitKind.RETIRE:
                self.note(f"retire {RetireReason(event.stage).name}")
                now = situation(golden.groups[event.lane])
                if now in ("resetting", "loop point", "idle"):
                    self.note(f"retire while {now}")
            case CommitKind.ADMIT:
                self.note(f"admission from page {event.stage & 7}")
                if not golden.slots.free:
                    self.note("no free slot")
            case CommitKind.SEAT:
                self.note(f"tier {event.detail & 3} seated")
                self._observe_seat(event, golden)
            case CommitKind.PARK | CommitKind.CREDIT:
                what = event.kind.name.lower()
                self.note(f"{what} {EFFECTS[what][event.stage]}")
            case CommitKind.PARKED:
                if golden.groups[event.lane].seated[event.stage].stepped:
                    self.note("stepped request " + ("went on with a credit" if event.detail else "parked"))
            case CommitKind.PAUSE:
                request = golden.slots.request[event.id & 0xFFFF]
                assert request is not None
                self.note(f"pause of a {'prefilling' if request.rows_left else 'decoding'} request")
                if request.parked:
                    self.note("pause of a parked request")
            case CommitKind.CHUNK:
                self._observe_chunk(event, golden)
            case CommitKind.PLAN:
                self._observe_plan(golden.groups[event.lane], golden)
            case CommitKind.COMPLETE:
                if self._latest == CommitKind.STAGE_DONE:
                    self.note("completion by STAGE_DONE")
            case CommitKind.ADVANCE:
                self._observe_advance(event, golden)
            case CommitKind.FORM:
                self._observe_form(event, golden)
            case CommitKind.DISPATCH:
                if len(golden.lanes[event.lane].dispatches) == 2:
                    self.note("two dispatches outstanding")
                self.note(f"lane {event.lane} dispatched")
                if event.id & 0xFFFF == 0xFFFE:
                    self.note("sequence wraps its low half")
                    if event.id >> 16 == 0xFFFF:
                        self.note("sequence wraps its high half")
            case _:
                pass
        if golden.counters.trace_lost:
            self.note("event trace full")
        self._latest = event.kind

    def _observe_seat(self, event: Event, golden: Golden) -> None:
        group = golden.groups[event.lane]
        if len(group.seated) == group.seats and group.queued:
            self.note("full house with a queue")
        if event.detail >> 8:
            self.note("decoding request seated")
        if any(group.queues[: event.detail & 3]):
            taken = sum(request.tier == event.detail & 3 for request in group.seated.values())
            hungry = taken <= golden.tiers[event.detail & 3].min_seats
            self.note(
                "seat to a tier below its minimum before a higher one"
                if hungry
                else "seat to a lower tier past one held back by its floor"
            )

    def _observe_plan(self, group: Group, golden: Golden) -> None:
        waiting = next((tier for tier, queue in enumerate(group.queues) if queue), TIERS)
        in_pass = sum(run.members for run in group.alive.values())
        free = (request for seat, request in group.seated.items() if not in_pass >> seat & 1)
        if len(group.seated) < group.seats and waiting < TIERS:
            self.note("seats kept free by a floor")
        if len(group.seated) == group.seats and any(request.tier > waiting for request in free):
            self.note("full house that minimum seats protect")

    def _observe_chunk(self, event: Event, golden: Golden) -> None:
        forming = golden.groups[event.lane].forming
        assert forming is not None
        entry, others = forming.entries[-1], forming.entries[:-1]
        if not entry.rows:
            self.note("binding of a decoding seat")
            return
        costs, tier = forming.costs, entry.request.tier
        if any(
            not request.marked and not request.parked and all(other.request is not request for other in others)
            for higher in forming.prefilling[:tier]
            for request in higher
        ):
            self.note("tier without rows passed over")
        cost = entry.rows * costs.row(entry.start)
        if not others and not forming.decode and cost > costs.budget:
            self.note("chunk beyond the cost budget")
        elif not entry.last and entry.rows <= forming.row_budget:
            # Twice the rows were in the budget.
            self.note("chunk cut to " + ("the cost budget" if cost > forming.cost_budget else "minimum rows"))

    def _observe_advance(self, event: Event, golden: Golden) -> None:
        request = golden.groups[event.lane].seated[event.stage]
        if request.began:
            self.note("prompt at a start position")
        if request.decoding:
            length = request.start - request.began
            if length >= _LONG_PROMPT:
                self.note("long prompt prefilled")
            if length == 1:
                self.note("prompt of one row prefilled")

    def _observe_form(self, event: Event, golden: Golden) -> None:
        group = golden.groups[event.lane]
        run = next(run for run in group.alive.values() if run.number == event.id)
        if run.decode:
            self.note("pass of chunks and decode rows" if run.entries else "pass of decode rows only")
        if not run.samples:
            self.note("pass that does not sample")
        if event.stage == 16:
            self.note("pass of 16 entries")
            free = [request for seat, request in group.seated.items() if not run.members >> seat & 1]
            if any(not request.bound and request.decoding and not request.parked for request in free):
                self.note("unbound seats left for the next pass")
        if group.rows - event.detail < 8:
            self.note("pass at the end of its row budget")


def situation(group: Group) -> str:
    """What a group is doing, as the goals name it."""
    if group.resetting:
        return "resetting"
    if group.forming is not None:
        return "forming"
    if group.loop is not None:
        return "loop point"
    if not group.alive:
        return "idle"
    return "dispatch out" if any(lane.dispatches for lane in group.lanes) else "pass alive"
