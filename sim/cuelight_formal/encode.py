"""Find-first-set finds the first."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from cuelight_rtl.encode import lowest

from .spec import Spec

__all__ = ["find_first"]


class Finder(wiring.Component):
    """`lowest` with ports around it."""

    def __init__(self, width: int) -> None:
        super().__init__({"bits": In(width), "index": Out(range(width))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.index.eq(lowest(m, self.bits, "found"))
        return m


def find_first(width: int) -> Spec:
    room = Finder(width)
    spec = Spec(room)
    chosen = spec.some("chosen", len(room.index))
    bit = room.bits.bit_select(chosen, 1)
    spec.claim("The bit that is found is set.", room.bits.bit_select(room.index, 1), when=room.bits.any())
    spec.claim("No set bit is lower than the one that is found.", room.index <= chosen, when=bit)
    spec.claim("All ones where none is set.", room.index.all(), when=~room.bits.any())
    every = Signal(width)
    spec.m.d.comb += every.eq(Const(1, width) << chosen)
    spec.reach("Any bit can be the only one.", Cat(room.bits == every, chosen == width - 1).all())
    return spec
