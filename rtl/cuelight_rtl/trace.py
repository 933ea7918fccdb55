"""Event trace, reject FIFO and counters: what the device remembers of its commits."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, ValueLike
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
    CommitKind.REOFFERED,
    CommitKind.CONFIG,
    CommitKind.CONFIG_IGNORED,
    CommitKind.STAGE_DONE_IGNORED,
    CommitKind.POP_IGNORED,
    CommitKind.COMPLETE_IGNORED,
)


class Trace(wiring.Component):
    """Queues commits, in their order, with their time.

    Sources report side by side; one commit a cycle goes on to the queue. Commits that wait for it hold a ticket, given
    out in order of cycle and then of source. A source that has more to say than it can hold loses its latest commit,
    which is counted. ``pop`` takes the head off if ``pop_index`` names it; ``stale`` says that it did not. ``take``
    takes it off whatever its index, for a reader on the spot.

    Parameters
    ----------
    holds
        For each source, how many commits it can have waiting.
    """

    def __init__(self, holds: list[int]) -> None:
        self._holds = holds
        super().__init__(
            {
                "time_ns": In(64),
                "steps": In(CommitPort()).array(len(holds)),
                "pop": In(1),
                "pop_index": In(32),
                "take": In(1),
                "head": Out(FifoTraceHead),
                "payload": Out(FifoTracePayload),
                "state": Out(FifoTraceState),
                "stale": Out(1),
                "lost": Out(range(len(holds) + 2)),
                "half_full": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.heads = heads = fifo.SyncFIFOBuffered(width=64, depth=TRACE_DEPTH)
        m.submodules.payloads = payloads = fifo.SyncFIFOBuffered(width=64, depth=TRACE_DEPTH)
        tickets = range(2 * sum(self._holds))
        give = Signal(tickets)
        serve = Signal(tickets)
        leaving = Signal()
        held: list[Value] = []
        lost: list[Value] = []
        given: ValueLike = Const(0)
        for index, (step, holds) in enumerate(zip(self.steps, self._holds, strict=True)):
            comes = Signal(name=f"comes_{index}")
            m.d.comb += comes.eq(step.valid & ~Cat(step.kind == kind for kind in UNTRACED).any())
            taken: ValueLike = ~comes
            for place in range(holds):
                name = f"{index}_{place}"
                ticket = Signal(tickets, name=f"ticket_{name}")
                busy = Signal(name=f"held_{name}")
                head = Signal(FifoTraceHead, name=f"head_{name}")
                payload = Signal(FifoTracePayload, name=f"payload_{name}")
                leaves = busy & (ticket == serve)
                with m.If(leaves):
                    m.d.comb += [leaving.eq(1), heads.w_data.eq(head), payloads.w_data.eq(payload)]
                    m.d.sync += busy.eq(0)
                with m.If((~busy | leaves) & ~taken):
                    m.d.sync += [
                        busy.eq(1),
                        ticket.eq(give + given),
                        head.time_ns.eq(self.time_ns),
                        head.kind.eq(step.kind),
                        head.lane.eq(step.lane),
                        head.stage.eq(step.stage),
                        payload.id.eq(step.id),
                        payload.detail.eq(step.detail),
                    ]
                taken = taken | ~busy | leaves
                held.append(busy)
            lost.append(~taken)
            given = given + (comes & taken)
        m.d.sync += [give.eq(give + given), serve.eq(serve + leaving)]
        m.d.comb += [
            heads.w_en.eq(leaving),
            payloads.w_en.eq(leaving),
            self.lost.eq(sum(lost, start=leaving & ~heads.w_rdy)),
            self.half_full.eq(heads.level >= TRACE_DEPTH // 2),
            self.idle.eq(~Cat(held).any()),
            self.state.held.eq(heads.level),
        ]

        hit = heads.r_rdy & (self.pop_index == self.state.index)
        with m.If(heads.r_rdy):
            m.d.comb += [self.head.as_value().eq(heads.r_data), self.payload.as_value().eq(payloads.r_data)]
        with m.If(self.pop):
            m.d.comb += self.stale.eq(~hit)
        leaves = heads.r_rdy & (self.take | (self.pop & hit))
        m.d.comb += [heads.r_en.eq(leaves), payloads.r_en.eq(leaves)]
        index = Signal(32)
        m.d.comb += self.state.index.eq(index)
        with m.If(leaves):
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
        step, rejected = self.step, Signal()
        hit = queue.r_rdy & (self.pop_index == index)
        m.d.comb += [
            rejected.eq(step.valid & (step.kind == CommitKind.REJECT)),
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
                "pauses": Out(32),
                "decision_cycles_sum": Out(64),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        step = self.core
        with m.If(step.valid):
            with m.Switch(step.kind):
                for kind, counter in (
                    (CommitKind.ADMIT, self.admitted),
                    (CommitKind.RETIRE, self.retired),
                    (CommitKind.REJECT, self.rejected),
                    (CommitKind.STAGE_DONE_IGNORED, self.stage_done_ignored),
                    (CommitKind.CONFIG_IGNORED, self.config_ignored),
                    (CommitKind.PAUSE, self.pauses),
                ):
                    with m.Case(kind):
                        m.d.sync += counter.eq(counter + 1)
                with m.Case(CommitKind.PARK, CommitKind.CREDIT):
                    with m.If(step.stage == 0):
                        m.d.sync += self.stage_done_ignored.eq(self.stage_done_ignored + 1)
                with m.Case(CommitKind.FORM):
                    m.d.sync += [
                        self.rows.eq(self.rows + step.detail[:10]),
                        self.passes.eq(self.passes + (step.detail != 0)),
                    ]
        missed_pop = step.valid & (step.kind == CommitKind.POP_IGNORED)
        dispatched = [port.valid & (port.kind == CommitKind.DISPATCH) for port in self.lanes]
        cycles = [Mux(now, self.decision_cycles[i], 0) for i, now in enumerate(dispatched)]
        ignored = Cat(port.valid & (port.kind == CommitKind.COMPLETE_IGNORED) for port in self.lanes).any()
        m.d.sync += [
            self.rejects_lost.eq(self.rejects_lost + self.reject_lost),
            self.completions_ignored.eq(self.completions_ignored + ignored),
            self.pops_ignored.eq(self.pops_ignored + self.stale_pops.any() + missed_pop),
            self.dispatches.eq(self.dispatches + sum(dispatched)),
            self.trace_losses.eq(self.trace_losses + self.trace_lost),
            self.decision_cycles_sum.eq(self.decision_cycles_sum + sum(cycles)),
        ]
        return m
