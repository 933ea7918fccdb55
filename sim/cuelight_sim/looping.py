"""The loop point of a pass (docs/device.md §6, step 2)."""

from __future__ import annotations

from collections.abc import Iterator

from cuelight.regmap import CommitKind, RetireReason

from .forming import Entry
from .house import House
from .passes import Pass
from .slots import Request
from .steps import Event, Step

__all__ = ["LoopPoint"]


class LoopPoint:
    """A pass between LOOP_POINT and its last ADVANCE.

    Parameters
    ----------
    house
        The group's requests.
    run
        The pass.
    elsewhere
        Seats of the other passes that are alive, a bitmap; it can't change meanwhile.
    """

    def __init__(self, house: House, run: Pass, elsewhere: int) -> None:
        self.run = run
        self._house = house
        self._elsewhere = elsewhere
        self._retiring = True
        """No ADVANCE has been seen."""
        self._doubtful = False
        """A marked request retired when the loop point may have been over already."""
        self._retired: set[int] = set()
        """Ids that retired in it."""
        self._pending = list(run.entries)
        """Entries neither done nor dropped; the last one is next."""
        self._settle()

    @property
    def over(self) -> bool:
        """It has shown all that it must show; nothing on the commit port tells when it ends."""
        return self._doubtful or ((not self._retiring or self._settled) and self._next_advance() is None)

    def steps(self) -> Iterator[Step]:
        """Its steps that are legal now."""
        finished, maybe_finished = self.run.finished, self.run.maybe_finished
        if self._retiring:
            for seat, request in sorted(self._house.seated.items()):
                marked, done = self._is_marked(seat, request), bool(finished >> seat & 1)
                if done or maybe_finished >> seat & 1:
                    yield self._retirement(request, RetireReason.FINISHED)
                if marked and not done:
                    yield self._retirement(request, RetireReason.CANCELLED)
                if marked or done:
                    break
        if not self._retiring or self._settled:
            entry = self._next_advance()
            if entry is not None:
                yield self._advance(entry)

    def _is_marked(self, seat: int, request: Request) -> bool:
        return request.marked and not self._elsewhere >> seat & 1

    def _settle(self) -> None:
        self._settled = not any(
            self._is_marked(seat, request) or self.run.finished >> seat & 1
            for seat, request in self._house.seated.items()
        )
        """After the step before, no seat was left to retire; seats marked since may be passed over."""

    def _retirement(self, request: Request, reason: RetireReason) -> Step:
        step = self._house.retirement(request, reason)
        doubtful = self.over and reason == RetireReason.CANCELLED

        def effect() -> None:
            step.effect()
            self._doubtful |= doubtful
            self._retired.add(request.id)
            self._settle()

        return Step(step.event, effect)

    def _next_advance(self) -> Entry | None:
        pending = reversed(self._pending)
        return next((entry for entry in pending if entry.rows and entry.request.id not in self._retired), None)

    def _advance(self, entry: Entry) -> Step:
        request = entry.request
        detail = entry.start + entry.rows | entry.last << 31

        def effect() -> None:
            self._retiring = False
            del self._pending[self._pending.index(entry) :]
            request.start += entry.rows
            request.rows_left -= entry.rows
            if not entry.last:
                self._house.prefilling[request.tier].appendleft(request)

        return Step(Event(CommitKind.ADVANCE, self._house.index, entry.seat, request.id, detail), effect)
