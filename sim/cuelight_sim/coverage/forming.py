"""What passes are formed of (docs/device.md §6, step 7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cuelight.regmap import CommitKind

from ..group import Group
from ..passes import Pass
from ..situations import unsure
from ..steps import Event
from .family import Family

__all__ = ["FormedPasses"]

_ENTRIES = 16


class FormedPasses(Family):
    """PLAN and FORM by who comes along."""

    title = "passes formed"
    bins = (
        "chunks only, samples",
        "chunks only, does not sample",
        "chunks and decode rows, samples",
        "decode rows only",
        "of seats that this pass binds only",
        "16 entries",
        "less than 8 rows left of the row budget",
        "decode rows use up the cost budget",
        "seats to be bound are left for the next pass",
        "record buffer 0",
        "record buffer 1",
    )

    def before(self, event: Event) -> Iterable[str]:
        if event.kind == CommitKind.PLAN:
            group = self.golden.groups[event.lane]
            costs, rows = group.costs, event.detail & 0xFFFF
            if rows and rows * costs.decode >= costs.budget:
                yield "decode rows use up the cost budget"

    def after(self, event: Event) -> Iterable[str]:
        if event.kind != CommitKind.FORM:
            return
        group = self.golden.groups[event.lane]
        run = next(run for run in group.alive.values() if run.number == event.id)
        yield from _rows(run)
        yield f"record buffer {run.buffer & 1}"
        yield from _left(group, run)


def _rows(run: Pass) -> Iterator[str]:
    chunks = any(entry.rows for entry in run.entries)
    bound = sum(1 << entry.seat for entry in run.entries if not entry.rows)
    if not chunks:
        yield "of seats that this pass binds only" if bound == run.decode else "decode rows only"
    elif run.decode:
        yield "chunks and decode rows, samples"
    else:
        yield f"chunks only, {'samples' if run.samples else 'does not sample'}"


def _left(group: Group, run: Pass) -> Iterator[str]:
    if len(run.entries) == _ENTRIES:
        yield "16 entries"
    if group.rows - run.rows < 8:
        yield "less than 8 rows left of the row budget"
    if unsure(group):
        return
    free = [request for seat, request in group.seated.items() if not run.members >> seat & 1]
    if any(request.decoding and not request.bound and not request.parked and not request.marked for request in free):
        yield "seats to be bound are left for the next pass"
