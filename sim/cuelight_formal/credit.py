"""KV credit is never negative, and whole when everybody has left."""

from __future__ import annotations

from amaranth.hdl import Signal

from cuelight_rtl.params import Params
from cuelight_rtl.seats import Seats

from .spec import Spec

__all__ = ["credit"]


def credit(params: Params) -> Spec:
    """A group's blocks beside a ghost that knows what one request holds, whichever, and what all others hold."""
    room = Seats(params, longest=1)
    spec = Spec(room)
    m = spec.m
    is_mine, floor = spec.any("is_mine", 1), spec.any("floor", 16)
    holds, mine, others = Signal(), Signal(16), Signal(20)
    takes, gives, blocks = room.credit_take, room.credit_give, room.blocks

    # What judge and core promise: an admission leaves the floor free, a request returns what it took, once, and the
    # group's blocks are set only while it has no request.
    spec.assume(~(takes & gives))
    spec.assume(~takes | (blocks + floor <= room.blocks_free))
    spec.assume(~(takes & is_mine) | ~holds)
    spec.assume(~(gives & is_mine) | (holds & (blocks == mine)))
    spec.assume(~(gives & ~is_mine) | (blocks <= others))
    spec.assume(~room.set_blocks | ((others == 0) & (mine == 0) & ~takes & ~gives & (room.value < 1 << 16)))
    with m.If(takes & is_mine):
        m.d.sync += [holds.eq(1), mine.eq(blocks)]
    with m.Elif(takes):
        m.d.sync += others.eq(others + blocks)
    with m.Elif(gives & is_mine):
        m.d.sync += [holds.eq(0), mine.eq(0)]
    with m.Elif(gives):
        m.d.sync += others.eq(others - blocks)

    free, total = room.blocks_free, room.blocks_total
    spec.claim("Free blocks and those that requests hold are all that the group has.", free + mine + others == total)
    spec.claim(
        "Credit is never negative: no more is free, and no more is held, than there is.",
        (free <= total) & (mine + others <= total),
    )
    spec.claim(
        "Credit is whole when no request holds any.", free == total, when=(others == 0) & (mine == 0) & (total != 0)
    )
    spec.claim("An admission leaves its tier's floor free.", free >= spec.past(floor), when=spec.past(takes))
    spec.claim(
        "Credit moves at admission and retirement only, and where the group's blocks are set.",
        (free == spec.past(free)) & (total == spec.past(total)),
        when=spec.past(~(takes | gives | room.set_blocks)),
    )
    spec.lemma("Who holds none has no blocks.", mine == 0, when=~holds)
    spec.reach("Requests hold all blocks.", (mine != 0) & (others != 0) & (free == 0))
    return spec
