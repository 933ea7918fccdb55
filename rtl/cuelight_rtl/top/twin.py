"""Top of the twin: the scheduler with its bus, clock and commit ports as plain signals."""

from __future__ import annotations

from amaranth.hdl import ClockDomain, Elaboratable, Module, Signal

from ..params import Params
from ..scheduler import Scheduler

__all__ = ["TwinTop"]


class TwinTop(Elaboratable):
    """The scheduler, with flat ports for Verilator."""

    def __init__(self, params: Params, *, rtl_hash: int = 0) -> None:
        self.params = params
        self.rtl_hash = rtl_hash
        self.clk = Signal()
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
        self.trace_head = Signal(64)
        self.trace_payload = Signal(64)
        self.trace_take = Signal()
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
        plain = [value for value in vars(self).values() if isinstance(value, Signal)]
        return plain + [signal for commit in self.commits for signal in commit.values()]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # A twin starts from initial values; a reset input would make Verilator evaluate most of the logic once more.
        m.domains.sync = sync = ClockDomain(reset_less=True)
        m.submodules.scheduler = scheduler = Scheduler(self.params, rtl_hash=self.rtl_hash)
        bus = scheduler.bus
        m.d.comb += [
            sync.clk.eq(self.clk),
            bus.valid.eq(self.req_valid),
            bus.write.eq(self.req_write),
            bus.address.eq(self.req_addr),
            bus.data.eq(self.req_data),
            bus.strobe.eq(self.req_strobe),
            self.req_ready.eq(bus.ready),
            self.rsp_valid.eq(bus.answer_valid),
            self.rsp_data.eq(bus.answer),
            scheduler.time_ns.eq(self.time_ns),
            scheduler.boot_nonce.eq(self.boot_nonce),
            self.idle.eq(scheduler.idle),
            self.poll_valid.eq(scheduler.poll_valid),
            self.irq_retire.eq(scheduler.irq_retire),
            self.irq_reject.eq(scheduler.irq_reject),
            self.irq_trace.eq(scheduler.irq_trace),
            self.trace_head.eq(scheduler.trace_head),
            self.trace_payload.eq(scheduler.trace_payload),
            scheduler.trace_take.eq(self.trace_take),
        ]
        for flat, port in zip(self.commits, scheduler.commits, strict=True):
            m.d.comb += [signal.eq(getattr(port, name)) for name, signal in flat.items()]
        return m
