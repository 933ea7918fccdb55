"""Lists stay well formed, and are first in, first out."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Array, Cat, Const, Signal, Value

from cuelight_rtl.params import Params
from cuelight_rtl.queue import ListOp, Lists

from .spec import Spec

__all__ = ["Links", "Order", "lists", "ordered", "promised"]


@dataclass(frozen=True)
class Links:
    """What happened to lists.

    Attributes
    ----------
    where
        The list that each slot is in; their number is nowhere.
    asked
        The slot whose links were asked for, one cycle ago and two.
    ops
        What was done, one cycle ago and two.
    begun
        Whether two cycles have passed.
    """

    where: Array[Signal]
    asked: tuple[Value, Value]
    ops: tuple[Value, Value]
    begun: Value


def promised(
    spec: Spec, room: Lists, params: Params, list_: Value, onto: Value, heads: Array[Signal], nowhere: int
) -> Links:
    """What the core promises the lists, which are numbered below ``nowhere``."""
    m, op, slot = spec.m, room.op, room.slot
    where = Array(Signal(range(nowhere + 1), name=f"where_{s}", init=nowhere) for s in range(params.slots))
    op_before, asked = spec.past(op), spec.past(room.fetch)
    asked_first, op_first = spec.past(asked), spec.past(op_before)
    joins = (op == ListOp.PUSH) | (op == ListOp.PUSH_FRONT)
    leaves = (op == ListOp.UNLINK) | (op == ListOp.MOVE)
    # Links are read for two cycles before anything is done, and the sweep takes longer.
    begun = spec.past(~spec.first())
    spec.promise("Links are read before anything is done with lists.", begun, when=op != ListOp.NONE)
    spec.promise(
        "Only lists that there are take part.",
        (op <= max(ListOp)) & (list_ < nowhere) & ((op != ListOp.MOVE) | (onto < nowhere)),
        when=op != ListOp.NONE,
    )
    spec.promise("A slot joins a list from nowhere.", where[slot] == nowhere, when=joins)
    spec.promise(
        "A slot leaves the list that it is in, with links that were fetched and have not changed since.",
        (where[slot] == list_) & (asked_first == slot) & ~Cat(op_before, op_first).any(),
        when=leaves,
    )
    spec.promise(
        "Only the head of a list moves, to another list.",
        (heads[list_] == slot) & (onto != list_),
        when=op == ListOp.MOVE,
    )
    with m.If(joins):
        m.d.sync += where[slot].eq(list_)
    with m.If(op == ListOp.UNLINK):
        m.d.sync += where[slot].eq(nowhere)
    with m.If(op == ListOp.MOVE):
        m.d.sync += where[slot].eq(onto)
    return Links(where, (asked, asked_first), (op_before, op_first), begun)


@dataclass(frozen=True)
class Order:
    """Three of the lists beside a ghost: which list each slot is in, and of each two slots which one is ahead.

    Lists differ in nothing but their numbers, so three of them are used: two queues and the last list.

    Attributes
    ----------
    numbers
        Of the three lists.
    list, onto
        What is done is done to these, by their places in ``numbers``.
    ahead
        Of each two slots, whether the one is before the other in the list that both are in.
    """

    room: Lists
    spec: Spec
    numbers: tuple[int, ...]
    list: Signal
    onto: Signal
    heads: Array[Signal]
    links: Links
    ahead: list[list[Signal]]


def ordered(params: Params) -> Order:
    """The lists with their ghost, of which it is claimed that it is an order."""
    room = Lists(params)
    spec = Spec(room)
    m, slots = spec.m, range(params.slots)
    op, slot = room.op, room.slot
    numbers = (0, 1, room.count - 1)
    nowhere = len(numbers)
    list_, onto = Signal(range(nowhere)), Signal(range(nowhere))
    numbered = Array(Const(number, len(room.list)) for number in numbers)
    m.d.comb += [list_.eq(spec.any("list", len(list_))), onto.eq(spec.any("onto", len(onto)))]
    m.d.comb += [room.list.eq(numbered[list_]), room.onto.eq(numbered[onto])]
    heads = Array(room.heads[number] for number in numbers)
    links = promised(spec, room, params, list_, onto, heads, nowhere)
    where = links.where
    ahead = [[Signal(name=f"ahead_{a}_{b}") for b in slots] for a in slots]
    for a in slots:
        for b in slots:
            with m.If((slot == b) & (a != b) & (op != ListOp.NONE)):
                behind_all = ((op == ListOp.PUSH) & (where[a] == list_)) | ((op == ListOp.MOVE) & (where[a] == onto))
                m.d.sync += ahead[a][b].eq(behind_all)
            with m.If((slot == a) & (a != b) & (op != ListOp.NONE)):
                m.d.sync += ahead[a][b].eq((op == ListOp.PUSH_FRONT) & (where[b] == list_))

    inside = [where[s] != nowhere for s in slots]
    pairs = [(a, b) for a in slots for b in slots if a != b]
    spec.lemma(
        "Of two slots in a list one is ahead, and of two that are not in a list neither is.",
        Cat((ahead[a][b] ^ ahead[b][a]) == (inside[a] & (where[a] == where[b])) for a, b in pairs if a < b).all()
        & ~Cat(ahead[s][s] for s in slots).any()
        & ~Cat(ahead[a][b] & ahead[b][a] for a, b in pairs).any(),
    )
    spec.lemma(
        "Who is ahead of one that is ahead of a third is ahead of that too.",
        Cat(~(ahead[a][b] & ahead[b][c]) | ahead[a][c] for a, b in pairs for c in slots if c != a).all(),
    )
    return Order(room, spec, numbers, list_, onto, heads, links, ahead)


def lists(params: Params) -> Spec:
    """The lists are those of the ghost, and first in, first out."""
    order = ordered(params)
    room, spec, list_, onto, heads, ahead = order.room, order.spec, order.list, order.onto, order.heads, order.ahead
    m, slots, op, slot = spec.m, range(params.slots), room.op, room.slot
    every, nowhere = range(len(order.numbers)), len(order.numbers)
    tails = Array(room.tails[number] for number in order.numbers)
    filled = Cat(room.filled[number] for number in order.numbers)
    where, begun = order.links.where, order.links.begun
    asked, asked_first = order.links.asked
    op_before, op_first = order.links.ops
    leaves = (op == ListOp.UNLINK) | (op == ListOp.MOVE)
    inside = [where[s] != nowhere for s in slots]
    first = [inside[s] & ~Cat(ahead[a][s] for a in slots).any() for s in slots]
    last = [inside[s] & ~Cat(ahead[s][b] for b in slots).any() for s in slots]

    def in_list(s: int, index: int) -> Value:
        return where[s] == index

    spec.claim(
        "A list is filled exactly when a slot is in it.",
        Cat(filled[index] == Cat(in_list(s, index) for s in slots).any() for index in every).all(),
    )
    spec.claim(
        "The head of a list is its first slot, and no other.",
        Cat(~in_list(s, index) | ((heads[index] == s) == first[s]) for s in slots for index in every).all(),
        when=filled.any(),
    )
    spec.claim(
        "The tail of a list is its last slot, and no other.",
        Cat(~in_list(s, index) | ((tails[index] == s) == last[s]) for s in slots for index in every).all(),
        when=filled.any(),
    )
    spec.lemma(
        "Head and tail of a filled list are in it.",
        Cat(~filled[index] | (where[ends[index]] == index) for index in every for ends in (heads, tails)).all(),
    )
    next_, previous = spec.rows("next_ram"), spec.rows("previous_ram")
    spec.claim(
        "Next of every slot but a tail is the one that follows it in the list.",
        Cat(
            ~inside[s]
            | last[s]
            | (
                Array(ahead[s])[next_[s]]
                & Cat(~ahead[s][b] | (next_[s] == b) | Array(ahead[x][b] for x in slots)[next_[s]] for b in slots).all()
            )
            for s in slots
        ).all(),
        when=Cat(inside[s] & ~last[s] for s in slots).any(),
    )
    spec.claim(
        "Previous of every slot but a head is the one that it follows in the list.",
        Cat(
            ~inside[s]
            | first[s]
            | (
                Array(ahead[x][s] for x in slots)[previous[s]]
                & Cat(~ahead[a][s] | (previous[s] == a) | Array(ahead[a])[previous[s]] for a in slots).all()
            )
            for s in slots
        ).all(),
        when=Cat(inside[s] & ~first[s] for s in slots).any(),
    )

    for name, rows, shown in (("next", next_, room.next), ("previous", previous, room.previous)):
        read, kept = spec.read_data(f"{name}_ram"), Array(rows)
        then = spec.past(kept[room.fetch])
        spec.claim(
            f"The {name} link that was asked for shows two cycles later, as it was then.",
            shown == spec.past(then),
            when=begun,
        )
        spec.lemma(f"The RAM of {name} links was read a cycle ago.", read == then, when=~spec.first())
        spec.lemma(
            f"What was read of {name} links stands until an operation.",
            kept[asked] == read,
            when=~spec.first() & ~op_before.any(),
        )
        spec.lemma(
            f"What is shown of {name} links stands until an operation.",
            kept[asked_first] == shown,
            when=begun & ~Cat(op_before, op_first).any(),
        )
    spec.lemma("Lists are empty at first.", ~Cat(inside, filled).any(), when=~begun)

    other = spec.some("other", len(room.list))
    spec.assume(other < room.count)
    list_before, slot_before = spec.past(list_), spec.past(slot)
    named, named_onto = spec.past(room.list), spec.past(room.onto)
    untouched = (op_before == ListOp.NONE) | ((named != other) & ((op_before != ListOp.MOVE) | (named_onto != other)))
    ends = Cat(room.heads[other], room.tails[other], room.filled.bit_select(other, 1))
    spec.claim("An operation leaves every list alone that it does not name.", ends == spec.past(ends), when=untouched)

    early, late = spec.some("early", params.slot_bits), spec.some("late", params.slot_bits)
    came_first = Signal()
    came_last = ((op == ListOp.PUSH) & (where[early] == list_)) | ((op == ListOp.MOVE) & (where[early] == onto))
    went_first = (op == ListOp.PUSH_FRONT) & (where[late] == list_)
    stay = ~(leaves & ((slot == early) | (slot == late)))
    m.d.sync += came_first.eq(
        (early != late) & ((came_last & (slot == late)) | (went_first & (slot == early)) | (came_first & stay))
    )
    is_ahead = Array(Array(row) for row in ahead)[early][late]
    spec.lemma("Of two slots in a list, the one that came first is ahead.", is_ahead, when=came_first)
    spec.claim(
        "First in, first out: no slot is the head of a list while one that came before it is in it.",
        ~Cat((where[late] == index) & (heads[index] == late) for index in every).any(),
        when=came_first,
    )
    spec.claim(
        "What joins at the front is the head.", heads[list_before] == slot_before, when=op_before == ListOp.PUSH_FRONT
    )
    spec.claim("What joins at the back is the tail.", tails[list_before] == slot_before, when=op_before == ListOp.PUSH)
    spec.reach("All slots are in one queue.", Cat(in_list(s, 0) for s in slots).all())
    spec.reach("All slots have retired.", Cat(in_list(s, nowhere - 1) for s in slots).all())
    return spec
