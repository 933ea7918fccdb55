"""One master in front of the scheduler's bus and of what a shell adds to BAR0."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..registers import Bus

__all__ = ["Split"]

_SHELL = 0xE000 >> 13


class Split(wiring.Component):
    """The last 8 KiB are the shell's. A master that has reads outstanding must not turn from one to the other."""

    def __init__(self) -> None:
        super().__init__(
            {
                "master": In(Bus()),
                "scheduler": Out(Bus()),
                "shell": Out(Bus()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        master = self.master
        for bus, here in (
            (self.shell, master.address[13:] == _SHELL),
            (self.scheduler, master.address[13:] != _SHELL),
        ):
            asked = ("write", "address", "data", "strobe")
            m.d.comb += [getattr(bus, name).eq(getattr(master, name)) for name in asked]
            m.d.comb += bus.valid.eq(master.valid & here)
            with m.If(here):
                m.d.comb += master.ready.eq(bus.ready)
            with m.If(bus.answer_valid):
                m.d.comb += [master.answer_valid.eq(1), master.answer.eq(bus.answer)]
        return m
