"""What a complete command does: the rules of docs/device.md §3, in their order."""

from __future__ import annotations

import enum

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .pages import AttrState
from .params import Params
from .regmap import PageSchedAttr, PageSchedCmd, RejectReason
from .slots import Life, Owner

__all__ = ["Judge", "Verdict"]

CANCEL = 0xFFFF_FFFF
LEAST_STAGES = 4
"""Prefill, kv-init, one layer stage, output decode."""


class Verdict(enum.IntEnum):
    """What becomes of a command."""

    REJECT = 0
    ADMIT_MANUAL = 1
    ADMIT_AUTOMATIC = 2
    RETARGET = 3
    CANCEL_MANUAL = 4
    CANCEL_QUEUED = 5
    CANCEL_SEATED = 6


class Judge(wiring.Component):
    """Combinational: a command, its page and its slot in; the verdict out."""

    def __init__(self, params: Params) -> None:
        self._params = params
        super().__init__(
            {
                "command": In(PageSchedCmd),
                "attr": In(PageSchedAttr),
                "attr_state": In(AttrState),
                "page_enabled": In(1),
                "page_offered": In(1),
                "offered_slot": In(16),
                "owner": In(Owner),
                "stage_count": In(8),
                "absorbed": In(1),
                "resetting": In(1),
                "blocks_free": In(16),
                "blocks_floor": In(16),
                "verdict": Out(Verdict),
                "reason": Out(4),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        id_, stage, owner, attr = self.command.id, self.command.stage, self.owner, self.attr
        slot, epoch = id_[:16], id_[16:]
        same = owner.epoch == epoch
        free = owner.life == Life.FREE

        def reject(reason: RejectReason) -> None:
            m.d.comb += [self.verdict.eq(Verdict.REJECT), self.reason.eq(reason)]

        def decide(verdict: Verdict) -> None:
            m.d.comb += self.verdict.eq(verdict)

        with m.If(~self.page_enabled):
            reject(RejectReason.PAGE_DISABLED)
        with m.Elif((epoch == 0) | (id_ == 0xFFFF_FFFF) | (slot >= self._params.slots)):
            reject(RejectReason.ILLEGAL_ID)
        with m.Elif(stage == CANCEL):
            with m.If(free | ~same):
                reject(RejectReason.STALE_EPOCH)
            with m.Else():
                with m.Switch(owner.life):
                    with m.Case(Life.RETIRED):
                        reject(RejectReason.ALREADY_RETIRED)
                    with m.Case(Life.QUEUED, Life.PARKED):
                        decide(Verdict.CANCEL_QUEUED)
                    with m.Case(Life.SEATED):
                        decide(Verdict.CANCEL_SEATED)
                    with m.Default():
                        decide(Verdict.CANCEL_MANUAL)
        with m.Elif(stage >= self.stage_count):
            reject(RejectReason.UNKNOWN_STAGE)
        with m.Elif(~free):
            with m.If(~same):
                reject(RejectReason.SLOT_IN_USE)
            with m.Elif(owner.life == Life.RETIRED):
                reject(RejectReason.ALREADY_RETIRED)
            with m.Elif(owner.life == Life.WAITING):
                decide(Verdict.RETARGET)
            with m.Else():
                reject(RejectReason.REQUEST_RUNNING)
        with m.Elif(~self.page_offered):
            reject(RejectReason.DEVICE_FULL)
        with m.Elif(self.offered_slot != slot):
            reject(RejectReason.SLOT_NOT_OFFERED)
        with m.Elif(same):
            reject(RejectReason.STALE_EPOCH)
        with m.Elif(self.attr_state == AttrState.PARTIAL):
            reject(RejectReason.BAD_ATTRIBUTE)
        with m.Elif((self.attr_state == AttrState.ABSENT) | ~attr.automatic):
            decide(Verdict.ADMIT_MANUAL)
        with m.Elif((stage != 0) | (self.stage_count < LEAST_STAGES)):
            reject(RejectReason.UNKNOWN_STAGE)
        with m.Elif(
            (attr.group >= self._params.lanes) | self.absorbed | (attr.rows == 0) | (attr.start + attr.rows >= 1 << 20)
        ):
            reject(RejectReason.BAD_ATTRIBUTE)
        with m.Elif(self.resetting):
            reject(RejectReason.GROUP_RESETTING)
        with m.Elif(attr.kv_blocks + self.blocks_floor > self.blocks_free):
            reject(RejectReason.NO_KV_CREDIT)
        with m.Else():
            decide(Verdict.ADMIT_AUTOMATIC)
        return m
