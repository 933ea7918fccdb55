"""CC: answers become packets."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .receiver import PAYLOAD
from .streams import CC, DWORDS, CcDescriptor

__all__ = ["Replier"]

_HEADER = 3
"""Dwords before the payload."""


class Replier(wiring.Component):
    """Holds one completion from ``put`` until its last beat was taken; ``busy`` in between.

    ``words`` are stored where ``store`` says, while it is not busy. ``count`` of them follow the descriptor: not those
    that it tells of, for what tells of a refused request is no payload.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "put": In(1),
                "descriptor": In(CcDescriptor),
                "count": In(range(PAYLOAD + 1)),
                "store": In(PAYLOAD),
                "words": In(32 * PAYLOAD),
                "busy": Out(1),
                "cc": Out(CC),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        kept = Signal(CcDescriptor, reset_less=True)
        words = Signal(32 * PAYLOAD, reset_less=True)
        left = Signal(range(_HEADER + PAYLOAD + 1))
        beats = (_HEADER + PAYLOAD + DWORDS - 1) // DWORDS
        beat = Signal(range(beats))
        outgoing = self.cc.payload
        packet = Cat(kept, words)
        m.d.comb += [
            self.cc.valid.eq(self.busy),
            outgoing.data.eq(packet.word_select(beat, 32 * DWORDS)),
            outgoing.last.eq(left <= DWORDS),
            outgoing.keep.eq(Mux(outgoing.last, ~(Const(~0, DWORDS) << left)[:DWORDS], ~0)),
        ]
        for index in range(PAYLOAD):
            with m.If(self.store[index]):
                m.d.sync += words.word_select(index, 32).eq(self.words.word_select(index, 32))
        with m.If(self.put):
            m.d.sync += [self.busy.eq(1), kept.eq(self.descriptor), left.eq(_HEADER + self.count), beat.eq(0)]
        with m.Elif(self.cc.valid & self.cc.ready):
            m.d.sync += [self.busy.eq(~outgoing.last), left.eq(left - DWORDS), beat.eq(beat + 1)]
        return m
