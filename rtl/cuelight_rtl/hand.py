"""The slot in hand, the rooms around it, and what every step is written with."""

from __future__ import annotations

import enum

from amaranth.hdl import Array, Cat, Module, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from .budget import Budget
from .commit import report
from .lanes import Lanes
from .pages import AttrState, Pages
from .params import TIERS, Params
from .passes import Chunks, Pass
from .pipelines import longest
from .queue import ListOp, Lists
from .regmap import CommitKind, PageSchedAttr, PageSchedCmd, RetireReason
from .seats import SET, Seats
from .slots import Life, Owner, Slots, Work

__all__ = ["STROBES", "Hand", "Job", "RequestKind", "RequestPort", "Step"]


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
    PARK_SEATED = 14


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
        # A loop point under way: entries still to be looked at, the last one first, and whether chunks advance yet.
        self.entries_left = Signal(range(params.entries + 1))
        self.advancing = Signal()
        # A pass being formed: tiers that may come along, those whose turn is not over, and whose it is.
        self.tiers = Signal(TIERS)
        self.on_turn = Signal(TIERS)
        self.tier = Signal(2)
        self.reserve = Signal(12)
        self.row_cost = Signal(27)
        self.strobes = {name: Signal(name=name) for room in STROBES.values() for name in room}

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
