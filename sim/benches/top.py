"""Top of the benches: the twin's, with a reset, a time that follows the clock, and strobes to wait for."""

from __future__ import annotations

import re

from amaranth.back.verilog import convert
from amaranth.hdl import Cat, ClockDomain, Elaboratable, Module, Mux, ResetInserter, Signal

from cuelight_rtl.build import sources_hash
from cuelight_rtl.commit import FIELDS
from cuelight_rtl.model import NS_PER_CYCLE
from cuelight_rtl.params import Params
from cuelight_rtl.top.twin import TwinTop

__all__ = ["TOP", "verilog"]

TOP = "bench"
"""Name of the Verilog module."""


class BenchTop(Elaboratable):  # type: ignore[misc]
    """The twin's top in a socket.

    What the twin does without, a synchronous reset, is added from outside. As in a bitstream it leaves memories alone.

    A strobe rises in the low half of each clock cycle for which its condition holds. A bench that waits for one sleeps
    through all other cycles, which makes it several times as fast as one that looks at a signal in each cycle.

    Parameters
    ----------
    params
        Sizes of the scheduler.
    """

    def __init__(self, params: Params) -> None:
        self.twin = TwinTop(params, rtl_hash=int(sources_hash()[:32], 16))
        self.rst = Signal()
        self.accepted = Signal()
        """Strobe: a request is accepted."""
        self.ready = Signal()
        """Strobe: a request would be accepted."""
        self.answered = Signal()
        """Strobe: a read's data is there."""
        self.resting = Signal()
        """Strobe: nothing will change without a request."""
        self.committed = Signal()
        """Strobe: a commit port is valid."""
        self.commit_valid = Signal(len(self.twin.commits))
        self.commits = [Signal(sum(FIELDS.values()), name=f"commit_{port}") for port in range(len(self.twin.commits))]

    @property
    def ports(self) -> list[Signal]:
        plain = [signal for signal in self.twin.ports if signal is not self.twin.time_ns]
        strobes = [self.accepted, self.ready, self.answered, self.resting, self.committed]
        return [*plain, self.rst, *strobes, self.commit_valid, *self.commits]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.twin = ResetInserter(self.rst)(self.twin)
        m.domains.bench = clock = ClockDomain(local=True, reset_less=True)
        m.d.comb += clock.clk.eq(self.twin.clk)
        m.d.bench += self.twin.time_ns.eq(Mux(self.rst, 0, self.twin.time_ns + NS_PER_CYCLE))
        twin, low = self.twin, ~self.twin.clk
        m.d.comb += [
            self.accepted.eq(low & twin.req_valid & twin.req_ready),
            self.ready.eq(low & twin.req_ready),
            self.answered.eq(low & twin.rsp_valid),
            self.resting.eq(low & twin.idle),
            self.committed.eq(low & self.commit_valid.any()),
        ]
        m.d.comb += self.commit_valid.eq(Cat(flat["valid"] for flat in self.twin.commits))
        m.d.comb += [
            packed.eq(Cat(flat[name] for name in FIELDS))
            for packed, flat in zip(self.commits, self.twin.commits, strict=True)
        ]
        return m


def verilog(params: Params) -> str:
    """The Verilog that the benches simulate."""
    top = BenchTop(params)
    text: str = convert(top, name=TOP, ports=top.ports, emit_src=False, strip_internal_attrs=True)
    # Icarus runs a block only when an input of it changes, and Amaranth wants a change at the start: it is none where a
    # declaration gives the value, nor where a block reads nothing.
    text = re.sub(r"reg (\\\$auto\$verilog_backend\S+ ) = 0;", r"reg \1; initial \1 = 0;", text)
    return re.sub(r"always @\*(\n +\S+ = \d+'h[0-9a-f]+;)", r"initial\1", text)
