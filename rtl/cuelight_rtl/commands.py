"""What the bus asks for: commands, STAGE_DONE, PARK, CREDIT, and pops of the retirement FIFO."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal, Value

from .commit import report
from .hand import Hand
from .judge import Judge, Verdict
from .queue import ListOp
from .regmap import CommitKind, RetireReason
from .slots import Life

__all__ = ["execute_command", "execute_credit", "execute_park", "execute_pop", "execute_stage_done"]


def execute_command(m: Module, hand: Hand) -> None:
    request, owner, pages = hand.request, hand.slots.owner, hand.pages
    command, attr = request.command, request.attr
    m.submodules.judge = judge = Judge(hand.params)
    m.d.comb += [
        judge.command.eq(command),
        judge.attr.eq(attr),
        judge.attr_state.eq(request.attr_state),
        judge.page_enabled.eq(pages.enable.bit_select(request.page, 1)),
        judge.page_offered.eq(pages.offered.bit_select(request.page, 1)),
        judge.offered_slot.eq(pages.offer[request.page].slot),
        judge.owner.eq(owner),
        judge.stage_count.eq(hand.core.stage_count),
        judge.absorbed.eq(hand.lanes.pipelines.absorbed.bit_select(attr.group, 1)),
        judge.resetting.eq(hand.of(hand.seats, "resetting", attr.group)),
        judge.blocks_free.eq(hand.of(hand.seats, "blocks_free", attr.group)),
        judge.blocks_floor.eq(hand.core.kv_floor[attr.tier]),
        pages.accept_page.eq(request.page),
    ]
    with m.Switch(judge.verdict):
        with m.Case(Verdict.REJECT):
            report(
                m,
                hand.step,
                CommitKind.REJECT,
                stage=judge.reason,
                id=command.id,
                detail=Cat(request.page, Signal(5), command.stage[:24]),
            )
        with m.Case(Verdict.ADMIT_MANUAL):
            hand.own(m, life=Life.RUNNING, epoch=command.id[16:])
            m.d.comb += pages.accept.eq(1)
            m.d.sync += hand.core.active.eq(hand.core.active + 1)
            report(m, hand.step, CommitKind.ADMIT, stage=request.page, id=command.id, detail=command.stage)
        with m.Case(Verdict.ADMIT_AUTOMATIC):
            hand.own(
                m,
                life=Life.QUEUED,
                epoch=command.id[16:],
                tier=attr.tier,
                group=attr.group,
                stepped=attr.stepped,
                credited=0,
            )
            hand.relink(m, ListOp.PUSH, hand.waiting_list(attr.tier, attr.group))
            hand.strobe(m, "enqueue", "credit_take")
            m.d.comb += [
                pages.accept.eq(1),
                hand.target.eq(attr.group),
                hand.blocks.eq(attr.kv_blocks),
                hand.slots.write_work.eq(1),
                hand.work_next.blocks.eq(attr.kv_blocks),
                hand.work_next.rest.eq(attr.rows),
                hand.work_next.start.eq(attr.start),
                hand.work_next.fresh.eq(1),
            ]
            m.d.sync += hand.core.active.eq(hand.core.active + 1)
            report(
                m,
                hand.step,
                CommitKind.ADMIT,
                lane=attr.group,
                stage=Cat(request.page, 1, attr.tier),
                id=command.id,
                detail=attr.kv_blocks,
            )
        with m.Case(Verdict.RETARGET):
            hand.own(m, life=Life.RUNNING)
            report(m, hand.step, CommitKind.RETARGET, stage=command.stage, id=command.id, detail=request.page)
        with m.Case(Verdict.CANCEL_MANUAL):
            hand.free(m)
            report(m, hand.step, CommitKind.CANCEL, stage=0, id=command.id, detail=request.page)
        with m.Case(Verdict.CANCEL_QUEUED):
            hand.strobe(m, "credit_give")
            with m.If(owner.life == Life.QUEUED):
                hand.strobe(m, "dequeue")
                hand.relink(m, ListOp.UNLINK, hand.waiting_list(owner.tier, owner.group))
            with m.Else():
                hand.strobe(m, "take_back")
            hand.own(m, life=Life.RETIRED, reason=RetireReason.CANCELLED)
            m.d.comb += hand.target.eq(owner.group)
            report(m, hand.step, CommitKind.CANCEL, stage=1, id=command.id, detail=request.page)
            m.next = "SECOND"
        with m.Case(Verdict.CANCEL_SEATED):
            hand.strobe(m, "mark")
            marked = hand.of(hand.seats, "marked", owner.group).bit_select(owner.seat[: hand.params.seat_bits], 1)
            m.d.comb += hand.target.eq(owner.group)
            m.d.comb += [seats.seat.eq(owner.seat) for seats in hand.seats]
            report(m, hand.step, CommitKind.CANCEL, stage=Cat(marked, 1), id=command.id, detail=request.page)


def execute_stage_done(m: Module, hand: Hand) -> None:
    owner, id_ = hand.slots.owner, hand.request.command.id
    seat = owner.seat[: hand.params.seat_bits]
    awaited = Cat(
        (group == owner.group) & lane.awaited.bit_select(seat, 1)
        for group, lane in zip(hand.lanes.pipelines.owners, hand.lanes.dispatchers, strict=True)
    )
    with m.If(names_owner(hand) & (owner.life == Life.RUNNING)):
        hand.own(m, life=Life.WAITING)
        report(m, hand.step, CommitKind.STAGE_DONE, id=id_)
    with m.Elif(names_owner(hand) & (owner.life == Life.SEATED) & awaited.any()):
        m.d.comb += hand.reported.eq(awaited)
        report(m, hand.step, CommitKind.STAGE_DONE, id=id_)
    with m.Else():
        report(m, hand.step, CommitKind.STAGE_DONE_IGNORED, id=id_)


def execute_pop(m: Module, hand: Hand) -> None:
    lists = hand.lists
    with m.If(lists.filled[lists.retired] & (hand.request.value == hand.retire_index)):
        hand.relink(m, ListOp.UNLINK, lists.retired)
        hand.free(m)
        m.d.sync += [hand.retire_index.eq(hand.retire_index + 1), hand.core.retired.eq(0)]
        report(m, hand.step, CommitKind.FREE, id=hand.id, detail=hand.retire_index)
    with m.Else():
        report(m, hand.step, CommitKind.POP_IGNORED, detail=hand.request.value)


def execute_park(m: Module, hand: Hand) -> None:
    owner, effect = hand.slots.owner, Signal(3)
    seated = seated_traits(m, hand)
    with m.If(names_owner(hand)):
        with m.Switch(owner.life):
            with m.Case(Life.QUEUED):
                with m.If(owner.credited):
                    m.d.comb += effect.eq(4)
                    hand.own(m, credited=0)
                with m.Else():
                    m.d.comb += effect.eq(1)
                    hand.own(m, life=Life.PARKED)
                    hand.strobe(m, "dequeue", "set_aside")
                    hand.relink(m, ListOp.UNLINK, hand.waiting_list(owner.tier, owner.group))
            with m.Case(Life.PARKED):
                m.d.comb += effect.eq(3)
            with m.Case(Life.SEATED):
                with m.If(seated["parked"] | seated["parking"]):
                    m.d.comb += effect.eq(3)
                with m.Else():
                    m.d.comb += effect.eq(2)
                    hand.strobe(m, "ask_park")
    report_command(m, hand, CommitKind.PARK, effect)


def execute_credit(m: Module, hand: Hand) -> None:
    owner, effect = hand.slots.owner, Signal(3)
    seated = seated_traits(m, hand)
    with m.If(names_owner(hand)):
        with m.Switch(owner.life):
            with m.Case(Life.PARKED):
                m.d.comb += effect.eq(1)
                hand.own(m, life=Life.QUEUED)
                hand.strobe(m, "enqueue", "take_back")
                hand.relink(m, ListOp.PUSH_FRONT, hand.waiting_list(owner.tier, owner.group))
            with m.Case(Life.QUEUED):
                m.d.comb += effect.eq(3 + owner.credited)
                hand.own(m, credited=1)
            with m.Case(Life.SEATED):
                with m.If(seated["parked"]):
                    m.d.comb += effect.eq(2)
                    hand.strobe(m, "unpark")
                    with m.If(~seated["decoding"]):
                        hand.strobe(m, "relist")
                        hand.relink(m, ListOp.PUSH_FRONT, hand.prefilling_list(owner.tier, owner.group))
                with m.Else():
                    m.d.comb += effect.eq(3 + seated["credited"])
                    hand.strobe(m, "keep_credit")
    report_command(m, hand, CommitKind.CREDIT, effect)


def seated_traits(m: Module, hand: Hand) -> dict[str, Value]:
    """Points strobes at the seat of the slot in hand, and shows what is known of it."""
    owner = hand.slots.owner
    seat = owner.seat[: hand.params.seat_bits]
    m.d.comb += hand.target.eq(owner.group)
    m.d.comb += [seats.seat.eq(seat) for seats in hand.seats]
    return {
        name: hand.of(hand.seats, name, owner.group).bit_select(seat, 1)
        for name in ("decoding", "parked", "parking", "credited")
    }


def names_owner(hand: Hand) -> Value:
    """Whether the request comes from an enabled page and its id is that of the slot in hand."""
    id_, enabled = hand.request.command.id, hand.pages.enable.bit_select(hand.request.page, 1)
    return enabled & (hand.slots.owner.epoch == id_[16:]) & (id_[:16] < hand.params.slots)


def report_command(m: Module, hand: Hand, kind: CommitKind, effect: Value) -> None:
    request = hand.request
    report(m, hand.step, kind, stage=effect, id=request.command.id, detail=request.page)
