"""How the rooms that the core works on are connected."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value

from .encode import lowest
from .hand import STROBES, Hand
from .params import TIERS
from .pipelines import LENGTHS, longest

__all__ = ["connect"]


def connect(m: Module, hand: Hand) -> None:
    """Connects the rooms; steps override what is connected here."""
    m.submodules.slots = hand.slots
    m.submodules.lists = hand.lists
    m.submodules.seat_map = hand.seat_map
    m.submodules.chunks = hand.chunks
    m.submodules.budget = hand.budget
    m.d.comb += [hand.target.eq(hand.group), hand.which.eq(hand.room)]
    for group in range(hand.params.lanes):
        m.submodules[f"seats_{group}"] = hand.seats[group]
        connect_group(m, hand, group)
        connect_lane(m, hand, group)
        choose_pass(m, hand, group)
    for room, pass_ in enumerate(hand.passes):
        m.submodules[f"pass_{room}"] = pass_
        connect_pass(m, hand, room)
    connect_forming(m, hand)
    m.d.comb += [hand.lanes.planned.eq(hand.strobes["plan"]), hand.lanes.plan_room.eq(hand.which)]
    connect_rows(m, hand)


def rooms_of(hand: Hand, group: int) -> list[tuple[int, Value]]:
    """Rooms that can hold a pass of ``group``, its second pass's first, and whether they do."""
    lanes, owners = hand.params.lanes, hand.lanes.pipelines.owners
    pipeline = range(group, group + longest(hand.params, group))
    return [(lanes + group, Const(1)), *((room, owners[room] == group) for room in pipeline)]


def gather(hand: Hand, group: int, name: str) -> Value:
    """Port ``name`` of all the group's passes, or'ed."""
    return reduce(or_, (Mux(here, getattr(hand.passes[room], name), 0) for room, here in rooms_of(hand, group)))


def connect_group(m: Module, hand: Hand, group: int) -> None:
    seats = hand.seats[group]
    m.d.comb += [getattr(seats, name).eq(hand.strobes[name] & (hand.target == group)) for name in STROBES["seats"]]
    waiting = hand.lists.filled[hand.lists.waiting(group, 0) :][:TIERS]
    m.d.comb += [
        hand.waiting[group].eq(waiting),
        hand.can_seat[group].eq(seats.free_any & (waiting & seats.welcome).any() & ~seats.resetting),
        hand.can_pause[group].eq(seats.victim_any),
        hand.in_pass[group].eq(gather(hand, group, "alive")),
        hand.wanted[group].eq(
            Cat(
                *(seats.resetting, seats.leaving_any, seats.parking_any),
                *(can[group] for can in (hand.can_loop, hand.can_seat, hand.can_pause)),
                *(can[group] for can in (hand.can_form, hand.can_press)),
            ).any()
        ),
        seats.seat.eq(hand.seat),
        seats.waiting.eq(waiting),
        seats.min_seats.eq(hand.core.min_seats),
        seats.seat_floor.eq(hand.core.seat_floor),
        seats.busy.eq(gather(hand, group, "busy")),
        seats.sampled.eq(gather(hand, group, "sampling")),
        seats.finished.eq(gather(hand, group, "leaving")),
        seats.take_tier.eq(hand.slots.owner.tier),
        seats.take_decoding.eq(hand.slots.work.rest == 0),
        seats.take_credited.eq(hand.slots.owner.credited),
        seats.take_stepped.eq(hand.slots.owner.stepped),
        seats.blocks.eq(hand.blocks),
        seats.value.eq(hand.request.value),
    ]


def choose_pass(m: Module, hand: Hand, group: int) -> None:
    """Which passes of the group come to their loop point, or can be formed; and who decodes in the one in turn."""
    seats, length = hand.seats[group], hand.lanes.pipelines.lengths[group]
    rooms = rooms_of(hand, group)
    due = [hand.lanes.walkers[room].due & here for room, here in rooms]
    m.d.comb += hand.can_loop[group].eq(Cat(due).any())
    for (room, _), waits in reversed(list(zip(rooms, due, strict=True))):
        with m.If(waits):
            m.d.comb += hand.loop_room[group].eq(room)

    firsts = rooms[1:]
    lengths = [n for n in LENGTHS if n <= len(firsts)]
    formable = Signal(len(firsts), name=f"formable_{group}")
    for k, (room, here) in enumerate(firsts):
        decoders = Cat((length == n) & seats.decoders[k % n :: n].any() for n in lengths).any()
        same = [Cat(length == n for n in lengths if (share - k) % n == 0).any() for share in range(len(firsts))]
        m.d.comb += formable[k].eq(here & ~hand.passes[room].alive & (seats.prompts | decoders))
        with m.If(hand.which == room):
            m.d.comb += seats.shares.eq(Cat(same))
    chosen: Value | int = 0
    if len(firsts) > 1:
        latest = Signal(range(len(firsts)), init=len(firsts) - 1, name=f"formed_{group}")
        later = formable & (~Const(1, len(firsts)) << latest)[: len(firsts)]
        chosen = Mux(later.any(), lowest(m, later, f"later_{group}"), lowest(m, formable, f"formable_{group}"))
        with m.If(hand.strobes["plan"] & (hand.target == group) & (hand.which < hand.params.lanes)):
            m.d.sync += latest.eq(hand.which - group)
    first, second = hand.passes[group], hand.passes[hand.params.lanes + group]
    alone = (length == 1) & ~hand.lanes.pipelines.absorbed[group]
    m.d.comb += [
        hand.form_room[group].eq(group + chosen),
        hand.can_form[group].eq(formable.any()),
        hand.can_press[group].eq(alone & first.alive & ~second.alive & seats.urgent),
    ]


