"""How long it takes from a pass's end to the next pass, in cycles, at most (docs/device.md, Waits)."""

from __future__ import annotations

from dataclasses import dataclass, field

from cuelight.regmap import CommitKind
from cuelight_rtl.model import Commit

from .golden import Golden
from .steps import Divergence
from .waits import ENTRY

__all__ = ["CHANGE", "LOOP", "LoopWaits"]

LOOP = 29
"""From the COMPLETE of a pass's last dispatch to the FORM of the next one; to the poll head it is three more."""
CHANGE = 8
"""More for each seat that joined, left, was parked or brought a chunk."""


@dataclass(slots=True)
class _Round:
    """A pass that has ended, and what has changed since."""

    ended: int
    entries: int
    """Of its record."""
    left: int = 0
    """Seats that retired, were paused or parked."""
    joined: set[int] = field(default_factory=set)
    chunks: set[int] = field(default_factory=set)

    @property
    def most(self) -> int:
        changes = self.left + len(self.joined | self.chunks)
        return LOOP + CHANGE * changes + ENTRY * self.entries


class LoopWaits:
    """Looks at the loop points that neither a write nor other work comes in between.

    Parameters
    ----------
    golden
        Has followed each commit already.
    """

    def __init__(self, golden: Golden) -> None:
        self._golden = golden
        self._round: _Round | None = None
        self._group = 0
        self.seen = 0
        """Loop points that were judged."""

    def accepted(self, cycle: int, offset: int) -> None:
        """A write takes time of its own."""
        self._round = None

    def rest(self) -> None:
        """No next pass was formed."""
        self._round = None

    def observe(self, commit: Commit) -> None:
        """Takes a commit in.

        Raises
        ------
        Divergence
            The next pass came too late.
        """
        kind, now = CommitKind(commit.kind), self._round
        if kind == CommitKind.COMPLETE:
            self._begin(commit)
        elif now is None or commit.port != 0:
            return
        elif commit.lane != self._group:
            self._round = None
        elif kind in (CommitKind.RETIRE, CommitKind.PAUSE, CommitKind.PARKED):
            now.left += 1
        elif kind == CommitKind.SEAT:
            now.joined.add(commit.stage)
        elif kind in (CommitKind.ADVANCE, CommitKind.CHUNK):
            now.chunks.add(commit.stage)
        elif kind == CommitKind.FORM:
            self._round = None
            self.seen += 1
            if commit.cycle - now.ended > now.most:
                raise Divergence(
                    f"the next pass of group {self._group} was formed after {commit.cycle - now.ended} cycles, "
                    f"{now.most} at most are promised"
                )

    def _begin(self, commit: Commit) -> None:
        group = self._golden.group_of(self._golden.lanes[commit.lane])
        idle = not any(other.busy_core for other in self._golden.groups)
        due = [run for run in group.alive.values() if run.due]
        if idle and len(due) == 1 and group.dispatching.unseen:
            self._round, self._group = _Round(commit.cycle, len(due[0].entries)), group.index
        else:
            self._round = None
