"""That each tier gets its rows of a pass, the highest as well as those with a minimum (docs/device.md §6, step 7)."""

from __future__ import annotations

from dataclasses import dataclass

from cuelight.regmap import CommitKind
from cuelight_rtl.model import Commit

from .golden import Golden
from .group import Group
from .slots import Request
from .steps import Divergence
from .tiers import TIERS

__all__ = ["Shares"]

_MAX_ENTRIES = 16
_LEAST_CHUNK = 8
_FREE_OF_COST = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True)
class _Due:
    """What a pass that is being formed has to give."""

    decode_rows: int
    heads: dict[int, tuple[Request, int]]
    """For each tier that prefills in it, who is first in its list, and rows left."""
    minimums: tuple[int, ...]
    """MIN_ROWS of each tier."""


class Shares:
    """Looks at every pass formed while costs don't matter and nothing interferes.

    Parameters
    ----------
    golden
        Has followed each commit already; read for settings, prompts, and who is in a pass.
    """

    def __init__(self, golden: Golden) -> None:
        self._golden = golden
        self._due: dict[int, _Due] = {}
        """By group."""

    def accepted(self, cycle: int, offset: int) -> None:
        """A write promises nothing."""

    def observe(self, event: Commit) -> None:
        """Takes a commit in.

        Raises
        ------
        Divergence
            A tier got fewer rows than it was promised.
        """
        match event.kind:
            case CommitKind.PLAN:
                self._plan(self._golden.groups[event.lane], event)
            case CommitKind.FORM:
                self._form(self._golden.groups[event.lane], event)
            case CommitKind.CANCEL | CommitKind.CREDIT | CommitKind.CONFIG | CommitKind.GROUP_RESET:
                self._due.clear()
            case _:
                pass

    def rest(self) -> None:
        """Nothing is promised of a device at rest."""

    def _plan(self, group: Group, event: Commit) -> None:
        costs = group.costs
        if costs.budget != _FREE_OF_COST or costs.c0 or costs.c1:
            return
        bound = min((run.top for run in group.alive.values()), default=TIERS)
        second = not group.pipeline and event.stage == 1
        lists = enumerate(group.prefilling[: bound if second else TIERS])
        heads = {tier: (waiting[0], waiting[0].rows_left) for tier, waiting in lists if waiting}
        minimums = tuple(setting.min_rows * (tier in heads) for tier, setting in enumerate(self._golden.tiers))
        self._due[group.index] = _Due(event.detail & 0xFFFF, heads, minimums)

    def _form(self, group: Group, event: Commit) -> None:
        due = self._due.pop(group.index, None)
        if due is None or event.stage == _MAX_ENTRIES:
            return
        run = next((run for run in group.alive.values() if run.number == event.id), None)
        rows = {entry.request.id: entry.rows for entry in run.entries} if run is not None else {}
        budget = group.rows - due.decode_rows
        for tier, (first, left) in due.heads.items():
            below = sum(due.minimums[tier + 1 :])
            if tier == min(due.heads):
                promised = budget - below
            else:
                # A tier above may have had the chunk that a pass takes in any case.
                promised = due.minimums[tier] if budget - below - due.minimums[tier] >= _LEAST_CHUNK else 0
            least = min(1 << promised.bit_length() - 1, left) if promised >= _LEAST_CHUNK else 0
            if rows.get(first.id, 0) < least:
                raise Divergence(
                    f"tier {tier} of group {group.index} gets {rows.get(first.id, 0)} rows of pass {event.id}, "
                    f"though at least {least} are its own"
                )
