"""What comes from outside, in every situation of the group that it concerns (docs/device.md §3 to §7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from cuelight import regmap
from cuelight.regmap import CommitKind

from ..group import Group
from ..situations import SITUATIONS, situation
from ..steps import Event
from .family import Family

__all__ = ["Interference"]

_ACTS = ("admission", "cancel", "PARK", "CREDIT", "STAGE_DONE", "setting", "tier setting", "GROUP_RESET")
_NAMED = {
    CommitKind.CANCEL: "cancel",
    CommitKind.PARK: "PARK",
    CommitKind.CREDIT: "CREDIT",
    CommitKind.STAGE_DONE: "STAGE_DONE",
    CommitKind.STAGE_DONE_IGNORED: "STAGE_DONE",
}
"""What names a request; of those only seated ones are looked at."""
_CORE = ("loop point", "forming", "reset")


class Interference(Family):
    """Writes that meet a group at its work, and lanes that meet the work of another group."""

    title = "acts from outside in each situation of a group"
    bins = (
        *(f"{act}: {situation}" for act in _ACTS for situation in SITUATIONS),
        *(f"{what} beside the {work} of another group" for what in ("DISPATCH", "COMPLETE") for work in _CORE),
    )

    unreachable: ClassVar[Mapping[str, str]] = {"admission: resetting": "judge"}

    def before(self, event: Event) -> Iterable[str]:
        slots, groups = self.golden.slots, self.golden.groups
        match event.kind:
            case CommitKind.ADMIT if event.stage & 8:
                yield f"admission: {situation(groups[event.lane])}"
            case kind if kind in _NAMED:
                request = slots.request[event.id & 0xFFFF] if slots.holds(event.id) else None
                if request is not None and request.seat is not None:
                    yield f"{_NAMED[kind]}: {situation(groups[request.group])}"
            case CommitKind.CONFIG:
                yield from self._settings(event.id)
            case CommitKind.GROUP_RESET:
                yield f"GROUP_RESET: {situation(groups[event.lane])}"
            case CommitKind.DISPATCH | CommitKind.COMPLETE:
                mine = self.golden.group_of(self.golden.lanes[event.lane])
                for group in groups:
                    if group is not mine and (work := _work(group)):
                        yield f"{event.kind.name} beside the {work} of another group"
            case _:
                pass

    def _settings(self, offset: int) -> Iterator[str]:
        if offset >= regmap.TIER:
            yield from (f"tier setting: {situation(group)}" for group in self.golden.groups if not group.absorbed)
        elif offset >= regmap.GROUP:
            yield f"setting: {situation(self.golden.groups[(offset - regmap.GROUP) // regmap.GROUP_STRIDE])}"


def _work(group: Group) -> str:
    now = situation(group)
    if now == "resetting":
        return "reset"
    return now if now in ("loop point", "forming") else ""
