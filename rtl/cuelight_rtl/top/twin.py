"""Top of the twin: the scheduler with its bus, clock and commit ports as plain signals."""

from __future__ import annotations

from amaranth import ClockDomain, ClockSignal, Elaboratable, Module, ResetSignal, Signal

from ..params import Params

__all__ = ["TwinTop"]


class TwinTop(Elaboratable):
    """The scheduler, with flat ports for Verilator."""

    def __init__(self, params: Params, *, rtl_hash: int = 0) -> None:
        self.params = params
        self.rtl_hash = rtl_hash
        self.clk = Signal()
        self.rst = Signal()
        self.req_valid = Signal()
        self.req_write = Signal()
        self.req_addr = Signal(16)
        self.req_data = Signal(64)
        self.req_strobe = Signal(8)
        self.req_ready = Signal()
        self.rsp_valid = Signal()
        self.rsp_data = Signal(64)
        self.time_ns = Signal(64)
        self.boot_nonce = Signal(64)
        self.idle = Signal()
        self.poll_valid = Signal(params.lanes)
        self.irq_retire = Signal()
        self.irq_reject = Signal()
        self.irq_trace = Signal()
        self.commits = [
            {
                name: Signal(width, name=f"commit_{name}_{index}")
                for name, width in (("valid", 1), ("kind", 5), ("lane", 3), ("stage", 8), ("id", 32), ("detail", 32))
            }
            for index in range(params.lanes + 2)
        ]

    @property
    def ports(self) -> list[Signal]:
        """Every port, for conversion to Verilog."""
        return [
            value
            for name, value in vars(self).items()
            if isinstance(value, Signal)
        ] + [signal for commit in self.commits for signal in commit.values()]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.sync = ClockDomain("sync")
        m.d.comb += [ClockSignal().eq(self.clk), ResetSignal().eq(self.rst)]
        m.d.comb += [self.req_ready.eq(1), self.idle.eq(1)]
        m.d.sync += [self.rsp_valid.eq(self.req_valid & ~self.req_write), self.rsp_data.eq(self.req_addr)]
        return m
