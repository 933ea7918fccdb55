"""One master in front of the scheduler's bus and of what a shell adds to BAR0."""

from __future__ import annotations

from collections.abc import Mapping

from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..registers import Bus

__all__ = ["Split"]


class Split(wiring.Component):
    """Gives the shell's windows to the shell, and the rest to ``scheduler``.

    A master that has reads outstanding must not turn to another window.

    Parameters
    ----------
    windows
        Offsets in BAR0 of each, by the names of their ports: a power of two of bytes, and a multiple of it.
    """

    def __init__(self, windows: Mapping[str, range]) -> None:
        self._windows = windows
        super().__init__({"master": In(Bus()), "scheduler": Out(Bus()), **{name: Out(Bus()) for name in windows}})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        master = self.master
        inside = {
            name: master.address[len(window).bit_length() - 1 :] == window.start // len(window)
            for name, window in self._windows.items()
        }
        inside["scheduler"] = ~Cat(inside.values()).any()
        for name, here in inside.items():
            bus = getattr(self, name)
            asked = ("write", "address", "data", "strobe")
            m.d.comb += [getattr(bus, field).eq(getattr(master, field)) for field in asked]
            m.d.comb += bus.valid.eq(master.valid & here)
            with m.If(here):
                m.d.comb += master.ready.eq(bus.ready)
            with m.If(bus.answer_valid):
                m.d.comb += [master.answer_valid.eq(1), master.answer.eq(bus.answer)]
        return m
