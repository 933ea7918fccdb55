"""Find-first-set."""

from __future__ import annotations

from amaranth.hdl import Module, Signal, Value
from amaranth.utils import ceil_log2

__all__ = ["lowest"]


def lowest(m: Module, bits: Value, name: str) -> Signal:
    """Index of the lowest set bit of ``bits``, combinational; 0 where none is set.

    The lowest set bit is isolated by ``x & -x``; bit *i* of its index is the disjunction of the places whose
    number has bit *i* set. That is one carry chain and shallow trees, instead of a chain of multiplexers.
    """
    width = len(bits)
    alone = Signal(width, name=f"{name}_alone")
    index = Signal(ceil_log2(width), name=f"{name}_index")
    m.d.comb += alone.eq(bits & (~bits + 1))
    for bit in range(len(index)):
        mask = sum(1 << place for place in range(width) if place >> bit & 1)
        m.d.comb += index[bit].eq((alone & mask).any())
    return index
