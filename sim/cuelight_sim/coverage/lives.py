"""What a host may do to a request, in every state that it can find it in (docs/device.md §3, §4)."""

from __future__ import annotations

from collections.abc import Iterable

from cuelight import regmap
from cuelight.regmap import CommitKind

from ..commands import CANCEL
from ..golden import Golden
from ..lockstep import Write
from ..situations import unsure
from ..slots import Request, SlotState
from ..steps import Event
from .family import Family
from .moments import PHASES, POSTURES, Told, phase, posture, told

__all__ = ["Lives"]

_ACTS = ("SCHED_CMD", "cancel", "STAGE_DONE", "PARK", "CREDIT")
_PLACES = ("in no pass", "in a pass")
# Nobody is parked in a pass: PARKED is for seats of none, and no pass takes along who is parked (docs/device.md §6).
_SEATED = tuple(
    f"{phase}, {place}, {posture}"
    for phase in PHASES
    for place in _PLACES
    for posture in POSTURES
    if (place, posture) != ("in a pass", "parked")
)
_STATES = ("running", "waiting", "retired", "queued, plain", "queued, with a credit", "parked without a seat", *_SEATED)
_REGISTERS = {
    regmap.Page.STAGE_DONE: "STAGE_DONE",
    regmap.Page.PARK: "PARK",
    regmap.Page.CREDIT: "CREDIT",
}
_KINDS = frozenset(
    {
        CommitKind.RETARGET,
        CommitKind.CANCEL,
        CommitKind.REJECT,
        CommitKind.STAGE_DONE,
        CommitKind.STAGE_DONE_IGNORED,
        CommitKind.PARK,
        CommitKind.CREDIT,
    }
)


class Lives(Family):
    """A write that names a living request, on a page that is enabled; or one that is gone."""

    title = "a host's acts in each state of a request"
    bins = (
        *(f"{act}: {state}" for act in _ACTS for state in _STATES),
        *(f"{act}: gone" for act in _ACTS[1:]),
    )

    def __init__(self, golden: Golden) -> None:
        super().__init__(golden)
        self._said: Told | None = None

    def wrote(self, write: Write) -> Iterable[str]:
        said = told(self.golden, write)
        if said is not None:
            self._said = said
        return ()

    def before(self, event: Event) -> Iterable[str]:
        said = self._said
        if event.kind not in _KINDS or said is None or not self.golden.control.pages >> said.page & 1:
            return
        act = _REGISTERS.get(said.register) or ("cancel" if said.stage == CANCEL else "SCHED_CMD")
        if not self.golden.slots.holds(said.id):
            if act != "SCHED_CMD":
                yield f"{act}: gone"
            return
        state = self._state(said.id & 0xFFFF)
        if state is not None and (act != "SCHED_CMD" or said.stage < self.golden.control.stage_count):
            yield f"{act}: {state}"

    def _state(self, slot: int) -> str | None:
        """One of `_STATES`; None where it can't be told."""
        request = self.golden.slots.request[slot]
        match self.golden.slots.state[slot]:
            case SlotState.RUNNING | SlotState.WAITING | SlotState.RETIRED as state:
                return state.name.lower()
            case SlotState.QUEUED if request is not None:
                return "queued, with a credit" if request.credit else "queued, plain"
            case SlotState.PARKED:
                return "parked without a seat"
            case _ if request is not None:
                return self._seated(request)
        return None

    def _seated(self, request: Request) -> str | None:
        group = self.golden.groups[request.group]
        if unsure(group) or request.seat is None:
            return None
        place = _PLACES[any(run.members >> request.seat & 1 for run in group.alive.values())]
        return f"{phase(request)}, {place}, {posture(request)}"