def connect_lane(m: Module, hand: Hand, index: int) -> None:
    lane, owner = hand.lanes.dispatchers[index], hand.lanes.pipelines.owners[index]
    m.d.comb += [getattr(lane, name).eq(hand.strobes[name] & (hand.target == index)) for name in STROBES["lane"]]
    m.d.comb += [
        lane.drop.eq(hand.strobes["drop"] & (hand.target == owner)),
        lane.group.eq(owner),
        lane.in_pass.eq(hand.in_pass.bit_select(owner, 1)),
        lane.resetting.eq(hand.of(hand.seats, "resetting", owner)),
        lane.rest.eq(hand.of(hand.seats, "resting", owner)),
        lane.value.eq(hand.request.value),
        lane.report.eq(hand.reported[index]),
        lane.report_seat.eq(hand.slots.owner.seat),
        *(
            getattr(view, name).eq(getattr(hand.passes[room].view, name))
            for view, room in zip(lane.view, lane.rooms, strict=True)
            for name in view.signature.members
        ),
        # A pass may be alive beyond its last member, until its loop point is over.
        hand.lanes.pipelines.vacant[index].eq(
            hand.seats[index].vacant & ~hand.seats[index].resetting & ~hand.in_pass[index]
        ),
    ]


def connect_pass(m: Module, hand: Hand, room: int) -> None:
    """A pass, and the walker that takes it through its stages. A second pass has no decode rows."""
    pass_, walker, lanes = hand.passes[room], hand.lanes.walkers[room], hand.params.lanes
    group: Value | Const
    if room < lanes:
        group = hand.lanes.pipelines.owners[room]
        along = Array(seats.along for seats in hand.seats[: room + 1])[group]
        bound_count = Array(seats.awake_count - seats.unbound_count for seats in hand.seats[: room + 1])[group]
        m.d.comb += [
            pass_.view.index.eq(room - group),
            pass_.decoding.eq(along),
            pass_.decode_rows.eq(bound_count),
        ]
    else:
        group = Const(room - lanes, 3)
        m.d.comb += pass_.view.index.eq(1)
    m.d.comb += [getattr(pass_, name).eq(hand.strobes[name] & (hand.which == room)) for name in STROBES["pass"]]
    m.d.comb += [
        pass_.drop.eq(hand.strobes["drop"] & (hand.target == group)),
        pass_.plan_number.eq(hand.of(hand.seats, "number", group) + 1),
        pass_.chunk.eq(hand.chunks.chunk),
        pass_.finish.eq(walker.done),
        pass_.finish_seats.eq(hand.lanes.finish_seats[room]),
        walker.stage_count.eq(hand.core.stage_count),
        walker.start.eq(pass_.form),
        walker.binds.eq(pass_.binds),
        walker.samples.eq(pass_.view.samples),
        walker.loop.eq(pass_.loop),
        walker.drop.eq(pass_.drop),
    ]


def connect_forming(m: Module, hand: Hand) -> None:
    """What the pass in ``which`` may take in; its entries."""
    first = hand.which < hand.params.lanes
    budget, chunks = hand.budget, hand.chunks
    for name, source in (
        ("row_limit", "rows"),
        ("cost_limit", "cost"),
        ("decode_cost", "decode_cost"),
    ):
        m.d.comb += getattr(budget, name).eq(hand.of(hand.seats, source, hand.group))
    m.d.comb += [
        budget.plan.eq(hand.strobes["plan"]),
        budget.decode_rows.eq(Mux(first, hand.of(hand.seats, "awake_count", hand.group), 0)),
        budget.unbound_rows.eq(Mux(first, hand.of(hand.seats, "unbound_count", hand.group), 0)),
        budget.empty.eq(hand.of(hand.passes, "empty", hand.room)),
        budget.reserve.eq(hand.reserve),
        budget.row_cost.eq(hand.row_cost),
        budget.add.eq(hand.strobes["add"]),
        budget.add_rows.eq(chunks.chunk.rows),
        chunks.room.eq(hand.room),
        chunks.add.eq(hand.strobes["add"]),
        chunks.count.eq(hand.view("count")),
        chunks.select.eq(hand.entries_left - 1),
    ]


def connect_rows(m: Module, hand: Hand) -> None:
    """The slot in hand, and what is written back to it."""
    slots, lists = hand.slots, hand.lists
    m.d.comb += [
        slots.slot.eq(hand.slot),
        lists.slot.eq(hand.slot),
        slots.fetch.eq(hand.slot),
        lists.fetch.eq(slots.fetch),
        slots.next_owner.eq(hand.owner_next),
        slots.next_work.eq(hand.work_next),
        hand.owner_next.eq(slots.owner),
        hand.work_next.eq(slots.work),
        hand.blocks.eq(slots.work.blocks),
        hand.seat_read.addr.eq(Cat(hand.looked_up, hand.group)),
        hand.seat_write.addr.eq(Cat(hand.seat[: hand.params.seat_bits], hand.group)),
        hand.seat_write.data.eq(hand.slot),
    ]
    m.d.comb += hand.show_due.eq(lists.filled[lists.retired] & ~hand.core.retired.valid)
