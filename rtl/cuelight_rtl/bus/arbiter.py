"""Several masters in front of the scheduler's bus."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..registers import Bus

__all__ = ["Arbiter"]

_ANSWER_CYCLES = 3
"""After its acceptance a read of the scheduler's bus is answered: what the proof `bus` says of `registers`."""


class Arbiter(wiring.Component):
    """Lets two masters take turns: who was served last comes second. No cycle is added."""

    def __init__(self) -> None:
        super().__init__(
            {
                "masters": In(Bus()).array(2),
                "bus": Out(Bus()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        first, second = self.masters
        latest = Signal()
        chosen = Signal()
        m.d.comb += [
            chosen.eq(second.valid & (~first.valid | ~latest)),
            self.bus.valid.eq(first.valid | second.valid),
        ]
        for index, master in enumerate(self.masters):
            with m.If(chosen == index):
                m.d.comb += master.ready.eq(self.bus.ready)
                m.d.comb += [
                    getattr(self.bus, name).eq(getattr(master, name)) for name in ("write", "address", "data", "strobe")
                ]
        with m.If(self.bus.valid & self.bus.ready):
            m.d.sync += latest.eq(chosen)

        asked = chosen
        for cycle in range(_ANSWER_CYCLES):
            before, asked = asked, Signal(name=f"asked_{cycle}")
            m.d.sync += asked.eq(before)
        for index, master in enumerate(self.masters):
            m.d.comb += [
                master.answer_valid.eq(self.bus.answer_valid & (asked == index)),
                master.answer.eq(self.bus.answer),
            ]
        return m
