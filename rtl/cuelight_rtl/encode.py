"""Find-first-set."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.utils import ceil_log2

__all__ = ["lowest"]


def lowest(m: Module, bits: Value, name: str) -> Value:
    """Index of the lowest set bit of ``bits``, combinational; all ones where none is set.

    Halves the range again and again: is something set in the lower half, go there, else to the upper one. A handful
    of word operations as native code, and a short chain of multiplexers in logic.
    """
    index: list[Value] = []
    for level in reversed(range(ceil_log2(len(bits)))):
        low, high = bits[: 1 << level], bits[1 << level :]
        upper = Signal(name=f"{name}_{level}")
        rest = Signal(1 << level, name=f"{name}_rest_{level}")
        m.d.comb += [upper.eq(low == 0), rest.eq(Mux(upper, high, low))]
        index.append(upper)
        bits = rest
    return Cat(reversed(index))
