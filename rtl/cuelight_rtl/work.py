"""A lane group's own work, step by step: loop points, parking, pausing, seating (docs/device.md §6)."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value

from .commit import report
from .encode import lowest
from .forming import begin_form_step
from .hand import Hand, Job, Step
from .params import TIERS
from .queue import ListOp
from .regmap import CommitKind, RetireReason
from .slots import Life

__all__ = [
    "begin_step",
    "execute_advance",
    "execute_park_seated",
    "execute_pause",
    "execute_retire_queued",
    "execute_retire_seated",
    "execute_seat",
]


def begin_step(m: Module, hand: Hand) -> None:
    """The current group's next step, highest work first (docs/device.md §6)."""
    group, lists = hand.group, hand.lists
    leaving = hand.of(hand.seats, "leaving_any", group)
    waiting = Array(hand.waiting)[group]
    starved, welcome = Signal(TIERS), Signal(TIERS)
    m.d.comb += [
        starved.eq(waiting & hand.of(hand.seats, "hungry", group)),
        welcome.eq(waiting & hand.of(hand.seats, "welcome", group)),
    ]
    head_tier = Mux(starved.any(), lowest(m, starved, "starved"), lowest(m, welcome, "head_tier"))
    head = lists.heads[hand.waiting_list(head_tier, group)]

    m.next = "SELECT"
    with m.If(hand.of(hand.seats, "resetting", group)):
        with m.If(leaving):
            hand.look_up(m, Step.RETIRE_SEATED, "leaving_seat")
        with m.Elif(waiting.any()):
            m.d.sync += hand.current.eq(Step.RETIRE_QUEUED)
            hand.fetch(m, lists.heads[hand.waiting_list(lowest(m, waiting, "lost_tier"), group)])
        with m.Else():
            hand.strobe(m, "reset_end")
            report(m, hand.step, CommitKind.GROUP_READY, lane=group)
    with m.Elif(hand.job == Job.LOOP):
        begin_loop_step(m, hand)
    with m.Elif(hand.job == Job.FORM):
        begin_form_step(m, hand)
    with m.Elif(hand.can_loop.bit_select(group, 1)):
        turn_to(m, hand, Array(hand.loop_room)[group])
        hand.strobe(m, "loop")
        m.d.sync += [
            hand.job.eq(Job.LOOP),
            hand.entries_left.eq(Array(pass_.view.count for pass_ in hand.passes)[hand.which]),
            hand.advancing.eq(0),
        ]
        report(
            m,
            hand.step,
            CommitKind.LOOP_POINT,
            lane=group,
            stage=Array(pass_.view.index for pass_ in hand.passes)[hand.which],
            id=Array(pass_.view.number for pass_ in hand.passes)[hand.which],
        )
    with m.Elif(leaving):
        hand.look_up(m, Step.RETIRE_SEATED, "leaving_seat")
    with m.Elif(hand.of(hand.seats, "parking_any", group)):
        hand.look_up(m, Step.PARK_SEATED, "parking_seat")
    with m.Elif(hand.can_pause.bit_select(group, 1)):
        hand.look_up(m, Step.PAUSE, "victim_seat")
    with m.Elif(hand.can_seat.bit_select(group, 1)):
        m.d.sync += [hand.current.eq(Step.SEAT), hand.seat.eq(hand.of(hand.seats, "free_seat", group))]
        hand.fetch(m, head)
    with m.Elif(hand.can_form.bit_select(group, 1)):
        turn_to(m, hand, Array(hand.form_room)[group])
        plan(m, hand, hand.of(hand.seats, "awake_count", group), Const(-1, TIERS))
    with m.Elif(hand.can_press.bit_select(group, 1)):
        turn_to(m, hand, hand.params.lanes + group)
        plan(m, hand, Const(0, 1), hand.of(hand.seats, "above", group))


def turn_to(m: Module, hand: Hand, room: Value) -> None:
    """Begins to work on the pass in ``room``."""
    m.d.comb += hand.which.eq(room)
    m.d.sync += hand.room.eq(room)


def plan(m: Module, hand: Hand, decode_rows: Value, tiers: Value) -> None:
    """Begins to form a pass: chunks of ``tiers`` may come along."""
    group = hand.group
    hand.strobe(m, "plan")
    m.d.sync += [
        hand.job.eq(Job.FORM),
        hand.tiers.eq(tiers),
        hand.on_turn.eq(tiers),
    ]
    report(
        m,
        hand.step,
        CommitKind.PLAN,
        lane=group,
        stage=Array(pass_.view.index for pass_ in hand.passes)[hand.which],
        id=hand.of(hand.seats, "number", group) + 1,
        detail=Cat(decode_rows, Const(0, 16 - len(decode_rows)), Array(hand.lanes.pipelines.lengths)[group]),
    )


