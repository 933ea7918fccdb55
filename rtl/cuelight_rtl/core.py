"""The core: one atomic step after the other, on the row of one slot.

Every step is the same short sequence: choose it (SELECT, STEP), find its slot (LOOKUP, where only a seat is known),
read the slot's rows (FETCH), change them (EXECUTE), and append it to a second list where it moves between lists
(SECOND). Commands from the bus go first between any two steps; then come the groups in turn.
"""

import enum

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from .commit import CommitPort, report
from .dispatch import Dispatcher
from .encode import lowest
from .judge import Judge, Verdict
from .pages import AttrState, Pages
from .params import TIERS, Params
from .passes import Pass
from .queue import ListOp, Lists
from .regmap import (
    CONTROL,
    CommitKind,
    Control,
    FifoRetireHead,
    Group,
    PageSchedAttr,
    PageSchedCmd,
    RetireReason,
)
from .seats import Seats
from .slots import Life, Owner, Slots, Work

__all__ = ["Core", "RequestKind", "RequestPort"]

ROWS_MAX = 512
ROWS_MARGIN = 16
"""A pass has room for two smallest chunks beside a full house that decodes."""


class RequestKind(enum.IntEnum):
    """What the bus asks of the core."""

    COMMAND = 0
    STAGE_DONE = 1
    RETIRE_POP = 2
    CONFIG = 3


class RequestPort(wiring.Signature):
    """A write that takes a step of the core; ``done`` rises in the cycle in which it takes effect."""

    def __init__(self) -> None:
        super().__init__(
            {
                "valid": Out(1),
                "done": In(1),
                "kind": Out(RequestKind),
                "page": Out(3),
                "command": Out(PageSchedCmd),
                "attr": Out(PageSchedAttr),
                "attr_state": Out(AttrState),
                "offset": Out(16),
                "value": Out(32),
            }
        )


class Step(enum.IntEnum):
    """What EXECUTE does."""

    COMMAND = 0
    STAGE_DONE = 1
    RETIRE_POP = 2
    CONFIG = 3
    SHOW_RETIRED = 4
    RETIRE_SEATED = 5
    RETIRE_QUEUED = 6
    ADVANCE = 7
    SEAT = 8
    CHUNK = 9


class Job(enum.IntEnum):
    """What was begun for the current group and is finished before other groups' work."""

    NONE = 0
    LOOP = 1
    FORM = 2


