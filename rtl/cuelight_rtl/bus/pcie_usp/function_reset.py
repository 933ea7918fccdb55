"""Function-level reset: the handshake with the hard block."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["FunctionReset"]

_RESET_CYCLES = 16


class FunctionReset(wiring.Component):
    """Halts the endpoint while the hard block says ``in_process``, resets it once it is ``idle``, and says ``done``.

    The hard block itself is not reset: a packet that has begun must end first.
    """

    def __init__(self) -> None:
        super().__init__(
            {"in_process": In(1), "idle": In(1), "halt": Out(1), "reset": Out(1), "done": Out(1)},
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        left = Signal(range(_RESET_CYCLES))
        m.d.comb += self.halt.eq(self.in_process)
        with m.FSM():
            with m.State("RUN"):
                with m.If(self.in_process & self.idle):
                    m.d.sync += left.eq(_RESET_CYCLES - 1)
                    m.next = "RESET"
            with m.State("RESET"):
                m.d.comb += self.reset.eq(1)
                m.d.sync += left.eq(left - 1)
                with m.If(left == 0):
                    m.next = "DONE"
            with m.State("DONE"):
                m.d.comb += self.done.eq(1)
                with m.If(~self.in_process):
                    m.next = "RUN"
        return m
