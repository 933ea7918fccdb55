"""Top of boards on PCI Express: the scheduler behind the hard block of an UltraScale+ device."""

from __future__ import annotations

from amaranth.hdl import Cat, ClockDomain, DomainRenamer, Elaboratable, Module, Shape, Signal, Value
from amaranth.lib import data, wiring

from .. import regmap
from ..bus.arbiter import Arbiter
from ..bus.pcie_usp.completer import Completer
from ..bus.pcie_usp.counts import Counts
from ..bus.pcie_usp.function_reset import FunctionReset
from ..bus.pcie_usp.push import Push
from ..bus.pcie_usp.streams import DWORDS, CcUser, CqUser, LocalError, RcUser, RqUser
from ..bus.split import Split
from ..params import Params
from ..scheduler import Scheduler

__all__ = ["PcieTop"]

_MASTERING = 2
"""Bit of cfg_function_status: the host lets the function master."""
_WINDOWS = {"push": range(regmap.PUSH, 0xF000), "counts": range(regmap.ENDPOINT, 0x1_0000)}


class _Stream:
    """A stream of the hard block, as flat ports with its names."""

    def __init__(self, name: str, user: type[data.Struct]) -> None:
        self.data = Signal(32 * DWORDS, name=f"{name}_tdata")
        self.keep = Signal(DWORDS, name=f"{name}_tkeep")
        self.last = Signal(name=f"{name}_tlast")
        self.user = Signal(Shape.cast(user).width, name=f"{name}_tuser")
        self.valid = Signal(name=f"{name}_tvalid")
        self.ready = Signal(name=f"{name}_tready")

    @property
    def ports(self) -> list[Signal]:
        return list(vars(self).values())

    def connect(self, m: Module, stream: wiring.PureInterface, *, outgoing: bool) -> None:
        """Joins it to a stream of ours, which goes to the hard block or comes from there."""
        pairs = [(getattr(self, name), stream.payload[name]) for name in ("data", "keep", "last", "user")]
        pairs += [(self.valid, stream.valid), (stream.ready, self.ready)]
        for flat, ours in pairs:
            target, value = (flat, ours) if outgoing else (ours, flat)
            m.d.comb += Value.cast(target).eq(Value.cast(value))


