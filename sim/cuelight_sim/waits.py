"""How long anything waits, in cycles, at most (docs/device.md, Waits)."""

from __future__ import annotations

from cuelight import regmap
from cuelight.regmap import CommitKind
from cuelight_rtl.model import Commit

from .golden import Golden
from .group import Group
from .lane import Lane
from .steps import OF_WRITES, Divergence

__all__ = ["COMMAND", "DISPATCH", "ENTRY", "STEP", "TURN", "WRITE", "Waits"]

COMMAND = 9
"""From the acceptance of a write to its commit."""
DISPATCH = 1
"""From when a lane has room, and a pass a stage for it, to DISPATCH; one more for each write to the lane."""
DISPATCH_IN_PIPELINE = 2
"""The same in a pipeline."""
STEP = 12
"""From one step of the core to the next while any is due."""
TURN = 4
"""More for each tier whose turn ends while a pass is formed."""
ENTRY = 2
"""More for each entry of a pass at its loop point that does not advance."""
WRITE = 5
"""More for each write that is accepted meanwhile."""

_CORE = 0


class Waits:
    """Demands that the core never idles while a step is due, and lanes never while a dispatch is.

    Which step that is, and that groups take turns, is the golden model's to check.

    Parameters
    ----------
    golden
        Has followed each commit already.
    """

    def __init__(self, golden: Golden) -> None:
        self._golden = golden
        self._accepted = 0
        self._writes = 0
        """Accepted since the core's latest step, or since work has been due."""
        self._since: int | None = None
        """Cycle since which the core has had work, or of its latest step if it has some left."""
        self._more = 0
        """Cycles more that the step which is due may take."""
        self._ready: dict[int, int] = {}
        """For each lane that could get a dispatch, the cycle since which it waits; one more for each write to it."""

    def accepted(self, cycle: int, offset: int) -> None:
        """Notes a write."""
        self._accepted = cycle
        self._writes += 1
        if offset >= regmap.POLL:
            self._delay((offset - regmap.POLL) // regmap.POLL_STRIDE)
        elif offset >= regmap.COMPLETION:
            self._delay((offset - regmap.COMPLETION) // regmap.COMPLETION_STRIDE)

    def _delay(self, lane: int) -> None:
        if lane in self._ready:
            self._ready[lane] += 1

    def observe(self, commit: Commit) -> None:
        """Takes a commit in.

        Raises
        ------
        Divergence
            It came too late.
        """
        kind = CommitKind(commit.kind)
        if kind in OF_WRITES:
            self._demand("a write", commit.cycle - self._accepted, COMMAND)
        elif commit.port == _CORE and self._since is not None:
            self._demand(kind.name, commit.cycle - self._since, STEP + self._more + WRITE * self._writes)
        if commit.port == _CORE or (kind == CommitKind.COMPLETE and self._since is None):
            self._note_work(commit.cycle)
        self._note_lanes(kind, commit)

    def rest(self) -> None:
        """Nothing waits in a device at rest."""
        self._since = None
        self._ready.clear()

    def _note_work(self, cycle: int) -> None:
        group = next((group for group in self._golden.groups if next(group.steps(), None) is not None), None)
        self._since = cycle if group is not None else None
        self._writes = 0
        self._more = max(map(_extra, self._golden.groups))

    def _note_lanes(self, kind: CommitKind, commit: Commit) -> None:
        if kind == CommitKind.DISPATCH:
            since = self._ready.pop(commit.lane, None)
            if since is not None:
                pipeline = self._golden.group_of(self._golden.lanes[commit.lane]).pipeline
                most = DISPATCH_IN_PIPELINE if pipeline else DISPATCH
                self._demand(f"the dispatch of lane {commit.lane}", commit.cycle - since, most)
        if kind == CommitKind.GROUP_RESET:
            self._ready.clear()
        if kind in (CommitKind.DISPATCH, CommitKind.COMPLETE, CommitKind.FORM):
            for lane in self._golden.lanes:
                if lane.index not in self._ready and self._could_get_one(lane):
                    self._ready[lane.index] = commit.cycle

    def _could_get_one(self, lane: Lane) -> bool:
        alive = self._golden.group_of(lane).alive.values()
        return len(lane.dispatches) < lane.depth and any(run.ready_for(lane) for run in alive)

    def _demand(self, what: str, cycles: int, most: int) -> None:
        if cycles > most:
            raise Divergence(f"{what} took {cycles} cycles, {most} at most are promised")


def _extra(group: Group) -> int:
    if group.forming is not None:
        return TURN * group.forming.turns
    return ENTRY * len(group.loop.run.entries) if group.loop is not None else 0
