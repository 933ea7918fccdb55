"""The slot in hand, the rooms around it, and what every step is written with."""

from __future__ import annotations

import enum
from functools import reduce
from operator import or_

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from .budget import Budget
from .commit import report
from .encode import lowest
from .lanes import Lanes
from .pages import AttrState, Pages
from .params import TIERS, Params
from .passes import Chunks, Pass
from .pipelines import LENGTHS, longest
from .queue import ListOp, Lists
from .regmap import CommitKind, PageSchedAttr, PageSchedCmd, RetireReason
from .seats import SET, Seats
from .slots import Life, Owner, Slots, Work

__all__ = ["Hand", "Job", "RequestKind", "RequestPort", "Step"]


STROBES = {
    "seats": (
        *("take", *SET, "loop_end", "enqueue", "dequeue", "set_aside", "take_back", "reset_begin", "reset_end"),
        *("credit_take", "credit_give", "set_limit", "set_rows", "set_blocks"),
        *("set_cost", "set_decode_cost", "set_chunk_cost", "plan"),
    ),
    "pass": ("plan", "add", "form", "loop", "end"),
    "lane": ("set_sequence", "set_depth"),
    "lanes": ("drop",),
}
"""What a step can make a group, a pass, a lane, or all passes and lanes of a group do."""


class RequestKind(enum.IntEnum):
    """What the bus asks of the core."""

    COMMAND = 0
    STAGE_DONE = 1
    RETIRE_POP = 2
    CONFIG = 3
    PARK = 4
    CREDIT = 5


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
    """What EXECUTE does; the first ones are a request's kinds."""

    COMMAND = RequestKind.COMMAND
    STAGE_DONE = RequestKind.STAGE_DONE
    RETIRE_POP = RequestKind.RETIRE_POP
    CONFIG = RequestKind.CONFIG
    PARK = RequestKind.PARK
    CREDIT = RequestKind.CREDIT
    SHOW_RETIRED = 6
    RETIRE_SEATED = 7
    RETIRE_QUEUED = 8
    ADVANCE = 9
    PAUSE = 10
    SEAT = 11
    BIND = 12
    CHUNK = 13


class Job(enum.IntEnum):
    """What was begun for the current group and is finished before other groups' work."""

    NONE = 0
    LOOP = 1
    FORM = 2


