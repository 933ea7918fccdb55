"""The core and its rooms, as the claims about its steps see them, and what is proven of rooms elsewhere."""

from __future__ import annotations

import warnings

from amaranth.hdl import Array, Cat, Const, Mux, Signal, UnusedElaboratable, Value, ValueLike

from cuelight_rtl.core import Core
from cuelight_rtl.hand import RequestKind, Step
from cuelight_rtl.lanes import Lanes
from cuelight_rtl.pages import Pages
from cuelight_rtl.params import TIERS, Params
from cuelight_rtl.passes import Chunk
from cuelight_rtl.pipelines import LENGTHS, longest
from cuelight_rtl.queue import ListOp
from cuelight_rtl.slots import Life, Owner, Work

from .queue import Links
from .spec import Spec

__all__ = ["HELD", "PARTS", "WAITS", "CoreState", "number", "one_of"]

PARTS = ("steps", "lists", "seats", "passes", "credit", "promises")
"""In the order in which they are proven of a cycle: a part stands on those before it."""
WAITS = "waits"
"""A part that is a proof of its own: it stands on all of these, and none of them on it."""
HELD = (Life.QUEUED, Life.SEATED, Life.PARKED)
"""Lives in which a request holds KV blocks."""


class CoreState:
    """The core with its rooms, but for the lists' links and the budget's arithmetic, which are proven by themselves.

    Pages and lanes answer as they like, but for what is proven of them. Of every slot, seat and pass there are views;
    ``where`` is the list that each slot is in.
    """

    def __init__(self, params: Params, part: str = "", played: bool = False) -> None:
        # Rooms around the core are never elaborated.
        warnings.simplefilter("ignore", UnusedElaboratable)
        self.params = params
        self.part = part
        self.pages, self.lanes = Pages(params), Lanes(params)
        self.core = Core(params, self.pages, self.lanes)
        self.hand = hand = self.core._hand
        self.spec = spec = Spec(
            self.core,
            around=self._around(),
            cut=() if played else ("lists", "budget"),
            keeps=True,
            parts=(*PARTS, WAITS),
            part=part,
            played=played,
        )
        spec.m.submodules.pipelines = self.pipelines = self.lanes.pipelines
        self.groups, self.rooms = range(params.lanes), range(2 * params.lanes)
        self.slots, self.chairs = range(params.slots), range(params.seats)
        self.at = spec.states()
        self.request = self.core.request
        self.current = hand.current
        self.swept = hand.slots.swept

        self.owners = [Owner(row) for row in spec.rows("slots.owner_ram")]
        self.works = [Work(row) for row in spec.rows("slots.work_ram")]
        self.seat_map = Array(spec.rows("seat_map"))
        self.entries = [Chunk(params)(row) for row in spec.rows("chunks.ram")]
        self.lives = [Signal(Life, name=f"life_{slot}") for slot in self.slots]
        for slot, life in enumerate(self.lives):
            # Rows that the sweep has not passed hold anything, and nobody looks at them.
            seen = self.swept | (hand.slots.sweep > slot)
            spec.m.d.comb += life.eq(Mux(seen, self.owners[slot].life, Life.FREE))
        self.groups_of = [
            self.pipelines.owners[room] if room < params.lanes else Const(room - params.lanes, 3) for room in self.rooms
        ]
        self.looping = [spec.inside(f"pass_{room}.looping") for room in self.rooms]
        # What is in hand: the step is on its way, its slot is read, its second half comes.
        self.has = self.at["FETCH"] | self.at["WEIGH"] | self.at["EXECUTE"]
        self.looked = (self.at["LOOKUP"] | self.has) & one_of(
            self.current, Step.RETIRE_SEATED, Step.PARK_SEATED, Step.PAUSE, Step.BIND
        )
        self.second = self.at["SECOND"]

    def _around(self) -> list[Value]:
        """What the core reads of pages and lanes."""
        return [
            *(self.pages.enable, self.pages.offered, *(Value.cast(offer) for offer in self.pages.offer)),
            *(signal for walker in self.lanes.walkers for signal in (walker.due, walker.done)),
            *self.lanes.finish_seats,
            *(signal for lane in self.lanes.dispatchers for signal in (lane.awaited, lane.outstanding)),
        ]

    # ------------------------------------------------------------------------------------------------- views

    def does(self, *steps: Step) -> Value:
        """Whether one of ``steps`` is on its way, its slot known."""
        return self.has & one_of(self.current, *steps)

    def of_group(self, name: str, group: Value | int) -> Value:
        """Port ``name`` of a group's seats."""
        return Array(getattr(seats, name) for seats in self.hand.seats)[group]

    def in_hand(self, name: str) -> Value:
        """Trait ``name`` of the seat in hand."""
        return self.of_group(name, self.hand.group).bit_select(self.hand.seat[: self.params.seat_bits], 1)

    def place(self, group: Value | int, seat: Value | int) -> Value:
        """Row of the seat map."""
        bits = self.params.seat_bits
        return Cat(Value.cast(seat)[:bits], Value.cast(group))[: max(1, bits + (self.params.lanes - 1).bit_length())]

    def of_slot(self, rows: list[ValueLike], slot: Value) -> Value:
        """What ``rows`` has of ``slot``."""
        return Array(rows)[slot]

    def field(self, name: str, slot: Value) -> Value:
        """Field ``name`` of the slot's owner row."""
        return Array(getattr(owner, name) for owner in self.owners)[slot]

    def sits_in(self, group: Value | int, seat: Value | int) -> Value:
        """The slot whose request sits there."""
        return self.seat_map[self.place(group, seat)]

    def share(self, room: int) -> Value:
        """Seats that decode in the pass of ``room``, which is no second pass: every n-th in a pipeline of n lanes."""
        lengths = self.pipelines.lengths
        return Cat(
            Cat(
                (self.groups_of[room] == first) & (lengths[first] == n)
                for first in range(room + 1)
                for n in LENGTHS
                if (seat - (room - first)) % n == 0
            ).any()
            for seat in self.chairs
        )

    def serves(self, lane: int) -> Value:
        """Whether a pass alive may have a stage for the lane."""
        return Cat(
            self.hand.passes[room].alive & (self.groups_of[room] == self.pipelines.owners[lane])
            for room in self.lanes.dispatchers[lane].rooms
        ).any()

    def waiting_list(self, tier: Value, group: Value) -> Value:
        return Cat(tier[:2], group)

    def prefilling_list(self, tier: Value, group: Value) -> Value:
        return self.params.lanes * TIERS + Cat(tier[:2], group)

    def under_way(self, room: int, forming: Value) -> Value:
        """Whether the pass in ``room`` is alive, or being formed."""
        return self.hand.passes[room].alive | forming

    # ------------------------------------------------------------------------- what is proven of others elsewhere

    def assume_bus(self) -> None:
        """registers.py: what is asked of the core stands until it is done."""
        spec, request = self.spec, self.request
        names = ("kind", "page", "command", "attr", "attr_state", "offset", "value")
        asked, waits = Cat(getattr(request, name) for name in names), spec.past(request.valid & ~request.done)
        spec.assume(~request.valid | (request.kind <= max(RequestKind)))
        spec.assume(~waits | (request.valid & (asked == spec.past(asked))))

    def assume_lists(self, links: Links) -> None:
        """queue.py: what is filled, where heads are, and that nothing else moves them."""
        spec, lists = self.spec, self.hand.lists
        where, op, list_, onto = links.where, links.ops[0], spec.past(lists.list), spec.past(lists.onto)
        filled, begun = spec.past(lists.filled), spec.past(Const(1))
        for index in range(lists.count):
            head = lists.heads[index]
            spec.assume(lists.filled[index] == Cat(where[slot] == index for slot in self.slots).any())
            spec.assume(~lists.filled[index] | (where[head] == index))
            others = (op == ListOp.NONE) | ((list_ != index) & ((op != ListOp.MOVE) | (onto != index)))
            pushed = (op == ListOp.PUSH) & filled[index]
            spec.assume(~(begun & (others | pushed)) | (head == spec.past(head)))

    def assume_seats(self) -> None:
        """seats.py: what is counted, and of whom nothing is known."""
        for seats in self.hand.seats:
            awake = seats.decoding & ~seats.parked
            shared = Cat(seats.shares.bit_select(seat % seats._longest, 1) for seat in self.chairs)
            self.spec.assume(seats.seated_count == number(seats.seated))
            self.spec.assume(seats.awake_count == number(awake & shared))
            self.spec.assume(seats.unbound_count == number(awake & shared & ~seats.bound))
            known = seats.decoding | seats.listed | seats.marked | seats.parked | seats.credited | seats.bound
            self.spec.assume((known & ~seats.seated) == 0)
            self.spec.assume((seats.listed & (seats.decoding | seats.parked)) == 0)

    def assume_pipelines(self) -> None:
        """pipelines.py: which PIPELINE is legal."""
        for lane, length in enumerate(self.pipelines.lengths):
            self.spec.assume(one_of(length, *(n for n in LENGTHS if n <= longest(self.params, lane))))

    def assume_walkers(self) -> None:
        """walk.py: a pass is due, or has a dispatch to complete, only while it is alive, before its loop point."""
        for walker, pass_, looping in zip(self.lanes.walkers, self.hand.passes, self.looping, strict=True):
            walks = pass_.alive & ~looping
            self.spec.assume(~walker.due | walks)
            self.spec.assume(~walker.done | (walks & ~walker.due))


def number(bits: ValueLike) -> Value:
    """How many of ``bits`` are set."""
    value = Value.cast(bits)
    return sum((value[index] for index in range(1, len(value))), start=value[0])


def one_of(value: Value, *values: int) -> Value:
    """Whether ``value`` is one of ``values``."""
    return Cat(value == each for each in values).any()
