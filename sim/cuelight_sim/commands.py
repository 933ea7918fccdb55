"""Judging complete SCHED_CMD writes (docs/device.md §3, §4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cuelight.regmap import CommitKind, PageSchedAttr, PageSchedCmd, RejectReason, RetireReason

from .fifos import Counters, Reject, RejectFifo
from .group import Group
from .pages import ByteLatch, ProducerPage
from .slots import Request, Slots, SlotState
from .steps import Event, Step
from .tiers import Tier

__all__ = ["CANCEL", "Command", "CommandJudge"]

CANCEL = 0xFFFF_FFFF
"""Target stage of a cancel."""
_POSITIONS = 1 << 20


@dataclass(frozen=True, slots=True)
class Command:
    """A complete command and the attributes it met."""

    page: int
    id: int
    stage: int
    attributes: PageSchedAttr
    partial: bool
    """The attributes were half written."""

    @classmethod
    def of(cls, page: int, command: ByteLatch, attributes: ByteLatch) -> Command:
        fields = PageSchedCmd.unpack(command.value)
        whole = PageSchedAttr.unpack(attributes.value) if attributes.whole else PageSchedAttr()
        return cls(page, fields.id, fields.stage, whole, attributes.partial)


class CommandJudge:
    """Says what a command does in the device's present state."""

    def __init__(
        self,
        slots: Slots,
        pages: Sequence[ProducerPage],
        groups: Sequence[Group],
        tiers: Sequence[Tier],
        rejects: RejectFifo,
        counters: Counters,
    ) -> None:
        self._slots = slots
        self._pages = pages
        self._groups = groups
        self._tiers = tiers
        self._rejects = rejects
        self._counters = counters

    def judge(self, command: Command, *, enabled: bool, stage_count: int) -> Step:
        """The one step that ``command`` makes.

        Parameters
        ----------
        enabled
            Whether the command's page is enabled.
        stage_count
            STAGE_COUNT.
        """
        slots = self._slots
        slot, epoch = command.id & 0xFFFF, command.id >> 16
        if not enabled:
            return self._reject(command, RejectReason.PAGE_DISABLED)
        if epoch == 0 or command.id == 0xFFFF_FFFF or slot >= len(slots):
            return self._reject(command, RejectReason.ILLEGAL_ID)
        state = slots.state[slot]
        if command.stage == CANCEL:
            if not slots.holds(command.id):
                return self._reject(command, RejectReason.STALE_EPOCH)
            if state is SlotState.RETIRED:
                return self._reject(command, RejectReason.ALREADY_RETIRED)
            return self._cancel(command)
        if command.stage >= stage_count:
            return self._reject(command, RejectReason.UNKNOWN_STAGE)
        if state is not SlotState.FREE:
            if not slots.holds(command.id):
                return self._reject(command, RejectReason.SLOT_IN_USE)
            if state is SlotState.RETIRED:
                return self._reject(command, RejectReason.ALREADY_RETIRED)
            if state is SlotState.WAITING:
                return self._retarget(command)
            return self._reject(command, RejectReason.REQUEST_RUNNING)
        refusal = self._admission_refusal(command, slot, epoch, stage_count)
        if refusal is not None:
            return self._reject(command, refusal)
        return self._admit(command)

    def _admission_refusal(self, command: Command, slot: int, epoch: int, stage_count: int) -> RejectReason | None:
        offer = self._pages[command.page].offer
        attributes = command.attributes
        if offer is None:
            return RejectReason.DEVICE_FULL
        if offer != slot:
            return RejectReason.SLOT_NOT_OFFERED
        if epoch == self._slots.epoch[slot]:
            return RejectReason.STALE_EPOCH
        if command.partial:
            return RejectReason.BAD_ATTRIBUTE
        if not attributes.automatic:
            return None
        if command.stage != 0 or stage_count < 4:
            return RejectReason.UNKNOWN_STAGE
        if (
            attributes.group >= len(self._groups)
            or self._groups[attributes.group].absorbed
            or attributes.rows == 0
            or attributes.start + attributes.rows >= _POSITIONS
        ):
            return RejectReason.BAD_ATTRIBUTE
        group = self._groups[attributes.group]
        if group.resetting:
            return RejectReason.GROUP_RESETTING
        if attributes.kv_blocks + self._tiers[attributes.tier].kv_floor > group.kv_free:
            return RejectReason.NO_KV_CREDIT
        return None

    def _reject(self, command: Command, reason: RejectReason) -> Step:
        event = Event(
            CommitKind.REJECT,
            stage=reason,
            id=command.id,
            detail=command.page | (command.stage & 0xFF_FFFF) << 8,
        )

        def effect() -> None:
            self._counters.rejected += 1
            if not self._rejects.push(Reject(command.id, reason, command.page)):
                self._counters.rejects_lost += 1

        return Step(event, effect)

    def _admit(self, command: Command) -> Step:
        attributes = command.attributes
        page = self._pages[command.page]

        def use_offer(request: Request | None) -> None:
            self._slots.admit(command.id, request)
            page.offer = None
            self._counters.admitted += 1

        if not attributes.automatic:
            event = Event(CommitKind.ADMIT, stage=command.page, id=command.id, detail=command.stage)
            return Step(event, lambda: use_offer(None))

        def effect() -> None:
            request = Request(
                command.id,
                attributes.group,
                attributes.tier,
                attributes.kv_blocks,
                began=attributes.start,
                start=attributes.start,
                rows_left=attributes.rows,
                stepped=bool(attributes.stepped),
            )
            use_offer(request)
            self._groups[request.group].enqueue(request)

        event = Event(
            CommitKind.ADMIT,
            attributes.group,
            command.page | 1 << 3 | attributes.tier << 4,
            command.id,
            attributes.kv_blocks,
        )
        return Step(event, effect)

    def _retarget(self, command: Command) -> Step:
        slot = command.id & 0xFFFF

        def effect() -> None:
            self._slots.state[slot] = SlotState.RUNNING

        return Step(Event(CommitKind.RETARGET, stage=command.stage, id=command.id, detail=command.page), effect)

    def _cancel(self, command: Command) -> Step:
        slot = command.id & 0xFFFF
        request = self._slots.request[slot]

        def event(effect_code: int) -> Event:
            return Event(CommitKind.CANCEL, stage=effect_code, id=command.id, detail=command.page)

        if request is None:
            return Step(event(0), lambda: self._slots.release(slot))
        if request.seat is None:
            return Step(event(1), lambda: None)
        if request.marked:
            return Step(event(3), lambda: None)

        def mark() -> None:
            request.marked = True

        return Step(event(2), mark)

    def retirement_of(self, request_id: int) -> Step:
        """The RETIRE that follows the cancel of a request without a seat directly."""
        request = self._slots.request[request_id & 0xFFFF]
        assert request is not None
        return self._groups[request.group].retirement(request, RetireReason.CANCELLED)
