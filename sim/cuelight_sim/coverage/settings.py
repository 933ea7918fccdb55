"""Control writes, accepted and refused (docs/device.md §5)."""

from __future__ import annotations

from collections.abc import Iterable

from cuelight import regmap
from cuelight.regmap import CommitKind

from ..group import Group
from ..lane import Lane
from ..steps import Event
from .family import Family

__all__ = ["Settings"]

_BUSY = {
    "STAGE_COUNT": ("busy",),
    "SEATS": ("busy",),
    "ROWS": ("busy",),
    "KV_BLOCKS": ("busy",),
    "SEQUENCE": ("dispatch outstanding", "pass alive", "pass being formed"),
    "DEPTH": ("dispatch outstanding", "pass alive", "pass being formed"),
    "FIRST_STAGE": ("busy",),
    "PIPELINE": ("busy", "a group that it would take in is busy", "resetting", "pass alive", "absorbed"),
}
"""Why a value that is fit is refused."""
_RANGED = ("PAGE_ENABLE", "COST_DECODE", "MIN_SEATS", "MIN_ROWS", "KV_FLOOR", "SEAT_FLOOR")
_FREE = ("COST", "COST_CHUNK")


class Settings(Family):
    """Each control register: a value that it takes, one that it never takes, and states in which it takes none."""

    title = "settings"
    bins = (
        *(f"{name} accepted" for name in (*_BUSY, *_RANGED, *_FREE)),
        *(f"{name} refused: value" for name in (*_BUSY, *_RANGED)),
        *(f"{name} refused: {why}" for name, reasons in _BUSY.items() for why in reasons),
        "SEATS refused: more than ROWS allow",
        "ROWS refused: fewer than SEATS need",
        "GROUP_RESET refused: no such group",
        "GROUP_RESET refused: absorbed",
    )

    def before(self, event: Event) -> Iterable[str]:
        if event.kind == CommitKind.CONFIG:
            yield f"{_name(event.id)} accepted"
        elif event.kind == CommitKind.CONFIG_IGNORED:
            yield f"{_name(event.id)} refused: {self._why(_name(event.id), event.id, event.detail)}"

    def _why(self, name: str, offset: int, value: int) -> str:
        groups = self.golden.groups
        if name == "GROUP_RESET":
            return "no such group" if value >= len(groups) else "absorbed"
        if name in _RANGED:
            return "value"
        if name == "STAGE_COUNT":
            return "busy" if 1 <= value <= self.golden.sizes.stages else "value"
        if offset >= regmap.GROUP:
            return self._group(name, groups[(offset - regmap.GROUP) // regmap.GROUP_STRIDE], value)
        lane = self.golden.lanes[(offset - regmap.LANE) // regmap.LANE_STRIDE]
        if name == "PIPELINE":
            return self._pipeline(lane, value)
        if name == "FIRST_STAGE":
            return "busy" if value < self.golden.sizes.stages else "value"
        fit = value in (1, 2) if name == "DEPTH" else value & 0xFFFF not in (0, 0xFFFF)
        if not fit:
            return "value"
        if lane.dispatches:
            return "dispatch outstanding"
        return "pass being formed" if self.golden.group_of(lane).forming is not None else "pass alive"

    def _group(self, name: str, group: Group, value: int) -> str:
        if name == "SEATS":
            if not 1 <= value <= self.golden.sizes.seats:
                return "value"
            return "busy" if value + 16 <= group.rows else "more than ROWS allow"
        if name == "ROWS":
            if not 16 < value <= 512:
                return "value"
            return "busy" if value >= group.seats + 16 else "fewer than SEATS need"
        return "busy" if value <= 0xFFFF else "value"

    def _pipeline(self, lane: Lane, value: int) -> str:
        groups, first = self.golden.groups, lane.index
        if value not in (1, 2, 4, 8) or first % value or first + value > len(groups):
            return "value"
        if groups[first].absorbed:
            return "absorbed"
        concerned = groups[first : first + max(value, lane.pipeline)]
        if any(group.resetting for group in concerned):
            return "resetting"
        if all(group.empty for group in concerned):
            return "pass alive"
        return "a group that it would take in is busy" if groups[first].empty else "busy"


def _name(offset: int) -> str:
    """Name of a control register."""
    kind: type
    if offset < regmap.LANE:
        kind, place = regmap.Control, offset - regmap.CONTROL
    elif offset < regmap.GROUP:
        kind, place = regmap.Lane, (offset - regmap.LANE) % regmap.LANE_STRIDE
    elif offset < regmap.TIER:
        kind, place = regmap.Group, (offset - regmap.GROUP) % regmap.GROUP_STRIDE
    else:
        kind, place = regmap.Tier, (offset - regmap.TIER) % regmap.TIER_STRIDE
    names = (*_BUSY, *_RANGED, *_FREE, "GROUP_RESET")
    return next(name for name in names if getattr(kind, name, None) == place)
