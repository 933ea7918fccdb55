"""Top of the benches: the twin's, with a reset, a time that follows the clock, and strobes to wait for."""

from __future__ import annotations

from amaranth.hdl import Cat, ClockDomain, Elaboratable, Module, Mux, ResetInserter, Signal

from cuelight_rtl.build import sources_hash
from cuelight_rtl.commit import FIELDS
from cuelight_rtl.model import NS_PER_CYCLE
from cuelight_rtl.params import Params
from cuelight_rtl.top.twin import TwinTop

from .strobes import Strobes

__all__ = ["BenchTop"]


class BenchTop(Elaboratable):  # type: ignore[misc]
    """The twin's top in a socket.

    What the twin does without, a synchronous reset, is added from outside. As in a bitstream it leaves memories alone.

    Parameters
    ----------
    params
        Sizes of the scheduler.
    """

    def __init__(self, params: Params) -> None:
        self.twin = TwinTop(params, rtl_hash=int(sources_hash()[:32], 16))
        self.rst = Signal()
        self.strobes = Strobes(len(self.twin.commits))

    @property
    def ports(self) -> list[Signal]:
        plain = [signal for signal in self.twin.ports if signal is not self.twin.time_ns]
        return [*plain, self.rst, *self.strobes.ports]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.twin = ResetInserter(self.rst)(self.twin)
        m.domains.bench = clock = ClockDomain(local=True, reset_less=True)
        m.d.comb += clock.clk.eq(self.twin.clk)
        m.d.bench += self.twin.time_ns.eq(Mux(self.rst, 0, self.twin.time_ns + NS_PER_CYCLE))
        twin = self.twin
        self.strobes.connect(
            m,
            twin.clk,
            valid=twin.req_valid,
            ready=twin.req_ready,
            answered=twin.rsp_valid,
            idle=twin.idle,
            commits=[(flat["valid"], Cat(flat[name] for name in FIELDS)) for flat in twin.commits],
        )
        return m
