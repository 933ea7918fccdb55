"""Top of the benches on PCI Express: the board's, with what benches of the scheduler look at."""

from __future__ import annotations

from amaranth.hdl import Cat, Elaboratable, Module, Signal

from cuelight_rtl.build import sources_hash
from cuelight_rtl.commit import FIELDS
from cuelight_rtl.params import Params
from cuelight_rtl.top.pcie import PcieTop

from ..strobes import Strobes

__all__ = ["PcieBenchTop"]


class PcieBenchTop(Elaboratable):  # type: ignore[misc]
    """The board's top in a socket; ``bus`` ports show the transactions that reach the scheduler.

    Parameters
    ----------
    params
        Sizes of the scheduler.
    """

    def __init__(self, params: Params) -> None:
        self.pcie = PcieTop(params, rtl_hash=int(sources_hash()[:32], 16))
        self.clk = Signal()
        self.strobes = Strobes(len(self.pcie.scheduler.commits))
        self.bus_write = Signal()
        self.bus_address = Signal(16)
        self.bus_data = Signal(64)
        self.bus_strobe = Signal(8)
        self.bus_answer = Signal(64)
        self.boot_nonce = Signal(64)
        self.function_reset_done = Signal()

    @property
    def ports(self) -> list[Signal]:
        board = [signal for signal in self.pcie.ports if signal is not self.pcie.user_clk]
        plain = [signal for signal in vars(self).values() if isinstance(signal, Signal)]
        return [*board, *plain, *self.strobes.ports]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.pcie = self.pcie
        scheduler, bus = self.pcie.scheduler, self.pcie.scheduler.bus
        m.d.comb += [
            self.pcie.user_clk.eq(self.clk),
            *(getattr(self, f"bus_{name}").eq(getattr(bus, name)) for name in ("write", "address", "data", "strobe")),
            self.bus_answer.eq(bus.answer),
            self.boot_nonce.eq(scheduler.boot_nonce),
            self.function_reset_done.eq(self.pcie.cfg_flr_done[0]),
        ]
        self.strobes.connect(
            m,
            self.clk,
            valid=bus.valid,
            ready=bus.ready,
            answered=bus.answer_valid,
            idle=scheduler.idle,
            commits=[(port.valid, Cat(getattr(port, name) for name in FIELDS)) for port in scheduler.commits],
        )
        return m
