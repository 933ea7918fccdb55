"""Which steps a group takes in which of its situations, and which it never takes (docs/device.md §6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from cuelight.regmap import CommitKind

from ..golden import Golden
from ..situations import SITUATIONS, situation
from ..steps import Event
from .family import Family

__all__ = ["Turns"]

_CALM = SITUATIONS[3:]
_LEGAL = {
    CommitKind.RETIRE: ("resetting", "loop point", *_CALM),
    CommitKind.LOOP_POINT: ("dispatch out", "between dispatches"),
    CommitKind.ADVANCE: ("loop point",),
    CommitKind.PARKED: _CALM,
    CommitKind.PAUSE: _CALM,
    CommitKind.SEAT: _CALM,
    CommitKind.PLAN: _CALM,
    CommitKind.CHUNK: ("forming",),
    CommitKind.FORM: ("forming",),
    CommitKind.GROUP_READY: ("resetting",),
}


class Turns(Family):
    """Steps of the core for a group."""

    title = "a group's steps in each of its situations"
    bins = tuple(f"{kind.name}: {situation}" for kind in _LEGAL for situation in SITUATIONS)
    unreachable: ClassVar[Mapping[str, str]] = {
        f"{kind.name}: {situation}": "order"
        for kind, legal in _LEGAL.items()
        for situation in SITUATIONS
        if situation not in legal
    }

    def __init__(self, golden: Golden) -> None:
        super().__init__(golden)
        self._cancelled = False

    def before(self, event: Event) -> Iterable[str]:
        # The RETIRE of a queued request follows its CANCEL in whatever situation.
        if event.kind not in _LEGAL and event.kind != CommitKind.CANCEL:
            return
        follows, self._cancelled = self._cancelled, event.kind == CommitKind.CANCEL and event.stage == 1
        if event.kind in _LEGAL and not (follows and event.kind == CommitKind.RETIRE):
            yield f"{event.kind.name}: {situation(self.golden.groups[event.lane])}"
