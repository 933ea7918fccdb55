"""KV credit is never negative, and whole when everybody has left."""

from __future__ import annotations

from amaranth.hdl import Signal, Value

from cuelight_rtl.params import Params
from cuelight_rtl.seats import Seats

from .spec import Spec

__all__ = ["credit", "promised"]


def promised(spec: Spec, room: Seats, is_mine: Value, floor: Value) -> tuple[Signal, Signal, Signal]:
    """What judge and core promise a group's credit; whether one request holds blocks, how many, and what others do."""
    m = spec.m
    holds, mine, others = Signal(name="holds"), Signal(16, name="mine"), Signal(20, name="others")
    takes, gives, blocks = room.credit_take, room.credit_give, room.blocks
    spec.promise("Blocks are taken or returned.", ~(takes & gives), when=takes | gives)
    spec.promise("An admission leaves its tier's floor free.", blocks + floor <= room.blocks_free, when=takes)
    spec.promise("A request takes blocks once.", ~holds, when=takes & is_mine)
    spec.promise("It returns what it took, once.", holds & (blocks == mine), when=gives & is_mine)
    spec.promise("The others return no more than they took.", blocks <= others, when=gives & ~is_mine)
    spec.promise(
        "The group's blocks are set only while no request holds any.",
        (others == 0) & (mine == 0) & ~takes & ~gives & (room.value < 1 << 16),
        when=room.set_blocks,
    )
    with m.If(takes & is_mine):
        m.d.sync += [holds.eq(1), mine.eq(blocks)]
    with m.Elif(takes):
        m.d.sync += others.eq(others + blocks)
    with m.Elif(gives & is_mine):
        m.d.sync += [holds.eq(0), mine.eq(0)]
    with m.Elif(gives):
        m.d.sync += others.eq(others - blocks)
    return holds, mine, others


def credit(params: Params) -> Spec:
    """A group's blocks beside a ghost that knows what one request holds, whichever, and what all others hold."""
    room = Seats(params, longest=1)
    spec = Spec(room)
    is_mine, floor = spec.any("is_mine", 1), spec.any("floor", 16)
    takes, gives = room.credit_take, room.credit_give
    holds, mine, others = promised(spec, room, is_mine, floor)

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
