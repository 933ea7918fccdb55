"""The scheduler: rooms, wired.

============  =======================================================================
registers     bus transactions, the register bank
pages         half commands, attributes, offers
judge         the rules a command is held against
core          atomic steps on slots: commands, retirements, seating, forming passes
slots, queue  what is known of each slot, and the lists through them
seats         a lane group's seats, configuration and KV credit
passes        the passes of the groups: members, chunks
budget        what the pass that is being formed may still take in
lanes         passes on their way through the stages, and the lanes' dispatches
trace         event trace, reject FIFO, counters
============  =======================================================================
"""

from __future__ import annotations

from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .commit import CommitPort, connect_step
from .core import Core
from .dispatch import Dispatcher
from .lanes import Lanes
from .pages import Pages
from .params import Params
from .registers import Bus, Registers
from .regmap import CommitKind
from .trace import Counters, Rejects, Trace

__all__ = ["Scheduler"]


class Scheduler(wiring.Component):
    """The device behind its bus (docs/device.md).

    ``trace_head`` and ``trace_payload`` show the oldest event of the trace, zero if there is none; ``trace_take`` takes
    it off, beside the registers that do the same. ``commits`` are the commit ports in their order: core, lanes, pages.
    ``idle`` means that nothing changes without a new transaction. ``poll_valid`` shows which lanes' poll heads hold a
    dispatch.

    Parameters
    ----------
    params
        Sizes.
    rtl_hash
        128 bits that RTL_HASH shows.
    """

    def __init__(self, params: Params, *, rtl_hash: int = 0) -> None:
        self._params = params
        self._rtl_hash = rtl_hash
        super().__init__(
            {
                "bus": In(Bus()),
                "time_ns": In(64),
                "boot_nonce": In(64),
                "idle": Out(1),
                "poll_valid": Out(params.lanes),
                "irq_retire": Out(1),
                "irq_reject": Out(1),
                "irq_trace": Out(1),
                "trace_head": Out(64),
                "trace_payload": Out(64),
                "trace_take": In(1),
                "commits": Out(CommitPort()).array(params.lanes + 2),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        params = self._params
        m.submodules.pages = pages = Pages(params)
        m.submodules.lanes = all_lanes = Lanes(params)
        lanes = all_lanes.dispatchers
        m.submodules.core = core = Core(params, pages, all_lanes)
        m.submodules.trace = trace = Trace([2, 4] + [2] * params.lanes)
        m.submodules.rejects = rejects = Rejects()
        m.submodules.counters = counters = Counters(params)
        m.submodules.registers = registers = Registers(
            params, core, pages, all_lanes, trace, rejects, counters, self._rtl_hash
        )

        connect(m, flipped(self.bus), registers.bus)
        connect(m, registers.request, core.request)
        for index, source in enumerate((core.step, *(lane.step for lane in lanes), pages.step)):
            connect_step(m, source, self.commits[index])
        connect_step(m, core.step, rejects.step, counters.core)
        for index, lane in enumerate(lanes):
            connect_step(m, lane.step, counters.lanes[index])
            m.d.comb += counters.decision_cycles[index].eq(lane.decision_cycles)
        self._connect_trace(m, trace, core, lanes)
        m.d.comb += [
            pages.swept.eq(core.slots.swept),
            pages.sweep.eq(core.slots.sweep),
            trace.time_ns.eq(self.time_ns),
            all_lanes.time_ns.eq(self.time_ns),
            registers.time_ns.eq(self.time_ns),
            registers.boot_nonce.eq(self.boot_nonce),
            counters.reject_lost.eq(rejects.lost),
            counters.trace_lost.eq(trace.lost),
            counters.stale_pops.eq(Cat(trace.stale, rejects.stale, Cat(lane.stale for lane in lanes).any())),
            self.poll_valid.eq(Cat(lane.offered for lane in lanes)),
            self.irq_retire.eq(core.retired.valid),
            self.irq_reject.eq(rejects.head.valid),
            self.irq_trace.eq(trace.half_full),
            self.trace_head.eq(trace.head),
            self.trace_payload.eq(trace.payload),
            trace.take.eq(self.trace_take),
        ]
        m.d.comb += self.idle.eq(core.idle & registers.idle & trace.idle & pages.settled & ~all_lanes.active)
        return m

    def _connect_trace(self, m: Module, trace: Trace, core: Core, lanes: list[Dispatcher]) -> None:
        """The core, which can report in two cycles running; completions, one a cycle; each lane's dispatches."""
        completed = trace.steps[1]
        connect_step(m, core.step, trace.steps[0])
        for index, lane in enumerate(lanes):
            step = lane.step
            with m.If(step.valid & (step.kind == CommitKind.COMPLETE)):
                connect_step(m, step, completed)
            with m.Elif(step.valid):
                connect_step(m, step, trace.steps[2 + index])