def begin_loop_step(m: Module, hand: Hand) -> None:
    group = hand.group
    entry = hand.chunks.entry
    with m.If(hand.of(hand.seats, "leaving_any", group) & ~hand.advancing):
        hand.look_up(m, Step.RETIRE_SEATED, "leaving_seat")
    with m.Elif(hand.entries_left != 0):
        m.d.sync += hand.advancing.eq(1)
        seated = hand.of(hand.seats, "seated", group).bit_select(entry.seat[: hand.params.seat_bits], 1)
        with m.If(seated & (entry.rows != 0)):
            m.d.sync += [hand.seat.eq(entry.seat), hand.current.eq(Step.ADVANCE)]
            hand.fetch(m, entry.slot)
        with m.Else():
            m.d.sync += hand.entries_left.eq(hand.entries_left - 1)
    with m.Else():
        hand.strobe(m, "end", "loop_end")
        m.d.sync += hand.job.eq(Job.NONE)


def execute_park_seated(m: Module, hand: Hand) -> None:
    """Parks a parking seat, or uses up its credit."""
    group, seat = hand.group, hand.seat[: hand.params.seat_bits]
    credited = hand.of(hand.seats, "credited", group).bit_select(seat, 1)
    with m.If(credited):
        hand.strobe(m, "spend_credit")
    with m.Else():
        hand.strobe(m, "park")
        leave_list(m, hand)
    report(m, hand.step, CommitKind.PARKED, lane=group, stage=seat, detail=credited)


def leave_list(m: Module, hand: Hand) -> None:
    """Takes the seated request in hand out of its prefilling list, if it is in it."""
    seat = hand.seat[: hand.params.seat_bits]
    with m.If(hand.of(hand.seats, "listed", hand.group).bit_select(seat, 1)):
        hand.relink(m, ListOp.UNLINK, hand.prefilling_list(hand.slots.owner.tier, hand.group))


def execute_retire_seated(m: Module, hand: Hand) -> None:
    group, seat = hand.group, hand.seat[: hand.params.seat_bits]
    finished = hand.of(hand.seats, "finished", group).bit_select(seat, 1)
    resetting = hand.of(hand.seats, "resetting", group)
    hand.strobe(m, "leave")
    leave_list(m, hand)
    reason = Mux(resetting, RetireReason.LANE_LOST, Mux(finished, RetireReason.FINISHED, RetireReason.CANCELLED))
    hand.retire(m, reason, hand.seat)


def execute_retire_queued(m: Module, hand: Hand) -> None:
    hand.strobe(m, "dequeue")
    hand.relink(m, ListOp.UNLINK, hand.waiting_list(hand.slots.owner.tier, hand.group))
    hand.retire(m, RetireReason.LANE_LOST, 0x100)


def execute_advance(m: Module, hand: Hand) -> None:
    work, entry = hand.slots.work, hand.chunks.entry
    start, complete = Signal(20), Signal()
    m.d.comb += [
        start.eq(work.start + entry.rows),
        complete.eq(work.rest == entry.rows),
        hand.slots.write_work.eq(1),
        hand.work_next.start.eq(start),
        hand.work_next.rest.eq(work.rest - entry.rows),
        hand.work_next.fresh.eq(0),
    ]
    with m.If(complete):
        hand.strobe(m, "turn")
    with m.Else():
        hand.strobe(m, "relist")
        hand.relink(m, ListOp.PUSH_FRONT, hand.prefilling_list(hand.slots.owner.tier, hand.group))
    m.d.sync += hand.entries_left.eq(hand.entries_left - 1)
    report(
        m,
        hand.step,
        CommitKind.ADVANCE,
        lane=hand.group,
        stage=hand.seat,
        id=hand.id,
        detail=Cat(start, Signal(11), complete),
    )


def execute_pause(m: Module, hand: Hand) -> None:
    group, owner, seat = hand.group, hand.slots.owner, hand.seat[: hand.params.seat_bits]
    parked, credited = (hand.of(hand.seats, name, group).bit_select(seat, 1) for name in ("parked", "credited"))
    hand.strobe(m, "leave")
    leave_list(m, hand)
    hand.own(m, life=Mux(parked, Life.PARKED, Life.QUEUED), credited=credited)
    with m.If(parked):
        hand.strobe(m, "set_aside")
    with m.Else():
        hand.strobe(m, "enqueue")
        m.next = "SECOND"
    report(
        m,
        hand.step,
        CommitKind.PAUSE,
        lane=group,
        stage=hand.seat,
        id=hand.id,
        detail=Cat(owner.tier, Const(0, 6), parked),
    )


def execute_seat(m: Module, hand: Hand) -> None:
    group, owner, decodes = hand.group, hand.slots.owner, hand.slots.work.rest == 0
    hand.strobe(m, "take", "dequeue")
    m.d.comb += hand.lists.onto.eq(hand.prefilling_list(owner.tier, group))
    with m.If(decodes):
        hand.relink(m, ListOp.UNLINK, hand.waiting_list(owner.tier, group))
    with m.Else():
        hand.relink(m, ListOp.MOVE, hand.waiting_list(owner.tier, group))
    hand.own(m, life=Life.SEATED, seat=hand.seat)
    m.d.comb += hand.seat_write.en.eq(1)
    report(
        m,
        hand.step,
        CommitKind.SEAT,
        lane=group,
        stage=hand.seat,
        id=hand.id,
        detail=Cat(owner.tier, Const(0, 6), decodes),
    )