class Core(wiring.Component):
    """Carries out commands and background work (docs/device.md §3–§6)."""

    def __init__(self, params: Params, pages: Pages, dispatchers: list[Dispatcher]) -> None:
        self._params = params
        self._pages = pages
        self._dispatchers = dispatchers
        self.slots = Slots(params)
        self.lists = Lists(params)
        self.seats = [Seats(params) for _ in range(params.lanes)]
        self.passes = [Pass(params) for _ in range(params.lanes)]
        super().__init__(
            {
                "request": In(RequestPort()),
                "active": Out(16),
                "stage_count": Out(8, init=Control.STAGE_COUNT_RESET if params.stages == 128 else params.stages),
                "retired": Out(FifoRetireHead),
                "step": Out(CommitPort()),
                "idle": Out(1),
            }
        )

        lanes, bits = params.lanes, params.slot_bits
        self._current = Signal(Step)
        self._job = Signal(Job)
        self._group = Signal(range(max(lanes, 2)))
        self._target = Signal(3)
        self._slot = Signal(bits)
        self._seat = Signal(8)
        self._advancing = Signal()
        self._select = Signal(5)
        self._walk = Signal(TIERS)
        self._walk_tier = Signal(2)
        self._cursor = Signal(bits)
        self._cursor_valid = Signal()
        self._retire_index = Signal(32)

    def _of(self, rooms: list[wiring.Component], name: str, index: Value) -> Value:
        """Port ``name`` of the room of group ``index``."""
        return Array(getattr(room, name) for room in rooms)[index]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.slots = self.slots
        m.submodules.lists = self.lists
        for group, (seats, pass_) in enumerate(zip(self.seats, self.passes, strict=True)):
            m.submodules[f"seats_{group}"] = seats
            m.submodules[f"pass_{group}"] = pass_
        m.submodules.seat_map = seat_map = memory.Memory(
            shape=self._params.slot_bits, depth=self._params.lanes * self._params.seats, init=[]
        )
        self._seat_read, self._seat_write = seat_map.read_port(), seat_map.write_port()
        self._wire_groups(m)
        self._wire_rows(m)

        with m.FSM() as fsm:
            with m.State("SELECT"):
                self._select_step(m)
            with m.State("STEP"):
                self._begin_step(m)
            with m.State("LOOKUP"):
                self._fetch(m, self._seat_read.data)
            with m.State("FETCH"):
                m.next = "EXECUTE"
            with m.State("EXECUTE"):
                m.next = "SELECT"
                self._execute(m)
            with m.State("SECOND"):
                self._second(m)
                m.next = "SELECT"
        quiet = fsm.ongoing("SELECT") & ~self._wanted.any() & ~self._show_due & ~self.request.valid
        was_quiet = Signal()
        # Summaries of the seats are registered: only a second quiet cycle is rest.
        m.d.sync += was_quiet.eq(quiet)
        m.d.comb += self.idle.eq(quiet & was_quiet & self.slots.swept)
        return m

    # -------------------------------------------------------------------------------------------- wiring

    def _wire_groups(self, m: Module) -> None:
        """Rooms of the groups: strobes reach the room of `_target`, state comes from the room of `_group`."""
        params = self._params
        self._strobes = {
            name: Signal(name=name)
            for name in (
                *("take", "turn", "leave", "mark", "enqueue", "dequeue", "reset_begin", "reset_end"),
                *("credit_take", "credit_give", "set_limit", "set_rows", "set_blocks"),
                *("plan", "add", "form", "end", "loop", "drop", "set_sequence"),
            )
        }
        rooms = {"plan": "pass", "add": "pass", "form": "pass", "end": "pass"}
        rooms |= {"loop": "lane", "drop": "lane", "set_sequence": "lane"}
        self._blocks = Signal(16)
        self._wanted = Signal(params.lanes)
        self._waiting = [Signal(TIERS, name=f"waiting_{g}") for g in range(params.lanes)]
        self._can_seat = Signal(params.lanes)
        request = self.request
        m.d.comb += self._target.eq(self._group)
        for group in range(params.lanes):
            seats, pass_, lane = self.seats[group], self.passes[group], self._dispatchers[group]
            for name, strobe in self._strobes.items():
                room = {"pass": pass_, "lane": lane}.get(rooms.get(name, ""), seats)
                m.d.comb += getattr(room, name).eq(strobe & (self._target == group))
            waiting = self.lists.filled[self.lists.waiting(group, 0) :][:TIERS]
            m.d.comb += [
                self._waiting[group].eq(waiting),
                self._can_seat[group].eq(seats.free_any & waiting.any() & ~seats.resetting),
                self._wanted[group].eq(
                    seats.resetting | lane.due | self._can_seat[group] | (~pass_.alive & (seats.seated_count != 0))
                ),
                seats.seat.eq(self._seat),
                seats.finished.eq(pass_.finished),
                seats.blocks.eq(self._blocks),
                seats.value.eq(request.value),
                pass_.decoding.eq(seats.decoding),
                pass_.decoding_count.eq(seats.decoding_count),
                pass_.row_limit.eq(seats.rows),
                pass_.select.eq(self._select),
                pass_.finish.eq(lane.finish),
                pass_.finish_seats.eq(lane.finish_seats),
                lane.stage_count.eq(self.stage_count),
                lane.planned.eq(pass_.plan),
                lane.start.eq(pass_.form & (pass_.rows != 0)),
                lane.binds.eq(pass_.binds),
                lane.samples.eq(pass_.samples),
                lane.rows.eq(pass_.rows),
                lane.number.eq(pass_.number),
                lane.count.eq(pass_.count),
                lane.in_pass.eq(pass_.alive),
                lane.resetting.eq(seats.resetting),
                lane.rest.eq(seats.vacant),
                lane.value.eq(request.value),
            ]

    def _wire_rows(self, m: Module) -> None:
        """The slot in hand, and what is written back to it."""
        self._owner_next = Signal(Owner)
        self._work_next = Signal(Work)
        slots, lists = self.slots, self.lists
        m.d.comb += [
            slots.slot.eq(self._slot),
            lists.slot.eq(self._slot),
            slots.fetch.eq(self._slot),
            lists.fetch.eq(slots.fetch),
            slots.next_owner.eq(self._owner_next),
            slots.next_work.eq(self._work_next),
            self._owner_next.eq(slots.owner),
            self._work_next.eq(slots.work),
            self._blocks.eq(slots.work.blocks),
            self._seat_read.addr.eq(Cat(self._of(self.seats, "leaving_seat", self._group), self._group)),
            self._seat_write.addr.eq(Cat(self._seat[: self._params.seat_bits], self._group)),
            self._seat_write.data.eq(self._slot),
        ]
        self._show_due = Signal()
        m.d.comb += self._show_due.eq(lists.filled[lists.retired] & ~self.retired.valid)

    def _fetch(self, m: Module, slot: Value) -> None:
        m.d.comb += self.slots.fetch.eq(slot)
        m.d.sync += self._slot.eq(slot)
        m.next = "FETCH"

    def _list(self, m: Module, op: ListOp, index: Value | int) -> None:
        m.d.comb += [self.lists.op.eq(op), self.lists.list.eq(index)]

    def _waiting_list(self, tier: Value, group: Value) -> Value:
        return Cat(tier[:2], group)

    def _prefilling_list(self, tier: Value, group: Value) -> Value:
        return self._params.lanes * TIERS + Cat(tier[:2], group)

    def _strobe(self, m: Module, *names: str) -> None:
        m.d.comb += [self._strobes[name].eq(1) for name in names]

    @property
    def _id(self) -> Value:
        """Id of the slot in hand."""
        return Cat(self._slot, Signal(16 - len(self._slot)), self.slots.owner.epoch)

    # ----------------------------------------------------------------------------------------- choosing

    def _select_step(self, m: Module) -> None:
        request, lists = self.request, self.lists
        ahead = self._wanted & ~((2 << self._group) - 1)[: self._params.lanes]
        after, first = lowest(m, ahead, "after"), lowest(m, self._wanted, "first")
        with m.If(~self.slots.swept):
            pass
        with m.Elif(self.request.valid):
            m.d.sync += self._current.eq(request.kind)
            with m.Switch(request.kind):
                with m.Case(RequestKind.RETIRE_POP):
                    self._fetch(m, lists.heads[lists.retired])
                with m.Case(RequestKind.CONFIG):
                    m.next = "EXECUTE"
                with m.Default():
                    self._fetch(m, request.command.id[: self._params.slot_bits])
        with m.Elif(self._show_due):
            m.d.sync += self._current.eq(Step.SHOW_RETIRED)
            self._fetch(m, lists.heads[lists.retired])
        with m.Elif(self._job != Job.NONE):
            m.next = "STEP"
        with m.Elif(self._wanted.any()):
            m.d.sync += self._group.eq(Mux(ahead.any(), after, first))
            m.next = "STEP"

    def _begin_step(self, m: Module) -> None:
        """The current group's next step, highest work first (docs/device.md §6)."""
        group, lists, passes = self._group, self.lists, self.passes
        alive = self._of(passes, "alive", group)
        leaving = self._of(self.seats, "leaving_any", group)
        waiting = Array(self._waiting)[group]
        head_tier = lowest(m, waiting, "head_tier")
        walk_tier = lowest(m, self._walk, "walk_tier")
        entry = self._of(passes, "entry", group)
        number = self._of(passes, "number", group)
        head = lists.heads[self._waiting_list(head_tier, group)]

        def retire_seated() -> None:
            m.d.sync += [
                self._seat.eq(self._of(self.seats, "leaving_seat", group)),
                self._current.eq(Step.RETIRE_SEATED),
            ]
            m.next = "LOOKUP"

        m.next = "SELECT"
        with m.If(self._of(self.seats, "resetting", group)):
            with m.If(leaving):
                retire_seated()
            with m.Elif(waiting.any()):
                m.d.sync += self._current.eq(Step.RETIRE_QUEUED)
                self._fetch(m, head)
            with m.Else():
                self._strobe(m, "reset_end")
                report(m, self.step, CommitKind.GROUP_READY, lane=group)
        with m.Elif(self._job == Job.LOOP):
            with m.If(leaving & ~self._advancing):
                retire_seated()
            with m.Elif(self._select != self._of(passes, "count", group)):
                m.d.sync += self._advancing.eq(1)
                with m.If(self._of(self.seats, "seated", group).bit_select(entry.seat[: self._params.seat_bits], 1)):
                    m.d.sync += [self._seat.eq(entry.seat), self._current.eq(Step.ADVANCE)]
                    self._fetch(m, entry.slot)
                with m.Else():
                    m.d.sync += self._select.eq(self._select + 1)
            with m.Else():
                self._strobe(m, "end")
                m.d.sync += self._job.eq(Job.NONE)
        with m.Elif(self._job == Job.FORM):
            with m.If((self._of(passes, "grain", group) != 0) & self._walk.any()):
                m.d.sync += [self._current.eq(Step.CHUNK), self._walk_tier.eq(walk_tier)]
                self._fetch(
                    m, Mux(self._cursor_valid, self._cursor, lists.heads[self._prefilling_list(walk_tier, group)])
                )
            with m.Else():
                self._strobe(m, "form")
                m.d.sync += self._job.eq(Job.NONE)
                report(
                    m,
                    self.step,
                    CommitKind.FORM,
                    lane=group,
                    stage=self._of(passes, "count", group),
                    id=number,
                    detail=self._of(passes, "rows", group),
                )
        with m.Elif(self._of(self._dispatchers, "due", group)):
            self._strobe(m, "loop")
            m.d.sync += [self._job.eq(Job.LOOP), self._select.eq(0), self._advancing.eq(0)]
            report(m, self.step, CommitKind.LOOP_POINT, lane=group, id=number)
        with m.Elif(leaving & ~alive):
            retire_seated()
        with m.Elif(self._can_seat.bit_select(group, 1)):
            m.d.sync += [self._current.eq(Step.SEAT), self._seat.eq(self._of(self.seats, "free_seat", group))]
            self._fetch(m, head)
        with m.Elif(~alive & (self._of(self.seats, "seated_count", group) != 0)):
            self._strobe(m, "plan")
            prefilling = lists.filled[lists.prefilling(0, 0) : lists.retired].word_select(group, TIERS)
            m.d.sync += [self._job.eq(Job.FORM), self._walk.eq(prefilling), self._cursor_valid.eq(0)]
            report(
                m,
                self.step,
                CommitKind.PLAN,
                lane=group,
                id=number + 1,
                detail=self._of(self.seats, "decoding_count", group),
            )

    # --------------------------------------------------------------------------------------- executing

    def _own(self, m: Module, **fields: object) -> None:
        """Changes fields of the slot's owner row."""
        m.d.comb += self.slots.write_owner.eq(1)
        m.d.comb += [self._owner_next[name].eq(value) for name, value in fields.items()]

    def _execute(self, m: Module) -> None:
        with m.Switch(self._current):
            with m.Case(Step.COMMAND):
                m.d.comb += self.request.done.eq(1)
                self._execute_command(m)
            with m.Case(Step.STAGE_DONE):
                m.d.comb += self.request.done.eq(1)
                self._execute_stage_done(m)
            with m.Case(Step.RETIRE_POP):
                m.d.comb += self.request.done.eq(1)
                self._execute_pop(m)
            with m.Case(Step.CONFIG):
                m.d.comb += self.request.done.eq(1)
                self._execute_config(m)
            with m.Case(Step.SHOW_RETIRED):
                m.d.sync += [
                    self.retired.id.eq(self._id),
                    self.retired.reason.eq(self.slots.owner.reason),
                    self.retired.index.eq(self._retire_index),
                    self.retired.valid.eq(1),
                ]
            with m.Case(Step.RETIRE_SEATED):
                self._execute_retire_seated(m)
            with m.Case(Step.RETIRE_QUEUED):
                self._strobe(m, "dequeue")
                self._list(m, ListOp.UNLINK, self._waiting_list(self.slots.owner.tier, self._group))
                self._retire(m, RetireReason.LANE_LOST, 0x100)
            with m.Case(Step.ADVANCE):
                self._execute_advance(m)
            with m.Case(Step.SEAT):
                self._strobe(m, "take", "dequeue")
                self._list(m, ListOp.UNLINK, self._waiting_list(self.slots.owner.tier, self._group))
                self._own(m, life=Life.SEATED, seat=self._seat)
                m.d.comb += self._seat_write.en.eq(1)
                report(
                    m,
                    self.step,
                    CommitKind.SEAT,
                    lane=self._group,
                    stage=self._seat,
                    id=self._id,
                    detail=self.slots.owner.tier,
                )
                m.next = "SECOND"
            with m.Case(Step.CHUNK):
                self._execute_chunk(m)

    def _execute_command(self, m: Module) -> None:
        request, owner, pages = self.request, self.slots.owner, self._pages
        command, attr = request.command, request.attr
        m.submodules.judge = judge = Judge(self._params)
        m.d.comb += [
            judge.command.eq(command),
            judge.attr.eq(attr),
            judge.attr_state.eq(request.attr_state),
            judge.page_enabled.eq(pages.enable.bit_select(request.page, 1)),
            judge.page_offered.eq(pages.offered.bit_select(request.page, 1)),
            judge.offered_slot.eq(pages.offer[request.page].slot),
            judge.owner.eq(owner),
            judge.stage_count.eq(self.stage_count),
            judge.resetting.eq(self._of(self.seats, "resetting", attr.group)),
            judge.blocks_free.eq(self._of(self.seats, "blocks_free", attr.group)),
            pages.accept_page.eq(request.page),
        ]
        with m.Switch(judge.verdict):
            with m.Case(Verdict.REJECT):
                report(
                    m,
                    self.step,
                    CommitKind.REJECT,
                    stage=judge.reason,
                    id=command.id,
                    detail=Cat(request.page, Signal(5), command.stage[:24]),
                )
            with m.Case(Verdict.ADMIT_MANUAL):
                self._own(m, life=Life.RUNNING, epoch=command.id[16:])
                m.d.comb += pages.accept.eq(1)
                m.d.sync += self.active.eq(self.active + 1)
                report(m, self.step, CommitKind.ADMIT, stage=request.page, id=command.id, detail=command.stage)
            with m.Case(Verdict.ADMIT_AUTOMATIC):
                self._own(m, life=Life.QUEUED, epoch=command.id[16:], tier=attr.tier, group=attr.group)
                self._list(m, ListOp.PUSH, self._waiting_list(attr.tier, attr.group))
                self._strobe(m, "enqueue", "credit_take")
                m.d.comb += [
                    pages.accept.eq(1),
                    self._target.eq(attr.group),
                    self._blocks.eq(attr.kv_blocks),
                    self.slots.write_work.eq(1),
                    self._work_next.blocks.eq(attr.kv_blocks),
                    self._work_next.rest.eq(attr.rows),
                    self._work_next.start.eq(attr.start),
                    self._work_next.fresh.eq(1),
                ]
                m.d.sync += self.active.eq(self.active + 1)
                report(
                    m,
                    self.step,
                    CommitKind.ADMIT,
                    lane=attr.group,
                    stage=Cat(request.page, 1, attr.tier),
                    id=command.id,
                    detail=attr.kv_blocks,
                )
            with m.Case(Verdict.RETARGET):
                self._own(m, life=Life.RUNNING)
                report(m, self.step, CommitKind.RETARGET, stage=command.stage, id=command.id, detail=request.page)
            with m.Case(Verdict.CANCEL_MANUAL):
                self._free(m)
                report(m, self.step, CommitKind.CANCEL, stage=0, id=command.id, detail=request.page)
            with m.Case(Verdict.CANCEL_QUEUED):
                self._strobe(m, "dequeue", "credit_give")
                self._list(m, ListOp.UNLINK, self._waiting_list(owner.tier, owner.group))
                self._own(m, life=Life.RETIRED, reason=RetireReason.CANCELLED)
                m.d.comb += self._target.eq(owner.group)
                report(m, self.step, CommitKind.CANCEL, stage=1, id=command.id, detail=request.page)
                m.next = "SECOND"
            with m.Case(Verdict.CANCEL_SEATED):
                self._strobe(m, "mark")
                marked = self._of(self.seats, "marked", owner.group).bit_select(owner.seat[: self._params.seat_bits], 1)
                m.d.comb += self._target.eq(owner.group)
                m.d.comb += [seats.seat.eq(owner.seat) for seats in self.seats]
                report(m, self.step, CommitKind.CANCEL, stage=Cat(marked, 1), id=command.id, detail=request.page)

    def _execute_stage_done(self, m: Module) -> None:
        owner, id_ = self.slots.owner, self.request.command.id
        enabled = self._pages.enable.bit_select(self.request.page, 1)
        named = (owner.epoch == id_[16:]) & (id_[:16] < self._params.slots)
        with m.If(enabled & named & (owner.life == Life.RUNNING)):
            self._own(m, life=Life.WAITING)
            report(m, self.step, CommitKind.STAGE_DONE, id=id_)
        with m.Else():
            report(m, self.step, CommitKind.STAGE_DONE_IGNORED, id=id_)

    def _execute_pop(self, m: Module) -> None:
        lists = self.lists
        with m.If(lists.filled[lists.retired] & (self.request.value == self._retire_index)):
            self._list(m, ListOp.UNLINK, lists.retired)
            self._free(m)
            m.d.sync += [self._retire_index.eq(self._retire_index + 1), self.retired.eq(0)]
            report(m, self.step, CommitKind.FREE, id=self._id, detail=self._retire_index)
        with m.Else():
            report(m, self.step, CommitKind.POP_IGNORED, detail=self.request.value)

    def _execute_config(self, m: Module) -> None:
        offset, value = self.request.offset, self.request.value
        index = offset[6:9]
        seats = {name: self._of(self.seats, name, index) for name in ("vacant", "limit", "rows")}
        forming = (self._job == Job.FORM) & (self._group == index)
        in_pass = self._of(self.passes, "alive", index) | self._of(self._dispatchers, "outstanding", index)
        sequence_legal = (value[:16] != 0) & (value[:16] != 0xFFFF)
        all_vacant = Cat(room.vacant for room in self.seats).all()
        legal = Signal()
        m.d.comb += self._target.eq(index)

        def settle(condition: Value, strobe: str) -> None:
            m.d.comb += [legal.eq(condition), self._strobes[strobe].eq(condition)]

        with m.Switch(offset):
            with m.Case(CONTROL + Control.PAGE_ENABLE):
                m.d.comb += [legal.eq(value < 256), self._pages.set_enable.eq(legal), self._pages.value.eq(value)]
            with m.Case(CONTROL + Control.STAGE_COUNT):
                m.d.comb += legal.eq((value != 0) & (value <= self._params.stages) & all_vacant)
                with m.If(legal):
                    m.d.sync += self.stage_count.eq(value)
            with m.Case(CONTROL + Control.GROUP_RESET):
                m.d.comb += self._target.eq(value)
                with m.If(value < self._params.lanes):
                    self._strobe(m, "reset_begin", "drop", "end")
                    m.d.comb += legal.eq(1)
                    with m.If(self._group == value):
                        m.d.sync += self._job.eq(Job.NONE)
            with m.Default():
                # Lane i at 0x8200 + i * 0x40, group i at 0x8400 + i * 0x40: bit 9 tells them apart.
                with m.If(offset[9]):
                    settle(sequence_legal & ~in_pass & ~forming, "set_sequence")
                with m.Else():
                    with m.Switch(offset[:6]):
                        with m.Case(Group.SEATS):
                            roomy = (
                                (value != 0) & (value <= self._params.seats) & (value + ROWS_MARGIN <= seats["rows"])
                            )
                            settle(roomy & seats["vacant"], "set_limit")
                        with m.Case(Group.ROWS):
                            roomy = (value >= seats["limit"] + ROWS_MARGIN) & (value <= ROWS_MAX)
                            settle(roomy & seats["vacant"], "set_rows")
                        with m.Case(Group.KV_BLOCKS):
                            settle((value < 1 << 16) & seats["vacant"], "set_blocks")
        with m.If(~legal):
            report(m, self.step, CommitKind.CONFIG_IGNORED, id=offset, detail=value)
        with m.Elif(offset == CONTROL + Control.GROUP_RESET):
            report(m, self.step, CommitKind.GROUP_RESET, lane=value)
        with m.Else():
            report(m, self.step, CommitKind.CONFIG, id=offset, detail=value)

    def _execute_retire_seated(self, m: Module) -> None:
        group, owner = self._group, self.slots.owner
        seat = self._seat[: self._params.seat_bits]
        decodes = self._of(self.seats, "decoding", group).bit_select(seat, 1)
        finished = self._of(self.passes, "finished", group).bit_select(seat, 1)
        resetting = self._of(self.seats, "resetting", group)
        self._strobe(m, "leave")
        with m.If(~decodes):
            self._list(m, ListOp.UNLINK, self._prefilling_list(owner.tier, group))
        reason = Mux(resetting, RetireReason.LANE_LOST, Mux(finished, RetireReason.FINISHED, RetireReason.CANCELLED))
        self._retire(m, reason, self._seat)

    def _execute_advance(self, m: Module) -> None:
        work, entry = self.slots.work, self._of(self.passes, "entry", self._group)
        start, complete = Signal(20), Signal()
        m.d.comb += [
            start.eq(work.start + entry.rows),
            complete.eq(work.rest == entry.rows),
            self.slots.write_work.eq(1),
            self._work_next.start.eq(start),
            self._work_next.rest.eq(work.rest - entry.rows),
            self._work_next.fresh.eq(0),
        ]
        with m.If(complete):
            self._strobe(m, "turn")
            self._list(m, ListOp.UNLINK, self._prefilling_list(self.slots.owner.tier, self._group))
        m.d.sync += self._select.eq(self._select + 1)
        report(
            m,
            self.step,
            CommitKind.ADVANCE,
            lane=self._group,
            stage=self._seat,
            id=self._id,
            detail=Cat(start, Signal(11), complete),
        )

    def _execute_chunk(self, m: Module) -> None:
        group, owner, work = self._group, self.slots.owner, self.slots.work
        grain = self._of(self.passes, "grain", group)
        rows, last = Signal(10), Signal()
        here = self._prefilling_list(self._walk_tier, group)
        m.d.comb += [last.eq(work.rest <= grain), rows.eq(Mux(last, work.rest, grain))]
        for pass_ in self.passes:
            m.d.comb += [
                pass_.chunk.slot.eq(self._slot),
                pass_.chunk.epoch.eq(owner.epoch),
                pass_.chunk.start.eq(work.start),
                pass_.chunk.seat.eq(owner.seat),
                pass_.chunk.rows.eq(rows),
                pass_.chunk.first.eq(work.fresh),
                pass_.chunk.last.eq(last),
            ]
        marked = self._of(self.seats, "marked", group).bit_select(owner.seat[: self._params.seat_bits], 1)
        with m.If(~marked):
            self._strobe(m, "add")
            report(
                m,
                self.step,
                CommitKind.CHUNK,
                lane=group,
                stage=owner.seat,
                id=self._id,
                detail=Cat(work.start, rows, last, work.fresh),
            )
        at_tail = self._slot == self.lists.tails[here]
        m.d.sync += [self._cursor.eq(self.lists.next), self._cursor_valid.eq(~at_tail)]
        with m.If(at_tail):
            m.d.sync += self._walk.bit_select(self._walk_tier, 1).eq(0)

    def _retire(self, m: Module, reason: Value | RetireReason, seat: Value | int) -> None:
        """First half of a retirement, but for leaving the list the slot is in."""
        self._strobe(m, "credit_give")
        self._own(m, life=Life.RETIRED, reason=reason)
        report(m, self.step, CommitKind.RETIRE, lane=self._group, stage=reason, id=self._id, detail=seat)
        m.next = "SECOND"

    def _free(self, m: Module) -> None:
        pages = self._pages
        self._own(m, life=Life.FREE)
        m.d.comb += [
            pages.release.eq(1),
            pages.release_slot.eq(self._slot),
            pages.release_epoch.eq(self.slots.owner.epoch),
        ]
        m.d.sync += self.active.eq(self.active - 1)

    def _second(self, m: Module) -> None:
        """Appends the slot to the list it moves to."""
        owner = self.slots.owner
        with m.If(self._current == Step.SEAT):
            self._list(m, ListOp.PUSH, self._prefilling_list(owner.tier, self._group))
        with m.Else():
            self._list(m, ListOp.PUSH, self.lists.retired)
        with m.If(self._current == Step.COMMAND):
            report(
                m,
                self.step,
                CommitKind.RETIRE,
                lane=owner.group,
                stage=RetireReason.CANCELLED,
                id=self._id,
                detail=0x100,
            )
