"""What the endpoint counts."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from ... import regmap
from ...registers import Bus

__all__ = ["Counts"]

_REGISTERS = {
    regmap.Endpoint.SPOILT: "spoilt",
    regmap.Endpoint.DROPPED: "dropped",
    regmap.Endpoint.REFUSED: "refused",
    regmap.Endpoint.POISONED: "poisoned",
}


class Counts(wiring.Component):
    """Counters behind a bus; each counts the cycles in which the strobe of its name is up."""

    def __init__(self) -> None:
        super().__init__({"bus": In(Bus()), **{name: In(1) for name in _REGISTERS.values()}})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus = self.bus
        m.d.comb += bus.ready.eq(1)
        m.d.sync += [bus.answer_valid.eq(bus.valid & ~bus.write), bus.answer.eq(0)]
        counters = {offset: Signal(32, name=name) for offset, name in _REGISTERS.items()}
        for offset, counter in counters.items():
            m.d.sync += counter.eq(counter + getattr(self, _REGISTERS[offset]))
            with m.If(bus.address[3:8] == offset >> 3):
                half = 32 * (offset >> 2 & 1)
                m.d.sync += bus.answer[half : half + 32].eq(counter)
        return m
