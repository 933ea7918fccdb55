"""A pass between PLAN and FORM: which requests it takes along, and how many rows of each (docs/device.md §6)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from .planning import Plan
from .slots import Request
from .tiers import Tier

__all__ = ["Costs", "Entry", "Forming"]

_MAX_ENTRIES = 16
_LEAST_CHUNK = 8
_START_SHIFT = 10


@dataclass(slots=True)
class Costs:
    """A group's cost budget and what rows cost."""

    budget: int = 0xFFFF_FFFF
    decode: int = 0
    c0: int = 0
    c1: int = 0

    def row(self, start: int) -> int:
        """Cost of each row of a chunk that begins at ``start``."""
        return self.c0 + self.c1 * (start >> _START_SHIFT)


@dataclass(frozen=True, slots=True)
class Entry:
    """A chunk of rows that a pass prefills for one request, or the binding of a seat that decodes already (no rows)."""

    request: Request
    seat: int
    start: int
    rows: int
    bind: bool
    first: bool
    last: bool


class Forming:
    """A pass while it is formed.

    Settings count as they stand when an entry is taken.

    Parameters
    ----------
    plan
        Who may go along.
    number
        The pass's.
    buffer
        Record buffer.
    rows
        The group's row budget.
    costs, tiers
        Settings of the group and of each tier.
    """

    def __init__(self, plan: Plan, number: int, buffer: int, rows: int, costs: Costs, tiers: Sequence[Tier]) -> None:
        counted = plan.decode_rows
        self.k = plan.k
        self.number = number
        self.buffer = buffer
        self.costs = costs
        self.prefilling = plan.prefilling
        self.decode = sum(1 << request.seat for request in counted if request.bound and request.seat is not None)
        """Bitmap of seats that decode, those joined by an entry so far included."""
        self.row_budget = rows - len(counted)
        self.cost_budget = max(0, costs.budget - len(counted) * costs.decode)
        self.entries: list[Entry] = []
        self._tiers = tiers
        self._joining = [request for request in plan.decoding if not request.bound]
        self._to_bind = sum(not request.bound for request in counted)
        """How many of them may still join: as many as PLAN counted rows for."""
        self._over: set[int] = set()
        """Tiers whose turn is over."""
        self._perhaps_over: set[int] = set()
        """Tiers whose turn may be over: nothing tells until a lower tier has an entry, or the pass is complete."""

    @property
    def rows(self) -> int:
        return self.decode.bit_count() + sum(entry.rows for entry in self.entries)

    @property
    def turns(self) -> int:
        """Tiers whose turn may end yet."""
        return sum(bool(waiting) and tier not in self._over for tier, waiting in enumerate(self.prefilling))

    def about_to_change(self) -> None:
        """Notes that what chunks cost, rows kept, or a list changes now: turns that are over by then stay over."""
        if len(self.entries) == _MAX_ENTRIES or self._joiner() is not None:
            return
        for tier, waiting in enumerate(self.prefilling):
            if waiting and tier not in self._over | self._perhaps_over:
                if self._rows(waiting[0], self._at_hand(tier)):
                    break
                self._perhaps_over.add(tier)

    def next_entries(self) -> Iterator[Entry | None]:
        """What may be taken next, one or the other; None: the pass is complete."""
        doubtful = sorted(self._perhaps_over - self._over)
        for count in range(len(doubtful) + 1):
            yield self.next_entry(doubtful[:count])

    def next_entry(self, over: Collection[int] = ()) -> Entry | None:
        """What must be taken next if the turns of these tiers are over too; None: the pass is complete."""
        if len(self.entries) == _MAX_ENTRIES:
            return None
        joiner = self._joiner()
        if joiner is not None:
            assert joiner.seat is not None
            return Entry(joiner, joiner.seat, joiner.start, 0, bind=True, first=False, last=False)
        for tier, waiting in enumerate(self.prefilling):
            if not waiting or tier in self._over or tier in over:
                continue
            request = waiting[0]
            assert request.seat is not None
            rows = self._rows(request, self._at_hand(tier))
            if rows:
                return Entry(
                    request,
                    request.seat,
                    request.start,
                    rows,
                    bind=not request.bound,
                    first=request.start == request.began,
                    last=rows == request.rows_left,
                )
        return None

    def _joiner(self) -> Request | None:
        """Who joins next of those that decode."""
        return next((other for other in self._joining if _joins(other)), None) if self._to_bind else None

    def _at_hand(self, tier: int) -> int:
        """Rows that chunks of a tier may take, those kept for lower tiers left out."""
        below = zip(self._tiers[tier + 1 :], self.prefilling[tier + 1 :], strict=False)
        return max(0, self.row_budget - sum(setting.min_rows for setting, waiting in below if waiting))

    def _rows(self, request: Request, at_hand: int) -> int:
        """Rows that a request gets; 0: none."""
        row = self.costs.row(request.start)
        fit = 0
        chunk = _LEAST_CHUNK
        while chunk <= at_hand and chunk * row <= self.cost_budget:
            fit = chunk
            chunk *= 2
        if not self.decode and not self.entries:
            fit = max(fit, _LEAST_CHUNK)
        return min(fit, request.rows_left)

    def take(self, entry: Entry) -> None:
        request = entry.request
        if entry.rows:
            self._over.update(tier for tier in range(request.tier) if self.prefilling[tier])
            self.prefilling[request.tier].remove(request)
            self._perhaps_over.clear()
        else:
            self._to_bind -= 1
            self.decode |= 1 << entry.seat
        request.bound = True
        self.row_budget = max(0, self.row_budget - entry.rows)
        self.cost_budget = max(0, self.cost_budget - entry.rows * self.costs.row(entry.start))
        self.entries.append(entry)


def _joins(request: Request) -> bool:
    """Whether a request that decodes joins with an entry."""
    return not request.bound and not request.parked
