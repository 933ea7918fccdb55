"""The pass record as the poll window shows it."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Module, Signal, Value
from amaranth.lib import data

from .params import ENTRIES

__all__ = ["BITMAP_WORDS", "record_word"]

BITMAP_WORDS = 6
"""64-bit words of the decode bitmap: three units of three seat words and a stamp."""


def field(value: Value, width: int) -> Value:
    """``value`` in a field of ``width`` bits."""
    return Cat(value, Const(0, width))[:width]


def record_word(m: Module, word: Value, *, decode: Value, chunk: data.View, count: Value, stamp: Value) -> Signal:
    """The 64-bit word ``word`` of a pass record: the bitmap's units, then two words for each entry.

    ``chunk`` is entry ``(word - BITMAP_WORDS) >> 1`` of ``count``. Unused entries read zero.
    """
    value = Signal(64)
    tail = Cat(Const(0, 16), stamp)
    seats = [field(decode[32 * i : 32 * i + 32], 32) for i in range(8)] + [Const(0, 32)]
    units = [half for unit in range(3) for half in (*seats[3 * unit : 3 * unit + 3], tail)]
    bitmap = Array(Cat(low, high) for low, high in zip(units[::2], units[1::2], strict=True))
    entry = Signal(range(ENTRIES + 1))
    m.d.comb += entry.eq((word - BITMAP_WORDS)[1:])
    with m.If(word < BITMAP_WORDS):
        m.d.comb += value.eq(bitmap[word])
    with m.Elif(entry < count):
        with m.If(word[0]):
            m.d.comb += value.eq(Cat(field(chunk.rows, 32), tail))
        with m.Else():
            m.d.comb += value.eq(
                Cat(
                    *(field(chunk.slot, 16), field(chunk.epoch, 16), field(chunk.start, 20), field(chunk.seat, 8)),
                    *(chunk.bind, chunk.first, chunk.last),
                )
            )
    return value
