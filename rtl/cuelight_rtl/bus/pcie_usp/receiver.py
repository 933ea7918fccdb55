"""CQ: packets become requests."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .streams import CQ, DWORDS, CqDescriptor, RequestType

__all__ = ["PAYLOAD", "Receiver", "is_posted"]

PAYLOAD = 16
"""Dwords of the largest payload that is kept."""
_HEADER = 4
"""Dwords before the payload."""


def is_posted(kind: Value) -> Value:
    """Whether nobody waits for a completion; types that don't exist are taken to be posted."""
    return (kind == RequestType.MEMORY_WRITE) | (kind >= RequestType.MESSAGE)


class Receiver(wiring.Component):
    """Holds one packet, from the cycle after its last beat until ``release``.

    ``payload`` is laid out as memory is: it begins in the upper half of a unit of 64 bits where the address is odd;
    ``shift`` brings the next unit down. Of a payload beyond `PAYLOAD` dwords the rest is passed over. ``spoilt``: the
    hard block takes the packet back, or it has not as many beats as its payload needs.

    ``begins`` is up in the cycle in which a non-posted request arrives, ``nonposted`` as long as it is here. With
    ``halt`` no packet begins; ``idle``: none is here, nor has begun.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "cq": In(CQ),
                "valid": Out(1),
                "descriptor": Out(CqDescriptor),
                "first_be": Out(4),
                "last_be": Out(4),
                "payload": Out(32 * (PAYLOAD + 2)),
                "spoilt": Out(1),
                "begins": Out(1),
                "nonposted": Out(1),
                "shift": In(1),
                "release": In(1),
                "halt": In(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        incoming = self.cq.payload
        arrives = Signal()
        beats = (_HEADER + PAYLOAD + DWORDS - 1) // DWORDS
        beat = Signal(range(beats + 1))
        latest = Signal.like(beat)
        taken_back = Signal()
        descriptor = CqDescriptor(incoming.data[: 32 * _HEADER])
        m.d.comb += [
            self.cq.ready.eq(~self.valid & ((beat != 0) | ~self.halt)),
            self.idle.eq(~self.valid & (beat == 0)),
            arrives.eq(self.cq.valid & self.cq.ready),
            self.begins.eq(arrives & (beat == 0) & ~is_posted(descriptor.kind)),
        ]
        with m.If(arrives):
            m.d.sync += [
                beat.eq(Mux(incoming.last, 0, Mux(beat == beats, beats, beat + 1))),
                latest.eq(beat),
                self.valid.eq(incoming.last),
                taken_back.eq(incoming.user.discontinue | (taken_back & (beat != 0))),
            ]
            with m.If(beat == 0):
                m.d.sync += [
                    self.descriptor.eq(descriptor),
                    self.first_be.eq(incoming.user.first_be),
                    self.last_be.eq(incoming.user.last_be),
                ]
            self._keep(m, beat, Mux(beat == 0, descriptor.address[0], self.descriptor.address[0]))
        with m.Elif(self.shift):
            m.d.sync += self.payload.eq(self.payload >> 64)
        with m.If(self.release):
            m.d.sync += [self.valid.eq(0), self.nonposted.eq(0)]
        with m.If(self.begins):
            m.d.sync += self.nonposted.eq(1)

        needed = Signal.like(latest)
        count = self.descriptor.count
        for number in range(1, beats):
            with m.If(count > DWORDS * number - _HEADER):
                m.d.comb += needed.eq(number)
        writes = self.descriptor.kind == RequestType.MEMORY_WRITE
        m.d.comb += self.spoilt.eq(taken_back | (writes & (latest != needed) & (count <= PAYLOAD)))
        return m

    def _keep(self, m: Module, beat: Signal, odd: Value) -> None:
        """Puts the payload's dwords of a beat in their places."""
        words = [self.cq.payload.data.word_select(lane, 32) for lane in range(DWORDS)]
        for place in range(PAYLOAD + 1):
            for shifted in range(2):
                number, lane = divmod(_HEADER + place - shifted, DWORDS)
                if 0 <= place - shifted < PAYLOAD:
                    with m.If((beat == number) & (odd == shifted)):
                        m.d.sync += self.payload.word_select(place, 32).eq(words[lane])
