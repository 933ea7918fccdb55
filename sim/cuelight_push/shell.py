"""A board's top, and what benches look at besides."""

from __future__ import annotations

from amaranth.back.verilog import convert
from amaranth.hdl import Cat, Elaboratable, Module, Signal

from cuelight_rtl.params import Params
from cuelight_rtl.top.pcie import PcieTop

__all__ = ["CLOCK_MHZ", "Shell", "verilog"]

CLOCK_MHZ = 2
"""Time passes quickly here: a microsecond has two cycles."""


class Shell(Elaboratable):
    """The whole endpoint with its scheduler, as it stands beside the hard block.

    ``modes`` are the lanes', two bits each, and ``causes``, four each; ``commit_valid`` has a bit for each lane.

    Parameters
    ----------
    params
        Sizes of the scheduler.
    """

    def __init__(self, params: Params) -> None:
        self._top = PcieTop(params, clock_mhz=CLOCK_MHZ)
        self.modes = Signal(2 * params.lanes)
        self.causes = Signal(4 * params.lanes)
        self.commit_valid = Signal(params.lanes)
        self.commit_kind = [Signal(5, name=f"commit_kind_{lane}") for lane in range(params.lanes)]
        self.commit_id = [Signal(32, name=f"commit_id_{lane}") for lane in range(params.lanes)]

    @property
    def ports(self) -> list[Signal]:
        """Every port, for conversion to Verilog."""
        plain = [self.modes, self.causes, self.commit_valid]
        return [*self._top.ports, *plain, *self.commit_kind, *self.commit_id]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.top = self._top
        steps = self._top.scheduler.commits[1:-1]
        m.d.comb += [
            self.modes.eq(Cat(mode.mode for mode in self._top.push.modes)),
            self.causes.eq(Cat(mode.cause for mode in self._top.push.modes)),
            self.commit_valid.eq(Cat(step.valid for step in steps)),
            *(kind.eq(step.kind) for kind, step in zip(self.commit_kind, steps, strict=True)),
            *(each.eq(step.id) for each, step in zip(self.commit_id, steps, strict=True)),
        ]
        return m


def verilog(shell: Shell) -> str:
    """A shell as Verilog; its module is `shell`."""
    text: str = convert(shell, name="shell", ports=shell.ports, emit_src=False, strip_internal_attrs=True)
    return text
