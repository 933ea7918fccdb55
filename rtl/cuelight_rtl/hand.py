"""The slot in hand, the rooms around it, and what every step is written with."""

from __future__ import annotations

import enum

from amaranth.hdl import Array, Cat, Module, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from .commit import report
from .dispatch import Dispatcher
from .pages import AttrState, Pages
from .params import TIERS, Params
from .passes import Pass
from .queue import ListOp, Lists
from .regmap import CommitKind, PageSchedAttr, PageSchedCmd, RetireReason
from .seats import SET, Seats
from .slots import Life, Owner, Slots, Work

__all__ = ["Hand", "Job", "RequestKind", "RequestPort", "Step"]


STROBES = {
    "seats": (
        *("take", *SET, "loop_end", "enqueue", "dequeue", "set_aside", "take_back", "reset_begin", "reset_end"),
        *("credit_take", "credit_give", "set_limit", "set_rows", "set_blocks"),
        *("set_cost", "set_decode_cost", "set_chunk_cost"),
    ),
    "pass": ("plan", "add", "form", "end"),
    "lane": ("loop", "drop", "set_sequence", "set_depth", "report"),
}
"""What a step can make the rooms of a group do, by room."""


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
    """

    def __init__(self, params: Params, core: wiring.PureInterface, pages: Pages, dispatchers: list[Dispatcher]) -> None:
        lanes, bits = params.lanes, params.slot_bits
        self.params = params
        self.core = core
        self.pages = pages
        self.dispatchers = dispatchers
        self.request = core.request
        self.step = core.step
        self.slots = Slots(params)
        self.lists = Lists(params)
        self.seats = [Seats(params) for _ in range(lanes)]
        self.passes = [Pass(params) for _ in range(lanes)]
        self.seat_map = memory.Memory(shape=bits, depth=lanes * params.seats, init=[])
        self.seat_read, self.seat_write = self.seat_map.read_port(), self.seat_map.write_port()

        self.current = Signal(Step)
        self.job = Signal(Job)
        self.group = Signal(range(max(lanes, 2)))
        self.target = Signal(3)
        self.slot = Signal(bits)
        self.seat = Signal(8)
        self.looked_up = Signal(params.seat_bits)
        self.owner_next = Signal(Owner)
        self.work_next = Signal(Work)
        self.blocks = Signal(16)
        self.retire_index = Signal(32)
        self.show_due = Signal()
        # What each group could do next.
        self.wanted = Signal(lanes)
        self.waiting = [Signal(TIERS, name=f"waiting_{group}") for group in range(lanes)]
        self.can_seat = Signal(lanes)
        self.can_pause = Signal(lanes)
        # A loop point under way: the entry whose turn it is, and whether chunks advance yet.
        self.select = Signal(5)
        self.advancing = Signal()
        # A pass being formed: tiers whose prompts are still to be looked at, and where in the list.
        self.walk = Signal(TIERS)
        self.walk_tier = Signal(2)
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
        m.d.comb += self.target.eq(self.group)
        for group in range(self.params.lanes):
            m.submodules[f"seats_{group}"] = self.seats[group]
            m.submodules[f"pass_{group}"] = self.passes[group]
            self._wire_group(m, group)
        self._wire_rows(m)

    def _wire_group(self, m: Module, group: int) -> None:
        seats, pass_, lane = self.seats[group], self.passes[group], self.dispatchers[group]
        for room, names in ((seats, STROBES["seats"]), (pass_, STROBES["pass"]), (lane, STROBES["lane"])):
            m.d.comb += [getattr(room, name).eq(self.strobes[name] & (self.target == group)) for name in names]
        waiting = self.lists.filled[self.lists.waiting(group, 0) :][:TIERS]
        m.d.comb += [
            self.waiting[group].eq(waiting),
            self.can_seat[group].eq(seats.free_any & waiting.any() & ~seats.resetting),
            self.can_pause[group].eq(~seats.free_any & seats.victim_any),
            self.wanted[group].eq(
                seats.resetting | lane.due | self.can_seat[group] | (~pass_.alive & self._loose_work(group))
            ),
            seats.seat.eq(self.seat),
            seats.waiting.eq(waiting),
            seats.min_seats.eq(self.core.min_seats),
            seats.sampled.eq(pass_.sampled),
            seats.take_tier.eq(self.slots.owner.tier),
            seats.take_decoding.eq(self.slots.work.rest == 0),
            seats.take_credited.eq(self.slots.owner.credited),
            seats.take_stepped.eq(self.slots.owner.stepped),
            seats.finished.eq(pass_.finished),
            seats.blocks.eq(self.blocks),
            seats.value.eq(self.request.value),
            pass_.decoding.eq(seats.decoding & seats.bound & ~seats.parked),
            pass_.awake_count.eq(seats.awake_count),
            pass_.unbound_count.eq(seats.unbound_count),
            pass_.row_limit.eq(seats.rows),
            pass_.cost_limit.eq(seats.cost),
            pass_.decode_cost.eq(seats.decode_cost),
            pass_.reserve.eq(self.reserve),
            pass_.row_cost.eq(self.row_cost),
            pass_.select.eq(self.select),
            pass_.finish.eq(lane.finish),
            pass_.finish_seats.eq(lane.finish_seats),
            lane.stage_count.eq(self.core.stage_count),
            lane.planned.eq(pass_.plan),
            lane.start.eq(pass_.form & (pass_.rows != 0)),
            lane.binds.eq(pass_.binds),
            lane.samples.eq(pass_.samples),
            lane.rows.eq(pass_.rows),
            lane.number.eq(pass_.number),
            lane.count.eq(pass_.count),
            lane.in_pass.eq(pass_.alive),
            lane.resetting.eq(seats.resetting),
            lane.rest.eq(seats.resting),
            lane.value.eq(self.request.value),
            lane.members.eq(pass_.members),
            lane.report_seat.eq(self.slots.owner.seat),
        ]

    def _loose_work(self, group: int) -> Value:
        """Whether a group without a pass has something to do besides seating."""
        seats = self.seats[group]
        somebody_awake = seats.seated_count != seats.parked_count
        return somebody_awake | seats.leaving_any | seats.parking_any | self.can_pause[group]

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

    def of(self, rooms: list[wiring.Component], name: str, index: Value) -> Value:
        """Port ``name`` of the room of group ``index``."""
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
