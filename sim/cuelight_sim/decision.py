"""Since when a lane's next dispatch is being decided (docs/device.md §8)."""

from __future__ import annotations

__all__ = ["Decision"]


class Decision:
    """A lane's count of decision cycles: what it may be, where the commit port can't tell."""

    SATURATED = 0xFFF

    def __init__(self) -> None:
        self._starts: set[int | None] = {None}
        """Cycles since which the count may run; None: none is under way."""
        self._before: set[int | None] = set()
        """The same, before what happened in the latest cycle in which something did."""
        self._changed = -1

    def begin(self, cycle: int) -> None:
        """A COMPLETE: the count begins anew."""
        self._change(cycle)
        self._starts = {cycle}

    def begin_if_none(self, cycle: int) -> None:
        """A PLAN: the count begins unless one is under way."""
        self._change(cycle)
        self._starts = {cycle if start is None else start for start in self._starts}

    def dispatch(self, cycle: int) -> None:
        """The lane's DISPATCH ends the count; one that began in the very cycle may go on."""
        began = {start for start in self._starts if start == cycle}
        self._change(cycle)
        self._starts = {None, *began}

    def rest(self, *, certain: bool) -> None:
        """The group came to rest, and the count to its end, unless that is in doubt."""
        self._starts = {None} if certain else {None, *self._starts}

    def _change(self, cycle: int) -> None:
        if cycle != self._changed:
            self._changed, self._before = cycle, self._starts

    def spans(self, cycle: int) -> set[int]:
        """Values that a DISPATCH in ``cycle`` may show."""
        starts = self._starts | self._before if cycle == self._changed else self._starts
        spans = {1 if start is None else cycle - start for start in starts} - {0}
        return {min(span, self.SATURATED) for span in spans}
