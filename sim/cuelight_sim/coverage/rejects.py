"""Why commands are refused, and what they met (docs/device.md §3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from cuelight import regmap
from cuelight.regmap import CommitKind, PageSchedAttr, RejectReason

from ..commands import CANCEL
from ..golden import Golden
from ..lockstep import Write
from ..slots import SlotState
from ..steps import Event
from .family import Family
from .moments import Told, told

__all__ = ["Rejects"]

_TAKEN = tuple(state for state in SlotState if state is not SlotState.FREE)
_BUSY = (SlotState.RUNNING, SlotState.QUEUED, SlotState.SEATED, SlotState.PARKED)
_CASES = {
    RejectReason.PAGE_DISABLED: ("cancel", "target"),
    RejectReason.ILLEGAL_ID: ("epoch 0", "all ones", "no such slot"),
    RejectReason.STALE_EPOCH: ("cancel, free slot", "cancel, another epoch", "admission with the last epoch"),
    RejectReason.ALREADY_RETIRED: ("cancel", "target"),
    RejectReason.UNKNOWN_STAGE: (
        "beyond STAGE_COUNT, free slot",
        "beyond STAGE_COUNT, slot in use",
        "automatic at another stage than 0",
        "automatic with fewer than 4 stages",
    ),
    RejectReason.SLOT_IN_USE: tuple(state.name for state in _TAKEN),
    RejectReason.REQUEST_RUNNING: tuple(state.name for state in _BUSY),
    RejectReason.DEVICE_FULL: ("no slot is free", "the offer is on its way"),
    RejectReason.SLOT_NOT_OFFERED: ("another page's offer", "offered to nobody"),
    RejectReason.BAD_ATTRIBUTE: ("half written", "no such group", "absorbed group", "no rows", "beyond the positions"),
    RejectReason.GROUP_RESETTING: ("",),
    RejectReason.NO_KV_CREDIT: ("fewer blocks are free", "the floor is kept"),
}


class Rejects(Family):
    """Each reason, and each way to it."""

    title = "refused commands"
    unreachable: ClassVar[Mapping[str, str]] = {"DEVICE_FULL the offer is on its way": "offers"}
    bins = tuple(f"{reason.name} {case}".rstrip() for reason, cases in _CASES.items() for case in cases)

    def __init__(self, golden: Golden) -> None:
        super().__init__(golden)
        self._said: Told | None = None
        self._partial = False
        self._attributes = PageSchedAttr()

    def wrote(self, write: Write) -> Iterable[str]:
        said = told(self.golden, write)
        if said is not None and said.register == regmap.Page.SCHED_CMD:
            attributes = self.golden.pages[said.page].attributes
            self._said, self._partial = said, attributes.partial
            self._attributes = PageSchedAttr.unpack(attributes.value)
        return ()

    def before(self, event: Event) -> Iterable[str]:
        if event.kind == CommitKind.REJECT and self._said is not None:
            reason = RejectReason(event.stage)
            yield f"{reason.name} {self._case(reason, self._said)}".rstrip()

    def _case(self, reason: RejectReason, said: Told) -> str:
        golden, slot = self.golden, said.id & 0xFFFF
        act = "cancel" if said.stage == CANCEL else "target"
        match reason:
            case RejectReason.PAGE_DISABLED | RejectReason.ALREADY_RETIRED:
                return act
            case RejectReason.ILLEGAL_ID:
                if not said.id >> 16:
                    return "epoch 0"
                return "all ones" if said.id == 0xFFFF_FFFF else "no such slot"
            case RejectReason.STALE_EPOCH if act == "target":
                return "admission with the last epoch"
            case RejectReason.STALE_EPOCH:
                return "cancel, " + ("free slot" if golden.slots.state[slot] is SlotState.FREE else "another epoch")
            case RejectReason.UNKNOWN_STAGE if said.stage >= golden.control.stage_count:
                where = "free slot" if golden.slots.state[slot] is SlotState.FREE else "slot in use"
                return f"beyond STAGE_COUNT, {where}"
            case RejectReason.UNKNOWN_STAGE:
                return "automatic at another stage than 0" if said.stage else "automatic with fewer than 4 stages"
            case RejectReason.SLOT_IN_USE | RejectReason.REQUEST_RUNNING:
                return golden.slots.state[slot].name
            case RejectReason.DEVICE_FULL:
                return "the offer is on its way" if golden.slots.free else "no slot is free"
            case RejectReason.SLOT_NOT_OFFERED:
                offered = any(page.offer == slot for page in golden.pages)
                return "another page's offer" if offered else "offered to nobody"
            case RejectReason.BAD_ATTRIBUTE:
                return self._bad_attribute()
            case RejectReason.NO_KV_CREDIT:
                fewer = self._attributes.kv_blocks > golden.groups[self._attributes.group].kv_free
                return "fewer blocks are free" if fewer else "the floor is kept"
            case _:
                return ""

    def _bad_attribute(self) -> str:
        groups, attributes = self.golden.groups, self._attributes
        if self._partial:
            return "half written"
        if attributes.group >= len(groups):
            return "no such group"
        if groups[attributes.group].absorbed:
            return "absorbed group"
        return "no rows" if not attributes.rows else "beyond the positions"
