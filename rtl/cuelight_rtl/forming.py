"""How the next pass of a lane group is formed: bound seats, then chunks (docs/device.md §6.7)."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from .commit import report
from .encode import lowest
from .hand import Hand, Job, Step
from .params import TIERS
from .queue import ListOp
from .regmap import CommitKind

__all__ = ["begin_form_step", "execute_bind", "execute_chunk", "prefilling", "weigh"]


def begin_form_step(m: Module, hand: Hand) -> None:
    group, lists = hand.group, hand.lists
    full = hand.of(hand.passes, "full", hand.room)
    prompting = prefilling(hand, group) & hand.on_turn
    tier = lowest(m, prompting, "tier_on_turn")
    with m.If(hand.of(hand.seats, "unbound_any", group) & hand.budget.may_bind & ~full):
        hand.look_up(m, Step.BIND, "unbound_seat")
    with m.Elif(prompting.any() & ~full):
        m.d.comb += hand.reserve.eq(reserved(hand, tier))
        with m.If(hand.budget.rows_at_hand):
            m.d.sync += [hand.current.eq(Step.CHUNK), hand.tier.eq(tier)]
            hand.fetch(m, lists.heads[hand.prefilling_list(tier, group)])
        with m.Else():
            end_turn(m, hand, tier)
    with m.Else():
        hand.strobe(m, "form")
        m.d.sync += hand.job.eq(Job.NONE)
        report(
            m,
            hand.step,
            CommitKind.FORM,
            lane=group,
            stage=hand.view("count"),
            id=hand.view("number"),
            detail=hand.view("rows"),
        )


def prefilling(hand: Hand, group: Value) -> Value:
    """Which tiers' lists of prefilling seats are not empty."""
    lists = hand.lists
    return lists.filled[lists.prefilling(0, 0) : lists.retired].word_select(group, TIERS)


def reserved(hand: Hand, tier: Value) -> Value:
    """Rows that chunks of ``tier`` leave to lower tiers with prompts to work on, if those may come along."""
    busy = prefilling(hand, hand.group) & hand.tiers
    return sum(
        (Mux((tier < lower) & busy[lower], hand.core.min_rows[lower], 0) for lower in range(1, TIERS)), start=Const(0)
    )


def end_turn(m: Module, hand: Hand, tier: Value) -> None:
    """Lets no more prompts of ``tier`` come along."""
    m.d.sync += hand.on_turn.bit_select(tier, 1).eq(0)


def weigh(m: Module, hand: Hand) -> None:
    """What a row of the chunk in hand costs: attention reads what stands before it."""
    c0, c1 = (
        hand.of(hand.seats, "chunk_cost", hand.group)[:16],
        hand.of(hand.seats, "chunk_cost", hand.group)[16:],
    )
    m.d.sync += hand.row_cost.eq(c0 + c1 * hand.slots.work.start[10:])


def execute_bind(m: Module, hand: Hand) -> None:
    """An entry that only tells the lane who sits there: the seat decodes."""
    hand.strobe(m, "add", "bind")
    write_chunk(m, hand, rows=0, last=0)


def execute_chunk(m: Module, hand: Hand) -> None:
    """A chunk of the prompt in hand, the first of its list, if the budgets have room for one."""
    work, grain = hand.slots.work, hand.budget.grain
    rows, last = Signal(10), Signal()
    m.d.comb += [
        hand.reserve.eq(reserved(hand, hand.tier)),
        last.eq(work.rest <= grain),
        rows.eq(Mux(last, work.rest, grain)),
    ]
    with m.If(grain == 0):
        end_turn(m, hand, hand.tier)
    with m.Else():
        hand.strobe(m, "add", "bind")
        hand.relink(m, ListOp.UNLINK, hand.prefilling_list(hand.tier, hand.group))
        write_chunk(m, hand, rows=rows, last=last)
    with m.If(~hand.request.valid):
        m.next = "STEP"


def write_chunk(m: Module, hand: Hand, *, rows: Value | int, last: Value | int) -> None:
    """Makes the slot in hand the pass's next entry."""
    owner, work, group = hand.slots.owner, hand.slots.work, hand.group
    seat = owner.seat[: hand.params.seat_bits]
    bound = hand.of(hand.seats, "bound", group).bit_select(seat, 1)
    first = work.fresh if isinstance(rows, Value) else Const(0)
    m.d.comb += [seats.seat.eq(seat) for seats in hand.seats]
    chunk = hand.chunks.chunk
    m.d.comb += [
        chunk.slot.eq(hand.slot),
        chunk.epoch.eq(owner.epoch),
        chunk.start.eq(work.start),
        chunk.seat.eq(seat),
        chunk.rows.eq(rows),
        chunk.first.eq(first),
        chunk.last.eq(last),
        chunk.bind.eq(~bound),
    ]
    report(
        m,
        hand.step,
        CommitKind.CHUNK,
        lane=group,
        stage=seat,
        id=hand.id,
        detail=Cat(work.start, Value.cast(rows) if isinstance(rows, Value) else Const(rows, 10), last, first),
    )