class Hand:
    """The rooms that the core works on, and its own state, as the modules that describe its steps see them.

    ``slot`` is the slot in hand: its rows stand in ``slots.owner`` and ``slots.work``, its links in ``lists``, from
    EXECUTE on. ``group`` is the lane group whose turn it is; strobes go to the rooms of group ``target``, which is the
    same unless a command names another. ``seat`` is the seat that strobes act on, unless a step points elsewhere.
    ``room`` is the room of the pass that is worked on; strobes of passes go to ``which``, which is the same unless a
    step turns to another.
    """

    def __init__(self, params: Params, core: wiring.PureInterface, pages: Pages, lanes: Lanes) -> None:
        groups, bits = params.lanes, params.slot_bits
        self.params = params
        self.core = core
        self.pages = pages
        self.lanes = lanes
        self.request = core.request
        self.step = core.step
        self.slots = Slots(params)
        self.lists = Lists(params)
        self.seats = [Seats(params, longest(params, group)) for group in range(groups)]
        self.passes = [Pass(params) for _ in range(2 * groups)]
        self.chunks = Chunks(params)
        self.budget = Budget(params)
        self.seat_map = memory.Memory(shape=bits, depth=groups * params.seats, init=[])
        self.seat_read, self.seat_write = self.seat_map.read_port(), self.seat_map.write_port()

        self.current = Signal(Step)
        self.job = Signal(Job)
        self.group = Signal(range(max(groups, 2)))
        self.target = Signal(3)
        self.room = Signal(range(2 * groups))
        self.which = Signal.like(self.room)
        self.slot = Signal(bits)
        self.seat = Signal(8)
        self.looked_up = Signal(params.seat_bits)
        self.owner_next = Signal(Owner)
        self.work_next = Signal(Work)
        self.blocks = Signal(16)
        self.retire_index = Signal(32)
        self.show_due = Signal()
        # What each group could do next.
        self.wanted = Signal(groups)
        self.waiting = [Signal(TIERS, name=f"waiting_{group}") for group in range(groups)]
        self.can_seat = Signal(groups)
        self.can_pause = Signal(groups)
        self.can_loop = Signal(groups)
        self.can_form = Signal(groups)
        self.can_press = Signal(groups)
        # Rooms of the passes that each group would work on: the loop point, the next pass.
        self.loop_room = [Signal.like(self.room, name=f"loop_room_{group}") for group in range(groups)]
        self.form_room = [Signal.like(self.room, name=f"form_room_{group}") for group in range(groups)]
        self.in_pass = Signal(groups)
        self.reported = Signal(groups)
        # A loop point under way: the entry whose turn it is, and whether chunks advance yet.
        self.select = Signal(5)
        self.advancing = Signal()
        # A pass being formed: tiers that may come along, those whose prompts are still to be looked at, and
        # where in the list.
        self.walk = Signal(TIERS)
        self.walk_tier = Signal(2)
        self.tiers = Signal(TIERS)
        self.cursor = Signal(bits)
        self.cursor_valid = Signal()
        self.reserve = Signal(12)
        self.row_cost = Signal(27)
        self.strobes = {name: Signal(name=name) for room in STROBES.values() for name in room}

    def wire(self, m: Module) -> None:
        """Connects the rooms; steps override what is connected here."""
        m.submodules.slots = self.slots
        m.submodules.lists = self.lists
        m.submodules.seat_map = self.seat_map
        m.submodules.chunks = self.chunks
        m.submodules.budget = self.budget
        m.d.comb += [self.target.eq(self.group), self.which.eq(self.room)]
        for group in range(self.params.lanes):
            m.submodules[f"seats_{group}"] = self.seats[group]
            self._wire_group(m, group)
            self._wire_lane(m, group)
            self._choose_pass(m, group)
        for room, pass_ in enumerate(self.passes):
            m.submodules[f"pass_{room}"] = pass_
            self._wire_pass(m, room)
        self._wire_forming(m)
        m.d.comb += [self.lanes.planned.eq(self.strobes["plan"]), self.lanes.plan_room.eq(self.which)]
        self._wire_rows(m)

    def _rooms(self, group: int) -> list[tuple[int, Value]]:
        """Rooms that can hold a pass of ``group``, its second pass's first, and whether they do."""
        lanes, owners = self.params.lanes, self.lanes.pipelines.owners
        pipeline = range(group, group + longest(self.params, group))
        return [(lanes + group, Const(1)), *((room, owners[room] == group) for room in pipeline)]

    def _gather(self, group: int, name: str) -> Value:
        """Port ``name`` of all the group's passes, or'ed."""
        return reduce(or_, (Mux(here, getattr(self.passes[room], name), 0) for room, here in self._rooms(group)))

    def _wire_group(self, m: Module, group: int) -> None:
        seats = self.seats[group]
        m.d.comb += [getattr(seats, name).eq(self.strobes[name] & (self.target == group)) for name in STROBES["seats"]]
        waiting = self.lists.filled[self.lists.waiting(group, 0) :][:TIERS]
        m.d.comb += [
            self.waiting[group].eq(waiting),
            self.can_seat[group].eq(seats.free_any & (waiting & seats.welcome).any() & ~seats.resetting),
            self.can_pause[group].eq(seats.victim_any),
            self.in_pass[group].eq(self._gather(group, "alive")),
            self.wanted[group].eq(
                Cat(
                    *(seats.resetting, seats.leaving_any, seats.parking_any),
                    *(can[group] for can in (self.can_loop, self.can_seat, self.can_pause)),
                    *(can[group] for can in (self.can_form, self.can_press)),
                ).any()
            ),
            seats.seat.eq(self.seat),
            seats.waiting.eq(waiting),
            seats.min_seats.eq(self.core.min_seats),
            seats.seat_floor.eq(self.core.seat_floor),
            seats.busy.eq(self._gather(group, "busy")),
            seats.sampled.eq(self._gather(group, "sampling")),
            seats.finished.eq(self._gather(group, "leaving")),
            seats.take_tier.eq(self.slots.owner.tier),
            seats.take_decoding.eq(self.slots.work.rest == 0),
            seats.take_credited.eq(self.slots.owner.credited),
            seats.take_stepped.eq(self.slots.owner.stepped),
            seats.blocks.eq(self.blocks),
            seats.value.eq(self.request.value),
        ]

    def _choose_pass(self, m: Module, group: int) -> None:
        """Which passes of the group come to their loop point, or can be formed; and who decodes in the one in turn."""
        seats, length = self.seats[group], self.lanes.pipelines.lengths[group]
        rooms = self._rooms(group)
        due = [self.lanes.walkers[room].due & here for room, here in rooms]
        m.d.comb += self.can_loop[group].eq(Cat(due).any())
        for (room, _), waits in reversed(list(zip(rooms, due, strict=True))):
            with m.If(waits):
                m.d.comb += self.loop_room[group].eq(room)

        firsts = rooms[1:]
        lengths = [n for n in LENGTHS if n <= len(firsts)]
        formable = Signal(len(firsts), name=f"formable_{group}")
        for k, (room, here) in enumerate(firsts):
            decoders = Cat((length == n) & seats.decoders[k % n :: n].any() for n in lengths).any()
            same = [Cat(length == n for n in lengths if (share - k) % n == 0).any() for share in range(len(firsts))]
            m.d.comb += formable[k].eq(here & ~self.passes[room].alive & (seats.prompts | decoders))
            with m.If(self.which == room):
                m.d.comb += seats.shares.eq(Cat(same))
        chosen: Value | int = 0
        if len(firsts) > 1:
            latest = Signal(range(len(firsts)), init=len(firsts) - 1, name=f"formed_{group}")
            later = formable & (~Const(1, len(firsts)) << latest)[: len(firsts)]
            chosen = Mux(later.any(), lowest(m, later, f"later_{group}"), lowest(m, formable, f"formable_{group}"))
            with m.If(self.strobes["plan"] & (self.target == group) & (self.which < self.params.lanes)):
                m.d.sync += latest.eq(self.which - group)
        first, second = self.passes[group], self.passes[self.params.lanes + group]
        alone = (length == 1) & ~self.lanes.pipelines.absorbed[group]
        m.d.comb += [
            self.form_room[group].eq(group + chosen),
            self.can_form[group].eq(formable.any()),
            self.can_press[group].eq(alone & first.alive & ~second.alive & seats.urgent),
        ]

    def _wire_lane(self, m: Module, index: int) -> None:
        lane, owner = self.lanes.dispatchers[index], self.lanes.pipelines.owners[index]
        m.d.comb += [getattr(lane, name).eq(self.strobes[name] & (self.target == index)) for name in STROBES["lane"]]
        m.d.comb += [
            lane.drop.eq(self.strobes["drop"] & (self.target == owner)),
            lane.group.eq(owner),
            lane.in_pass.eq(self.in_pass.bit_select(owner, 1)),
            lane.resetting.eq(self.of(self.seats, "resetting", owner)),
            lane.rest.eq(self.of(self.seats, "resting", owner)),
            lane.value.eq(self.request.value),
            lane.report.eq(self.reported[index]),
            lane.report_seat.eq(self.slots.owner.seat),
            *(
                getattr(view, name).eq(getattr(self.passes[room].view, name))
                for view, room in zip(lane.view, lane.rooms, strict=True)
                for name in view.signature.members
            ),
            self.lanes.pipelines.vacant[index].eq(self.seats[index].vacant & ~self.seats[index].resetting),
        ]

    def _wire_pass(self, m: Module, room: int) -> None:
        """A pass, and the walker that takes it through its stages. A second pass has no decode rows."""
        pass_, walker, lanes = self.passes[room], self.lanes.walkers[room], self.params.lanes
        group: Value | Const
        if room < lanes:
            group = self.lanes.pipelines.owners[room]
            along = Array(seats.along for seats in self.seats[: room + 1])[group]
            bound_count = Array(seats.awake_count - seats.unbound_count for seats in self.seats[: room + 1])[group]
            m.d.comb += [
                pass_.view.index.eq(room - group),
                pass_.decoding.eq(along),
                pass_.decode_rows.eq(bound_count),
            ]
        else:
            group = Const(room - lanes, 3)
            m.d.comb += pass_.view.index.eq(1)
        m.d.comb += [getattr(pass_, name).eq(self.strobes[name] & (self.which == room)) for name in STROBES["pass"]]
        m.d.comb += [
            pass_.drop.eq(self.strobes["drop"] & (self.target == group)),
            pass_.plan_number.eq(self.of(self.seats, "number", group) + 1),
            pass_.chunk.eq(self.chunks.chunk),
            pass_.finish.eq(walker.done),
            pass_.finish_seats.eq(self.lanes.finish_seats[room]),
            walker.stage_count.eq(self.core.stage_count),
            walker.start.eq(pass_.form & (pass_.view.rows != 0)),
            walker.binds.eq(pass_.binds),
            walker.samples.eq(pass_.view.samples),
            walker.loop.eq(pass_.loop),
            walker.drop.eq(pass_.drop),
        ]

    def _wire_forming(self, m: Module) -> None:
        """What the pass in ``which`` may take in; its entries."""
        first = self.which < self.params.lanes
        budget, chunks = self.budget, self.chunks
        for name, source in (
            ("row_limit", "rows"),
            ("cost_limit", "cost"),
            ("decode_cost", "decode_cost"),
        ):
            m.d.comb += getattr(budget, name).eq(self.of(self.seats, source, self.group))
        m.d.comb += [
            budget.plan.eq(self.strobes["plan"]),
            budget.decode_rows.eq(Mux(first, self.of(self.seats, "awake_count", self.group), 0)),
            budget.unbound_rows.eq(Mux(first, self.of(self.seats, "unbound_count", self.group), 0)),
            budget.empty.eq(self.of(self.passes, "empty", self.room)),
            budget.reserve.eq(self.reserve),
            budget.row_cost.eq(self.row_cost),
            budget.add.eq(self.strobes["add"]),
            budget.add_rows.eq(chunks.chunk.rows),
            chunks.room.eq(self.room),
            chunks.add.eq(self.strobes["add"]),
            chunks.count.eq(self.view("count")),
            chunks.select.eq(self.select),
        ]

    def _wire_rows(self, m: Module) -> None:
        """The slot in hand, and what is written back to it."""
        slots, lists = self.slots, self.lists
        m.d.comb += [
            slots.slot.eq(self.slot),
            lists.slot.eq(self.slot),
            slots.fetch.eq(self.slot),
            lists.fetch.eq(slots.fetch),
            slots.next_owner.eq(self.owner_next),
            slots.next_work.eq(self.work_next),
            self.owner_next.eq(slots.owner),
            self.work_next.eq(slots.work),
            self.blocks.eq(slots.work.blocks),
            self.seat_read.addr.eq(Cat(self.looked_up, self.group)),
            self.seat_write.addr.eq(Cat(self.seat[: self.params.seat_bits], self.group)),
            self.seat_write.data.eq(self.slot),
        ]
        m.d.comb += self.show_due.eq(lists.filled[lists.retired] & ~self.core.retired.valid)

    def view(self, name: str) -> Value:
        """What lanes see of the pass that is worked on."""
        return Array(getattr(pass_.view, name) for pass_ in self.passes)[self.room]

    def of(self, rooms: list[wiring.Component], name: str, index: Value) -> Value:
        """Port ``name`` of the room ``index``."""
        return Array(getattr(room, name) for room in rooms)[index]

    def fetch(self, m: Module, slot: Value) -> None:
        """Takes ``slot`` in hand; EXECUTE follows."""
        m.d.comb += self.slots.fetch.eq(slot)
        m.d.sync += self.slot.eq(slot)
        m.next = "FETCH"

    def look_up(self, m: Module, step: Step, seat: str) -> None:
        """Begins ``step`` on the request in the seat that ``seat``, a summary of the group's seats, names."""
        found = self.of(self.seats, seat, self.group)
        m.d.comb += self.looked_up.eq(found)
        m.d.sync += [self.seat.eq(found), self.current.eq(step)]
        m.next = "LOOKUP"

    def relink(self, m: Module, op: ListOp, index: Value | int) -> None:
        """Does ``op`` with the slot in hand and the list ``index``."""
        m.d.comb += [self.lists.op.eq(op), self.lists.list.eq(index)]

    def waiting_list(self, tier: Value, group: Value) -> Value:
        """Index of a tier's queue."""
        return Cat(tier[:2], group)

    def prefilling_list(self, tier: Value, group: Value) -> Value:
        """Index of a tier's list of prefilling seats."""
        return self.params.lanes * TIERS + Cat(tier[:2], group)

    def strobe(self, m: Module, *names: str) -> None:
        """Raises strobes of the target's rooms in this cycle."""
        m.d.comb += [self.strobes[name].eq(1) for name in names]

    @property
    def id(self) -> Value:
        """Id of the slot in hand."""
        return Cat(self.slot, Signal(16 - len(self.slot)), self.slots.owner.epoch)

    def own(self, m: Module, **fields: object) -> None:
        """Changes fields of the slot's owner row."""
        m.d.comb += self.slots.write_owner.eq(1)
        m.d.comb += [self.owner_next[name].eq(value) for name, value in fields.items()]

    def retire(self, m: Module, reason: Value | RetireReason, seat: Value | int) -> None:
        """Retires the slot in hand, but for taking it out of its list; SECOND puts it into the retirement FIFO."""
        self.strobe(m, "credit_give")
        self.own(m, life=Life.RETIRED, reason=reason)
        report(m, self.step, CommitKind.RETIRE, lane=self.group, stage=reason, id=self.id, detail=seat)
        m.next = "SECOND"

    def free(self, m: Module) -> None:
        """Gives the slot in hand back."""
        pages = self.pages
        self.own(m, life=Life.FREE)
        m.d.comb += [
            pages.release.eq(1),
            pages.release_slot.eq(self.slot),
            pages.release_epoch.eq(self.slots.owner.epoch),
        ]
        m.d.sync += self.core.active.eq(self.core.active - 1)
