"""How many rows of whose prompt a pass takes along: the branches of docs/device.md §6, step 7."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cuelight.regmap import CommitKind

from ..forming import Forming
from ..golden import Golden
from ..slots import Request
from ..steps import Event
from .family import Family

__all__ = ["Chunks"]

_LEAST = 8
_SIZES = tuple(_LEAST << power for power in range(7))
_LONG = 1000
_ENTRIES = 16


class Chunks(Family):
    """Chunks by what made them as large as they are, and prompts by why they had none."""

    title = "chunks: the branches of the policy"
    bins = (
        *(f"{size} rows, not the prompt's last" for size in _SIZES),
        "the rest of a prompt",
        "one row, which is a prompt",
        "a prompt from a start position on",
        "the last chunk of a prompt of 1,000 rows",
        "as many rows as the budget has",
        "fewer rows for the minimum of a lower tier",
        "fewer rows for the cost budget",
        "8 rows of a lower tier's minimum, the first of a pass",
        "8 rows beyond the cost budget, the first of a pass",
        "of a lower tier, the rows being kept from a higher one",
        "of a lower tier, the cost being too much for a higher one",
        "left out: parked",
        "left out: in another pass",
        "left out: no entry is left",
        "left out: no rows are left",
        "credited while the pass is formed, and taken along",
        "credited while the pass is formed, too late",
        "cancelled while the pass is formed, and taken along",
    )

    def __init__(self, golden: Golden) -> None:
        super().__init__(golden)
        self._credited: dict[int, set[int]] = {}
        """For each group, ids credited while its pass is formed."""

    def before(self, event: Event) -> Iterable[str]:
        match event.kind:
            case CommitKind.PLAN:
                self._credited[event.lane] = set()
            case CommitKind.CREDIT if event.stage == 2:
                request = self.golden.slots.request[event.id & 0xFFFF]
                if request is not None and self.golden.groups[request.group].forming is not None:
                    self._credited[request.group].add(event.id)
            case CommitKind.CHUNK:
                yield from self._chunk(event)
            case CommitKind.FORM:
                yield from self._left_out(event)
            case _:
                pass

    def _chunk(self, event: Event) -> Iterator[str]:
        forming = self.golden.groups[event.lane].forming
        request = self.golden.slots.request[event.id & 0xFFFF]
        assert forming is not None
        assert request is not None
        if event.id in self._credited[event.lane]:
            yield "credited while the pass is formed, and taken along"
        if request.marked:
            yield "cancelled while the pass is formed, and taken along"
        rows = event.detail >> 20 & 0x3FF
        if rows:
            yield from _prompt(request, rows)
            yield from self._size(forming, request, rows)
            for higher, waiting in enumerate(forming.prefilling[: request.tier]):
                if waiting:
                    kept = self._at_hand(forming, higher) < _LEAST
                    yield "of a lower tier, the " + (
                        "rows being kept from a higher one" if kept else "cost being too much for a higher one"
                    )

    def _at_hand(self, forming: Forming, tier: int) -> int:
        below = zip(self.golden.tiers[tier + 1 :], forming.prefilling[tier + 1 :], strict=False)
        return forming.row_budget - sum(setting.min_rows for setting, waiting in below if waiting)

    def _size(self, forming: Forming, request: Request, rows: int) -> Iterator[str]:
        at_hand, row_cost = self._at_hand(forming, request.tier), forming.costs.row(request.start)
        if not forming.decode and not forming.entries:
            if at_hand < _LEAST:
                yield "8 rows of a lower tier's minimum, the first of a pass"
            if _LEAST * row_cost > forming.cost_budget:
                yield "8 rows beyond the cost budget, the first of a pass"
        if rows == request.rows_left:
            yield "the rest of a prompt"
            return
        yield f"{rows} rows, not the prompt's last"
        if 2 * rows > forming.row_budget:
            yield "as many rows as the budget has"
        elif 2 * rows > at_hand:
            yield "fewer rows for the minimum of a lower tier"
        else:
            yield "fewer rows for the cost budget"

    def _left_out(self, event: Event) -> Iterator[str]:
        group = self.golden.groups[event.lane]
        forming = group.forming
        assert forming is not None
        taken = {entry.seat for entry in forming.entries}
        elsewhere = 0
        for run in group.alive.values():
            elsewhere |= run.members
        waiting = {request.id for requests in forming.prefilling for request in requests}
        for seat, request in group.seated.items():
            if seat in taken or not request.rows_left:
                continue
            if elsewhere >> seat & 1:
                yield "left out: in another pass"
            elif request.parked:
                yield "left out: parked"
            elif request.id in self._credited[event.lane]:
                yield "credited while the pass is formed, too late"
            elif len(forming.entries) == _ENTRIES:
                yield "left out: no entry is left"
            elif request.id in waiting:
                yield "left out: no rows are left"


def _prompt(request: Request, rows: int) -> Iterator[str]:
    end = request.start + rows
    if request.began and request.start == request.began:
        yield "a prompt from a start position on"
    if rows == request.rows_left and end - request.began >= _LONG:
        yield "the last chunk of a prompt of 1,000 rows"
    if rows == request.rows_left and end - request.began == 1:
        yield "one row, which is a prompt"
