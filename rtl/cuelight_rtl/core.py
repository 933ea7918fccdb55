"""The core: one atomic step after the other, on the rows of one slot.

Every step is the same short sequence: choose it (SELECT, STEP), find its slot (LOOKUP, where only a seat is known),
read the slot's rows (FETCH), weigh a chunk (WEIGH), change the rows (EXECUTE), and append the slot to a second list
where it moves between lists (SECOND). Requests of the bus go first between any two steps; then come the groups in turn.

========  ==========================================================
hand      the slot in hand, and what steps are written with
commands  requests of the bus: commands, STAGE_DONE, PARK, CREDIT, pops
control   requests of the bus: control writes
work      a group's own work: loop points, parking, pausing, seating
forming   a group's own work: the next pass
========  ==========================================================
"""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .commands import execute_command, execute_credit, execute_park, execute_pop, execute_stage_done
from .commit import CommitPort, report
from .connect import connect
from .control import execute_config
from .encode import lowest
from .forming import execute_bind, execute_chunk, weigh
from .hand import Hand, Job, RequestKind, RequestPort, Step
from .lanes import Lanes
from .pages import Pages
from .params import TIERS, Params
from .queue import ListOp
from .regmap import CommitKind, FifoRetireHead, RetireReason
from .work import (
    begin_step,
    execute_advance,
    execute_park_seated,
    execute_pause,
    execute_retire_queued,
    execute_retire_seated,
    execute_seat,
)

__all__ = ["Core"]

REQUESTS = {
    Step.COMMAND: execute_command,
    Step.STAGE_DONE: execute_stage_done,
    Step.RETIRE_POP: execute_pop,
    Step.CONFIG: execute_config,
    Step.PARK: execute_park,
    Step.CREDIT: execute_credit,
}
WORK = {
    Step.RETIRE_SEATED: execute_retire_seated,
    Step.RETIRE_QUEUED: execute_retire_queued,
    Step.ADVANCE: execute_advance,
    Step.PAUSE: execute_pause,
    Step.SEAT: execute_seat,
    Step.BIND: execute_bind,
    Step.CHUNK: execute_chunk,
    Step.PARK_SEATED: execute_park_seated,
}


class Core(wiring.Component):
    """Carries out requests and background work (docs/device.md §3–§6)."""

    def __init__(self, params: Params, pages: Pages, lanes: Lanes) -> None:
        self._params = params
        super().__init__(
            {
                "request": In(RequestPort()),
                "active": Out(16),
                "stage_count": Out(8, init=params.stages),
                "min_seats": Out(data.ArrayLayout(9, TIERS)),
                "min_rows": Out(data.ArrayLayout(10, TIERS)),
                "seat_floor": Out(data.ArrayLayout(9, TIERS)),
                "kv_floor": Out(data.ArrayLayout(16, TIERS)),
                "retired": Out(FifoRetireHead),
                "step": Out(CommitPort()),
                "idle": Out(1),
            }
        )
        self._hand = Hand(params, self, pages, lanes)
        self.slots = self._hand.slots
        self.seats = self._hand.seats
        self.passes = self._hand.passes
        self.chunks = self._hand.chunks

    def elaborate(self, platform: object) -> Module:
        m = Module()
        hand = self._hand
        connect(m, hand)
        with m.FSM() as fsm:
            with m.State("SELECT"):
                self._select(m)
            with m.State("STEP"):
                begin_step(m, hand)
            with m.State("LOOKUP"):
                hand.fetch(m, hand.seat_read.data)
            with m.State("FETCH"):
                with m.If(hand.current == Step.CHUNK):
                    m.next = "WEIGH"
                with m.Else():
                    m.next = "EXECUTE"
            with m.State("WEIGH"):
                weigh(m, hand)
                m.next = "EXECUTE"
            with m.State("EXECUTE"):
                m.next = "SELECT"
                self._execute(m)
            with m.State("SECOND"):
                m.next = "SELECT"
                self._append(m)
                # A job goes on at once: by now the seats' summaries have settled.
                with m.If((hand.job != Job.NONE) & ~self.request.valid):
                    m.next = "STEP"
        quiet = fsm.ongoing("SELECT") & ~hand.wanted.any() & ~hand.show_due & ~self.request.valid
        was_quiet = Signal()
        # Summaries of the seats are registered: only a second quiet cycle is rest.
        m.d.sync += was_quiet.eq(quiet)
        m.d.comb += self.idle.eq(quiet & was_quiet & self.slots.swept)
        return m

    def _select(self, m: Module) -> None:
        """A request of the bus; else what was begun; else the next group that has work."""
        hand, request = self._hand, self.request
        ahead = hand.wanted & ~((2 << hand.group) - 1)[: self._params.lanes]
        after, first = lowest(m, ahead, "after"), lowest(m, hand.wanted, "first")
        oldest_retired = hand.lists.heads[hand.lists.retired]
        with m.If(~self.slots.swept):
            pass
        with m.Elif(request.valid):
            m.d.sync += hand.current.eq(request.kind)
            with m.Switch(request.kind):
                with m.Case(RequestKind.RETIRE_POP):
                    hand.fetch(m, oldest_retired)
                with m.Case(RequestKind.CONFIG):
                    m.next = "EXECUTE"
                with m.Default():
                    hand.fetch(m, request.command.id[: self._params.slot_bits])
        with m.Elif(hand.show_due):
            m.d.sync += hand.current.eq(Step.SHOW_RETIRED)
            hand.fetch(m, oldest_retired)
        with m.Elif(hand.job != Job.NONE):
            m.next = "STEP"
        with m.Elif(hand.wanted.any()):
            m.d.sync += hand.group.eq(Mux(ahead.any(), after, first))
            m.next = "STEP"

    def _execute(self, m: Module) -> None:
        hand = self._hand
        with m.Switch(hand.current):
            for step, execute in REQUESTS.items():
                with m.Case(step):
                    m.d.comb += self.request.done.eq(1)
                    execute(m, hand)
            for step, execute in WORK.items():
                with m.Case(step):
                    execute(m, hand)
            with m.Case(Step.SHOW_RETIRED):
                m.d.sync += [
                    self.retired.id.eq(hand.id),
                    self.retired.reason.eq(self.slots.owner.reason),
                    self.retired.index.eq(hand.retire_index),
                    self.retired.valid.eq(1),
                ]

    def _append(self, m: Module) -> None:
        """Second half of a move between lists."""
        hand, owner = self._hand, self.slots.owner
        with m.If(hand.current == Step.PAUSE):
            hand.relink(m, ListOp.PUSH_FRONT, hand.waiting_list(owner.tier, hand.group))
        with m.Else():
            hand.relink(m, ListOp.PUSH, hand.lists.retired)
        with m.If(hand.current == Step.COMMAND):
            reason = RetireReason.CANCELLED
            report(m, self.step, CommitKind.RETIRE, lane=owner.group, stage=reason, id=hand.id, detail=0x100)
