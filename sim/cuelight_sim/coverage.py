"""What a random run must have reached before it proves anything."""

from __future__ import annotations

from collections import Counter

from cuelight.regmap import PAGE_COUNT, CommitKind, RejectReason, RetireReason

from .golden import Golden
from .group import Group
from .slots import SlotState
from .state import Sizes
from .steps import Event
from .tiers import TIERS

__all__ = ["Coverage", "goals"]

_LONG_PROMPT = 1000
_SITUATIONS = ("idle", "resetting", "forming", "loop point", "dispatch out", "pass alive")


def goals(sizes: Sizes) -> list[str]:
    """Names of everything that a long run has to reach, on a device of these sizes."""
    return [
        *(f"commit {kind.name}" for kind in CommitKind),
        *(f"reject {reason.name}" for reason in RejectReason),
        *(f"retire {reason.name}" for reason in RetireReason),
        *(f"retire while {situation}" for situation in ("resetting", "loop point", "idle")),
        *(f"cancel {state.name}" for state in SlotState if state not in (SlotState.FREE, SlotState.RETIRED)),
        *(f"cancel seated while {situation}" for situation in _SITUATIONS),
        "cancel marked again",
        *(f"reset while {situation}" for situation in _SITUATIONS),
        "reset with requests queued and seated",
        *(f"{what} {cut}" for what in ("command", "attributes") for cut in CUTS),
        "half command discarded",
        "bytes overwritten",
        "manual admission with attributes",
        "admission with an epoch of one's own",
        *(f"admission from page {page}" for page in range(PAGE_COUNT)),
        *(f"tier {tier} seated" for tier in range(TIERS)),
        *(f"group {group} dispatched" for group in range(sizes.lanes)),
        "full house with a queue",
        "no free slot",
        "long prompt prefilled",
        "prompt of one row prefilled",
        "prompt at a start position",
        "pass of chunks and decode rows",
        "pass of decode rows only",
        "pass that does not sample",
        "pass of 16 entries",
        "pass at the end of its row budget",
        "pass that came to nothing",
        "finished seat outside the pass",
        "finished words in several writes",
        "finished words in a wrong entry",
        "finished words with nothing outstanding",
        "completion of an old sequence",
        "completion of a sequence to come",
        "completion in a wrong entry",
        "completion twice",
        "completion before the dispatch was taken",
        "sequence wraps its low half",
        "sequence wraps its high half",
        *(f"{fifo} pop {kind}" for fifo in ("reject", "retirement", "trace", "poll") for kind in ("right", "stale")),
        "reject FIFO full",
        "event trace full",
        *(f"{register} accepted" for register in SETTINGS),
        *(f"{register} refused" for register in _VALIDATED),
        *(f"{what} {_EFFECTS[what][code]}" for what in _EFFECTS for code in range(len(_EFFECTS[what]))),
        *(f"{what} seated while {situation}" for what in ("park", "credit") for situation in _SITUATIONS),
        *(f"pause of a {what} request" for what in ("decoding", "prefilling", "parked")),
        "stepped request parked",
        "stepped request went on with a credit",
        "decoding request seated",
        "seat to a tier below its minimum before a higher one",
        "full house that minimum seats protect",
        "binding of a decoding seat",
        *(["unbound seats left for the next pass"] if sizes.seats > 16 else []),
        "chunk cut to minimum rows",
        "chunk cut to the cost budget",
        "chunk beyond the cost budget",
        "tier without rows passed over",
        "KV floor kept an admission out",
        "two dispatches outstanding",
        "completion of the younger of two dispatches",
        "completion by STAGE_DONE",
        "STAGE_DONE of a member twice",
        "read under way",
        "random write",
        "model reset",
    ]


_EFFECTS = {
    "park": ("ignored", "taken out of its queue", "begun", "idle", "used up a credit"),
    "credit": ("ignored", "queues again", "goes on", "remembered", "idle"),
}
CUTS = ("whole", "low half first", "high half first", "in pairs", "in bytes", "unaligned")
"""Ways in which the eight bytes of a command arrive."""
_VALIDATED = (
    "PAGE_ENABLE",
    "STAGE_COUNT",
    "SEATS",
    "ROWS",
    "KV_BLOCKS",
    "SEQUENCE",
    "DEPTH",
    "COST_DECODE",
    "MIN_SEATS",
    "MIN_ROWS",
    "KV_FLOOR",
)
SETTINGS = (*_VALIDATED, "COST", "COST_CHUNK")


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
        self._latest: CommitKind | None = None

    def note(self, goal: str) -> None:
        """Counts one more time that ``goal`` was reached."""
        if goal not in self._known:
            raise ValueError(f"{goal!r} is not a goal")
        self.counts[goal] += 1

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
                self.note(f"{what} {_EFFECTS[what][event.stage]}")
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
                if len(golden.groups[event.lane].dispatches) == 2:
                    self.note("two dispatches outstanding")
                self.note(f"group {event.lane} dispatched")
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
            self.note("seat to a tier below its minimum before a higher one")

    def _observe_plan(self, group: Group, golden: Golden) -> None:
        waiting = next((tier for tier, queue in enumerate(group.queues) if queue), TIERS)
        if len(group.seated) == group.seats and any(request.tier > waiting for request in group.seated.values()):
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
        alive = golden.groups[event.lane].alive
        if alive is None:
            self.note("pass that came to nothing")
            return
        if alive.decode:
            self.note("pass of chunks and decode rows" if alive.entries else "pass of decode rows only")
        if not alive.samples:
            self.note("pass that does not sample")
        if event.stage == 16:
            self.note("pass of 16 entries")
        if golden.groups[event.lane].rows - event.detail < 8:
            self.note("pass at the end of its row budget")
        if any(
            not request.bound and request.decoding and not request.marked and not request.parked
            for request in golden.groups[event.lane].seated.values()
        ):
            assert event.stage == 16
            self.note("unbound seats left for the next pass")


def situation(group: Group) -> str:
    """What a group is doing, as the goals name it."""
    if group.resetting:
        return "resetting"
    if group.forming is not None:
        return "forming"
    if group.alive is None:
        return "idle"
    if group.alive.loop is not None:
        return "loop point"
    return "dispatch out" if group.outstanding is not None else "pass alive"
