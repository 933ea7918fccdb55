"""How many others are given a seat before one that waits in a queue (docs/device.md §9)."""

from __future__ import annotations

from amaranth.hdl import Cat, Mux, Signal, Value

from cuelight_rtl.params import Params
from cuelight_rtl.queue import ListOp

from .core import number
from .queue import ordered
from .spec import Spec

__all__ = ["turns"]

_HIGHER, _OWN, _OTHER = range(3)
"""Queues of two higher tiers, and between them that in which somebody waits."""
_MOST = 31


def turns(params: Params) -> Spec:
    """One who waits in a queue, whoever, among others in that queue and in two of higher tiers.

    ``left`` is A + F + H of docs/device.md §9, less the seats that these queues were given.
    """
    order = ordered(params)
    room, spec, list_, onto = order.room, order.spec, order.list, order.onto
    m, op, slot, where = spec.m, room.op, room.slot, order.links.where
    slots = range(params.slots)
    mine = spec.some("mine", params.slot_bits)

    # What is proven elsewhere: the head of a list is its first (queue.py); a seat is given to a head (core_steps.py).
    for place, head in enumerate(order.heads):
        for each in slots:
            first = ~Cat(before[each] for before in order.ahead).any()
            spec.assume((where[each] != place) | ((head == each) == first))
    seats = spec.any("seats", 1)
    spec.assume(~seats | (((op == ListOp.UNLINK) | (op == ListOp.MOVE)) & (order.heads[list_] == slot)))

    def is_above(place: Value) -> Value:
        return (place == _HIGHER) | (place == _OTHER)

    waits = where[mine] == _OWN
    distance = number(Cat(Cat((mine == each) & before[each] for each in slots).any() for before in order.ahead))
    others = [mine != each for each in slots]
    queued = number(Cat((where[each] == _OWN) & others[each] for each in slots))
    above = number(Cat(is_above(where[each]) & others[each] for each in slots))
    joins = (op == ListOp.PUSH) | (op == ListOp.PUSH_FRONT)
    in_front = (op == ListOp.PUSH_FRONT) & (list_ == _OWN)
    goes_above = (joins & is_above(list_)) | ((op == ListOp.MOVE) & is_above(onto))
    comes = (slot == mine) & ((joins & (list_ == _OWN)) | ((op == ListOp.MOVE) & (onto == _OWN)))
    left = Signal(range(_MOST + 1))
    more = left + (in_front | goes_above)
    with m.If(comes):
        m.d.sync += left.eq(above + Mux(in_front, 0, queued))
    with m.Elif(waits):
        # Where more are allowed than can be counted, fewer will do.
        m.d.sync += left.eq(Mux(more > _MOST, _MOST, more) - seats)

    stays = spec.past(waits & ~((slot == mine) & (op != ListOp.NONE)))
    before = spec.past(distance)
    spec.claim(
        "Who waits comes no further from the head of its queue, but by one with each that is put in front.",
        distance <= before + spec.past(in_front),
        when=stays,
    )
    spec.claim(
        "With each seat that its queue is given it comes one closer.",
        distance + 1 == before,
        when=stays & spec.past(seats & (list_ == _OWN)),
    )
    spec.claim(
        "At the head it is given the next seat that its queue is given.",
        slot == mine,
        when=waits & (distance == 0) & seats & (list_ == _OWN),
    )
    spec.claim(
        "Its queue, and those of higher tiers, are given A + F + H seats at most before it: for who was ahead of it,"
        " who is put in front, and who waits in a higher tier, then or later.",
        left != 0,
        when=waits & seats & (slot != mine),
    )
    spec.lemma("Who is ahead, or waits in a higher tier, is among them.", left >= distance + above, when=waits)
    spec.reach("It waits until the last of them is given a seat.", waits & seats & (slot != mine) & (left == 1))
    return spec
