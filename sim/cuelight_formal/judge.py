"""Verdicts on commands are those of docs/device.md §3."""

from __future__ import annotations

from amaranth.hdl import Value

from cuelight_rtl.judge import Judge, Verdict
from cuelight_rtl.pages import AttrState
from cuelight_rtl.params import Params
from cuelight_rtl.regmap import RejectReason
from cuelight_rtl.slots import Life

from .spec import Spec

__all__ = ["verdicts"]


def verdicts(params: Params) -> Spec:
    judge = Judge(params)
    spec = Spec(judge)
    command, attr, owner = judge.command, judge.attr, judge.owner
    slot, epoch = command.id[0:16], command.id[16:32]
    cancel = command.stage == 2**32 - 1
    free = owner.life == Life.FREE
    ours = ~free & (owner.epoch == epoch)
    manual = (judge.attr_state != AttrState.WHOLE) | ~attr.automatic
    illegal = (epoch == 0) | command.id.all() | (slot > params.slots - 1)
    end = attr.start.as_unsigned() + attr.rows

    spec.assume(owner.life <= max(Life))
    spec.assume(judge.attr_state <= max(AttrState))
    spec.assume((judge.stage_count >= 1) & (judge.stage_count <= params.stages))

    def refused(reason: RejectReason) -> Value:
        return (judge.verdict == Verdict.REJECT) & (judge.reason == reason)

    def decided(verdict: Verdict) -> Value:
        return judge.verdict == verdict

    earlier: list[Value] = []

    def rule(sentence: str, applies: Value, outcome: Value) -> None:
        """Rules are tried in their order: the first that applies decides."""
        none_before = Value.cast(1)
        for other in earlier:
            none_before = none_before & ~other
        spec.claim(sentence, outcome, when=none_before & applies)
        earlier.append(applies)

    rule(
        "1. A command from a page that is not enabled is refused with PAGE_DISABLED.",
        ~judge.page_enabled,
        refused(RejectReason.PAGE_DISABLED),
    )
    rule(
        "2. Epoch 0, an id of all ones, or a slot that does not exist: ILLEGAL_ID.",
        illegal,
        refused(RejectReason.ILLEGAL_ID),
    )
    rule(
        "3. Cancel of a free slot, or of another epoch: STALE_EPOCH.",
        cancel & ~ours,
        refused(RejectReason.STALE_EPOCH),
    )
    rule(
        "3. Cancel of a request that retired: ALREADY_RETIRED.",
        cancel & (owner.life == Life.RETIRED),
        refused(RejectReason.ALREADY_RETIRED),
    )
    rule(
        "3. Cancel of a manual request frees it.",
        cancel & ((owner.life == Life.RUNNING) | (owner.life == Life.WAITING)),
        decided(Verdict.CANCEL_MANUAL),
    )
    rule(
        "3. Cancel of a request that is queued, or parked without a seat, retires it.",
        cancel & ((owner.life == Life.QUEUED) | (owner.life == Life.PARKED)),
        decided(Verdict.CANCEL_QUEUED),
    )
    rule("3. Cancel of a seated request marks it.", cancel, decided(Verdict.CANCEL_SEATED))
    rule(
        "4. A stage that is not below STAGE_COUNT: UNKNOWN_STAGE.",
        command.stage >= judge.stage_count,
        refused(RejectReason.UNKNOWN_STAGE),
    )
    rule("5. A slot that another request has: SLOT_IN_USE.", ~free & ~ours, refused(RejectReason.SLOT_IN_USE))
    rule(
        "5. A stage for a request that retired: ALREADY_RETIRED.",
        ours & (owner.life == Life.RETIRED),
        refused(RejectReason.ALREADY_RETIRED),
    )
    rule(
        "5. A stage for a manual request that waits is its next one.",
        ours & (owner.life == Life.WAITING),
        decided(Verdict.RETARGET),
    )
    rule("5. A stage for any other request: REQUEST_RUNNING.", ours, refused(RejectReason.REQUEST_RUNNING))
    rule(
        "6. A free slot, but the page has no offer: DEVICE_FULL.",
        ~judge.page_offered,
        refused(RejectReason.DEVICE_FULL),
    )
    rule(
        "6. A free slot that is not the page's offer: SLOT_NOT_OFFERED.",
        judge.offered_slot != slot,
        refused(RejectReason.SLOT_NOT_OFFERED),
    )
    rule("6. The slot's last epoch again: STALE_EPOCH.", owner.epoch == epoch, refused(RejectReason.STALE_EPOCH))
    rule(
        "6. Attributes of which bytes are missing: BAD_ATTRIBUTE.",
        judge.attr_state == AttrState.PARTIAL,
        refused(RejectReason.BAD_ATTRIBUTE),
    )
    rule(
        "6. Without attributes, or with automatic = 0, a manual request is admitted.",
        manual,
        decided(Verdict.ADMIT_MANUAL),
    )
    rule(
        "6. An automatic request targets stage 0, and there are 4 stages at least: else UNKNOWN_STAGE.",
        (command.stage != 0) | (judge.stage_count < 4),
        refused(RejectReason.UNKNOWN_STAGE),
    )
    rule(
        "6. A group that does not exist or is absorbed, no rows, or positions of 2^20 and above: BAD_ATTRIBUTE.",
        (attr.group > params.lanes - 1) | judge.absorbed | (attr.rows == 0) | (end >= 2**20),
        refused(RejectReason.BAD_ATTRIBUTE),
    )
    rule("6. A group that is resetting: GROUP_RESETTING.", judge.resetting, refused(RejectReason.GROUP_RESETTING))
    rule(
        "6. Blocks and the tier's floor are more than what is free: NO_KV_CREDIT.",
        judge.blocks_free < attr.kv_blocks.as_unsigned() + judge.blocks_floor,
        refused(RejectReason.NO_KV_CREDIT),
    )
    rule("6. Else an automatic request is admitted.", Value.cast(1), decided(Verdict.ADMIT_AUTOMATIC))

    accepted = judge.verdict != Verdict.REJECT
    admitted = decided(Verdict.ADMIT_MANUAL) | decided(Verdict.ADMIT_AUTOMATIC)
    spec.claim(
        "A stale or foreign id changes nothing: what is accepted names a request by its epoch, or a free slot offered.",
        ours | (free & judge.page_offered & (judge.offered_slot == slot) & (owner.epoch != epoch)),
        when=accepted,
    )
    spec.claim(
        "Only a free slot is admitted to, and only the one that its page is offered.",
        free & judge.page_offered & (slot == judge.offered_slot),
        when=admitted,
    )
    spec.claim(
        "An admission leaves the tier's floor of blocks free.",
        judge.blocks_free - attr.kv_blocks.as_unsigned() >= judge.blocks_floor,
        when=decided(Verdict.ADMIT_AUTOMATIC),
    )
    spec.claim("Every refusal has a reason.", judge.reason != 0, when=~accepted)
    return spec
