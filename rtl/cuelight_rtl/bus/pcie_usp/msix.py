"""MSI-X: the vector table in BAR2, and which vectors are pending.

Reference: PCI Express Base Specification 4.0, 7.7.2. The capability in the hard block must say: 4 vectors, table at
offset 0 of BAR2, pending bits at offset 0x800.
"""

import enum

from amaranth.hdl import Array, Cat, Const, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...encode import lowest
from ...registers import Bus
from .requester import Message

__all__ = ["PENDING_OFFSET", "VECTORS", "Msix", "Vector"]

PENDING_OFFSET = 0x800
"""In BAR2."""


class Vector(enum.IntEnum):
    """What is announced."""

    REJECT = 0
    """A command was refused, where none waited."""
    RETIREMENT = 1
    """A request has retired, where none waited."""
    FAULT = 2
    """A lane fell to POLL."""
    DISPATCH = 3
    """A dispatch waits in the poll window of a lane that is not in PUSH."""


VECTORS = len(Vector)


class _Entry(data.Struct):
    address: 64
    data: 32
    masked: 1
    reserved: 31


class Msix(wiring.Component):
    """Turns events into messages, each to the address that the host has written into the event's vector.

    An event of a vector that is masked, or while all are, is remembered; while MSI-X is not enabled there are none.
    Reads are answered in the cycle after.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "bus": In(Bus()),
                "events": In(VECTORS),
                "enable": In(1),
                "mask": In(1),
                "message": Out(Message()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus, message = self.bus, self.message
        table = Array(Signal(_Entry, name=f"vector_{vector}", init={"masked": 1}) for vector in range(VECTORS))
        pending = Signal(VECTORS)
        fit = Signal(VECTORS)
        chosen = lowest(m, fit, "chosen")
        m.d.comb += [
            fit.eq(pending & ~Cat(entry.masked for entry in table) & (self.enable & ~self.mask).replicate(VECTORS)),
            message.valid.eq(fit.any()),
            message.address.eq(Cat(Const(0, 2), table[chosen].address[2:])),
            message.data.eq(table[chosen].data),
        ]
        written = (message.taken << chosen)[:VECTORS]
        m.d.sync += pending.eq((pending & ~written) | (self.events & self.enable.replicate(VECTORS)))

        m.d.comb += bus.ready.eq(1)
        m.d.sync += [bus.answer_valid.eq(bus.valid & ~bus.write), bus.answer.eq(0)]
        with m.If(bus.address == PENDING_OFFSET):
            m.d.sync += bus.answer.eq(pending)
        for vector, entry in enumerate(table):
            for word, fields in enumerate(((entry.address[:32], entry.address[32:]), (entry.data, entry.masked))):
                with m.If(bus.address == 16 * vector + 8 * word):
                    padded = [Cat(field, Const(0, 32))[:32] for field in fields]
                    m.d.sync += bus.answer.eq(Cat(padded))
                    for half, field in enumerate(fields):
                        with m.If(bus.valid & bus.write & bus.strobe[4 * half : 4 * half + 4].all()):
                            m.d.sync += field.eq(bus.data[32 * half :])
        return m
