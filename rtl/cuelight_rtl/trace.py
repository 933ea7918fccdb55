"""Event trace, reject FIFO and counters: what the device remembers of its commits."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, fifo, wiring
from amaranth.lib.wiring import In, Out

from .commit import CommitPort
from .params import Params
from .regmap import CommitKind, FifoRejectHead, FifoTraceHead, FifoTracePayload, FifoTraceState

__all__ = ["REJECT_DEPTH", "TRACE_DEPTH", "Counters", "Rejects", "Trace"]

REJECT_DEPTH = 64
TRACE_DEPTH = 256

UNTRACED = (
    CommitKind.OFFER,
    CommitKind.UNOFFER,
    CommitKind.TAKEN,
    CommitKind.CONFIG,
    CommitKind.CONFIG_IGNORED,
    CommitKind.STAGE_DONE_IGNORED,
    CommitKind.POP_IGNORED,
    CommitKind.COMPLETE_IGNORED,
)


class Event(data.Struct):
    """An entry of the trace: TRACE_HEAD, then TRACE_PAYLOAD."""

    head: FifoTraceHead
    payload: FifoTracePayload


class Trace(wiring.Component):
    """Queues the commits of several sources with their time; the order is kept within a source.

    ``pop`` takes the head off if ``pop_index`` names it; ``stale`` says that it did not.
    """

    def __init__(self, sources: int) -> None:
        self._sources = sources
        super().__init__(
            {
                "time_ns": In(64),
                "steps": In(CommitPort()).array(sources),
                "pop": In(1),
                "pop_index": In(32),
                "head": Out(Event),
                "state": Out(FifoTraceState),
                "stale": Out(1),
                "lost": Out(range(sources + 1)),
                "half_full": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = fifo.SyncFIFOBuffered(width=128, depth=TRACE_DEPTH)
        inputs = []
        for index, source in enumerate(self.steps):
            m.submodules[f"source_{index}"] = entry = fifo.SyncFIFOBuffered(width=128, depth=4)
            inputs.append(entry)
            event, step = Signal(Event, name=f"event_{index}"), source.step
            m.d.comb += [
                event.head.time_ns.eq(self.time_ns),
                event.head.kind.eq(step.kind),
                event.head.lane.eq(step.lane),
                event.head.stage.eq(step.stage),
                event.payload.id.eq(step.id),
                event.payload.detail.eq(step.detail),
                entry.w_data.eq(event),
                entry.w_en.eq(source.valid & ~Cat(step.kind == kind for kind in UNTRACED).any()),
            ]
        dropped = Signal()
        taken = Cat(entry.r_rdy for entry in inputs).any()
        for index, entry in enumerate(inputs):
            earlier = Cat(other.r_rdy for other in inputs[:index]).any() if index else 0
            with m.If(entry.r_rdy & ~earlier if index else entry.r_rdy):
                m.d.comb += [entry.r_en.eq(1), queue.w_data.eq(entry.r_data), queue.w_en.eq(queue.w_rdy)]
        overruns = [entry.w_en & ~entry.w_rdy for entry in inputs]
        m.d.comb += [
            dropped.eq(taken & ~queue.w_rdy),
            self.lost.eq(sum(overruns, start=dropped)),
            self.half_full.eq(queue.level >= TRACE_DEPTH // 2),
            self.idle.eq(~Cat(entry.level != 0 for entry in inputs).any()),
            self.state.held.eq(queue.level),
        ]
        hit = queue.r_rdy & (self.pop_index == self.state.index)
        with m.If(queue.r_rdy):
            m.d.comb += self.head.as_value().eq(queue.r_data)
        with m.If(self.pop):
            m.d.comb += [queue.r_en.eq(hit), self.stale.eq(~hit)]
        index = Signal(32)
        m.d.comb += self.state.index.eq(index)
        with m.If(queue.r_en):
            m.d.sync += index.eq(index + 1)
        return m


class Rejects(wiring.Component):
    """The reject FIFO."""

    step: In(CommitPort())
    pop: In(1)
    pop_index: In(32)
    head: Out(FifoRejectHead)
    stale: Out(1)
    lost: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = fifo.SyncFIFOBuffered(width=39, depth=REJECT_DEPTH)
        index = Signal(32)
        step, rejected = self.step.step, Signal()
        hit = queue.r_rdy & (self.pop_index == index)
        m.d.comb += [
            rejected.eq(self.step.valid & (step.kind == CommitKind.REJECT)),
            queue.w_data.eq(Cat(step.id, step.stage[:4], step.detail[:3])),
            queue.w_en.eq(rejected),
            self.lost.eq(rejected & ~queue.w_rdy),
        ]
        with m.If(queue.r_rdy):
            m.d.comb += [
                Cat(self.head.id, self.head.reason, self.head.page).eq(queue.r_data),
                self.head.index.eq(index),
                self.head.valid.eq(1),
            ]
        with m.If(self.pop):
            m.d.comb += [queue.r_en.eq(hit), self.stale.eq(~hit)]
        with m.If(queue.r_en):
            m.d.sync += index.eq(index + 1)
        return m


class Counters(wiring.Component):
    """Counts commits; every counter wraps."""

    def __init__(self, params: Params) -> None:
        lanes = params.lanes
        super().__init__(
            {
                "core": In(CommitPort()),
                "lanes": In(CommitPort()).array(lanes),
                "decision_cycles": In(data.ArrayLayout(12, lanes)),
                "reject_lost": In(1),
                "trace_lost": In(4),
                "stale_pops": In(4),
                "admitted": Out(32),
                "retired": Out(32),
                "rejected": Out(32),
                "rejects_lost": Out(32),
                "stage_done_ignored": Out(32),
                "completions_ignored": Out(32),
                "pops_ignored": Out(32),
                "config_ignored": Out(32),
                "passes": Out(32),
                "dispatches": Out(32),
                "rows": Out(32),
                "trace_losses": Out(32),
                "decision_cycles_sum": Out(64),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        step = self.core.step
        with m.If(self.core.valid):
            with m.Switch(step.kind):
                for kind, counter in (
                    (CommitKind.ADMIT, self.admitted),
                    (CommitKind.RETIRE, self.retired),
                    (CommitKind.REJECT, self.rejected),
                    (CommitKind.STAGE_DONE_IGNORED, self.stage_done_ignored),
                    (CommitKind.CONFIG_IGNORED, self.config_ignored),
                ):
                    with m.Case(kind):
                        m.d.sync += counter.eq(counter + 1)
                with m.Case(CommitKind.FORM):
                    m.d.sync += [
                        self.rows.eq(self.rows + step.detail[:10]),
                        self.passes.eq(self.passes + (step.detail != 0)),
                    ]
        missed_pop = self.core.valid & (step.kind == CommitKind.POP_IGNORED)
        dispatched = [port.valid & (port.step.kind == CommitKind.DISPATCH) for port in self.lanes]
        cycles = [Mux(now, self.decision_cycles[i], 0) for i, now in enumerate(dispatched)]
        ignored = Cat(port.valid & (port.step.kind == CommitKind.COMPLETE_IGNORED) for port in self.lanes).any()
        m.d.sync += [
            self.rejects_lost.eq(self.rejects_lost + self.reject_lost),
            self.completions_ignored.eq(self.completions_ignored + ignored),
            self.pops_ignored.eq(self.pops_ignored + self.stale_pops.any() + missed_pop),
            self.dispatches.eq(self.dispatches + sum(dispatched)),
            self.trace_losses.eq(self.trace_losses + self.trace_lost),
            self.decision_cycles_sum.eq(self.decision_cycles_sum + sum(cycles)),
        ]
        return m