class PcieTop(Elaboratable):
    """The device for the hard block PCIE4, with the names of its ports (AMD PG213).

    The hard block must be configured for one function, 256 bits, dword alignment, no straddle and no parity, BAR0 of
    64 KiB and BAR2 of 64 KiB at most, and to drop poisoned writes. ``user_reset`` is up while the link is down, and in
    a hot reset.

    Parameters
    ----------
    params
        Sizes of the scheduler.
    rtl_hash
        128 bits that RTL_HASH shows.
    clock_mhz
        Frequency of user_clk, a divisor of 1000.
    """

    def __init__(self, params: Params, *, rtl_hash: int = 0, clock_mhz: int = 250) -> None:
        self._clock_mhz = clock_mhz
        self.scheduler = Scheduler(params, rtl_hash=rtl_hash)
        self.push = Push(params, tick_cycles=clock_mhz)
        self.user_clk = Signal()
        self.user_reset = Signal()
        self.cq = _Stream("m_axis_cq", CqUser)
        self.cc = _Stream("s_axis_cc", CcUser)
        self.rq = _Stream("s_axis_rq", RqUser)
        self.rc = _Stream("m_axis_rc", RcUser)
        self.pcie_cq_np_req = Signal(2)
        self.pcie_cq_np_req_count = Signal(6)
        self.cfg_flr_in_process = Signal(4)
        self.cfg_flr_done = Signal(4)
        self.cfg_local_error_out = Signal(5)
        self.cfg_local_error_valid = Signal()
        self.cfg_function_status = Signal(16)
        self.cfg_max_payload = Signal(2)
        self.cfg_interrupt_msix_enable = Signal(4)
        self.cfg_interrupt_msix_mask = Signal(4)
        self.pcie_rq_seq_num0 = Signal(6)
        self.pcie_rq_seq_num_vld0 = Signal()
        self.pcie_rq_seq_num1 = Signal(6)
        self.pcie_rq_seq_num_vld1 = Signal()

    @property
    def ports(self) -> list[Signal]:
        """Every port, for conversion to Verilog."""
        plain = [value for value in vars(self).values() if isinstance(value, Signal)]
        return plain + [port for stream in (self.cq, self.cc, self.rq, self.rc) for port in stream.ports]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.scheduler = scheduler = self.scheduler
        m.submodules.completer = completer = Completer()
        m.submodules.split = split = Split(_WINDOWS)
        m.submodules.arbiter = arbiter = Arbiter()
        m.submodules.counts = counts = Counts()
        m.submodules.push = push = self.push
        halt = Signal()
        m.d.comb += [completer.halt.eq(halt), push.halt.eq(halt)]
        self._connect_resets(m, idle=completer.idle & push.idle, halt=halt)
        self.cq.connect(m, completer.cq, outgoing=False)
        self.cc.connect(m, completer.cc, outgoing=True)
        wiring.connect(m, completer.registers, split.master)
        wiring.connect(m, split.scheduler, arbiter.masters[0])
        wiring.connect(m, split.counts, counts.bus)
        wiring.connect(m, split.push, push.registers)
        wiring.connect(m, completer.table, push.table)
        wiring.connect(m, push.bus, arbiter.masters[1])
        wiring.connect(m, arbiter.bus, scheduler.bus)
        m.d.comb += [
            self.pcie_cq_np_req.eq(completer.np_req),
            completer.np_req_count.eq(self.pcie_cq_np_req_count),
            *(getattr(counts, name).eq(getattr(completer, name)) for name in ("spoilt", "dropped", "refused")),
            counts.poisoned.eq(
                self.cfg_local_error_valid & (self.cfg_local_error_out == LocalError.POISONED_WRITE_DROPPED)
            ),
        ]
        m.d.sync += scheduler.time_ns.eq(scheduler.time_ns + 1000 // self._clock_mhz)
        self._connect_push(m)
        return m

    def _connect_push(self, m: Module) -> None:
        scheduler, push = self.scheduler, self.push
        self.rq.connect(m, push.rq, outgoing=True)
        self.rc.connect(m, push.rc, outgoing=False)
        steps = scheduler.commits[1:-1]
        m.d.comb += [
            push.poll_valid.eq(scheduler.poll_valid),
            push.hit.eq(Cat(step.valid & (step.kind == regmap.CommitKind.REOFFERED) for step in steps)),
            push.irq_reject.eq(scheduler.irq_reject),
            push.irq_retire.eq(scheduler.irq_retire),
            push.mastering.eq(self.cfg_function_status[_MASTERING]),
            push.max_payload.eq(self.cfg_max_payload),
            push.msix_enable.eq(self.cfg_interrupt_msix_enable[0]),
            push.msix_mask.eq(self.cfg_interrupt_msix_mask[0]),
            push.departures[0].valid.eq(self.pcie_rq_seq_num_vld0),
            push.departures[0].number.eq(self.pcie_rq_seq_num0),
            push.departures[1].valid.eq(self.pcie_rq_seq_num_vld1),
            push.departures[1].number.eq(self.pcie_rq_seq_num1),
        ]

    def _connect_resets(self, m: Module, *, idle: Value, halt: Value) -> None:
        """``sync`` is reset with the link and with the function, ``link`` with the link, ``ever`` never."""
        m.domains.sync = sync = ClockDomain()
        m.domains.link = link = ClockDomain()
        m.domains.ever = ever = ClockDomain(reset_less=True)
        m.submodules.function_reset = function_reset = DomainRenamer("link")(FunctionReset())
        m.d.comb += [
            *(domain.clk.eq(self.user_clk) for domain in (sync, link, ever)),
            link.rst.eq(self.user_reset),
            sync.rst.eq(self.user_reset | function_reset.reset),
            function_reset.in_process.eq(self.cfg_flr_in_process[0]),
            function_reset.idle.eq(idle),
            halt.eq(function_reset.halt),
            self.cfg_flr_done[0].eq(function_reset.done),
        ]
        # Cycles since the bitstream was loaded: no two resets end in the same one.
        cycles = Signal(64)
        m.d.ever += cycles.eq(cycles + 1)
        with m.If(sync.rst):
            m.d.ever += self.scheduler.boot_nonce.eq(cycles)
