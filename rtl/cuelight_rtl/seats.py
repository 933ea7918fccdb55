"""A lane group's seats as bitmaps, and its budgets."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .encode import lowest
from .params import TIERS, Params
from .regmap import Group

__all__ = ["Seats"]

TRAITS = ("seated", "decoding", "listed", "marked", "parked", "parking", "credited", "stepped", "bound")
"""What is known of a seat; a bitmap each."""

SET = {
    "turn": {"decoding": 1},
    "relist": {"listed": 1},
    "mark": {"marked": 1},
    "ask_park": {"parking": 1},
    "park": {"parked": 1, "parking": 0, "listed": 0},
    "spend_credit": {"credited": 0, "parking": 0},
    "unpark": {"parked": 0},
    "keep_credit": {"credited": 1},
    "bind": {"bound": 1, "listed": 0},
    "leave": dict.fromkeys(TRAITS, 0),
}
"""What each strobe makes of ``seat``; one at a time, but for ``bind``, and ``relist`` beside ``unpark``."""


class Seats(wiring.Component):
    """Who sits where in a lane group, and what becomes of them; configuration and KV credit of the group.

    Strobes act on ``seat`` in this cycle. The summaries (``…_any``, ``…_seat``) are registered: they are right one
    cycle after the bitmaps changed.

    ``busy`` are the seats in passes alive, but for a pass in its loop point, where ``finished`` and ``sampled`` are its
    seats reported finished, and those that sampled. A seat decodes in the pass that ``shares`` tells from the
    seat's low bits: bit r stands for seats that are r modulo ``longest``, the group's longest possible pipeline. Of the
    decoding seats in ``shares`` that are not parked ``awake_count`` is the number, and ``unbound_count`` that of those
    which no entry has bound yet. ``victim`` is the seat that the highest eager tier in ``waiting`` would take.
    ``hungry`` tiers have fewer seats than their minimum; ``welcome`` ones are given a free seat, ``eager``
    ones would be if one more were free.
    ``listed`` seats are in their tier's prefilling list: no others can bring a chunk.
    ``along`` are those that an entry has bound. ``prompts``: somebody could bring a chunk; ``above``: tiers above all
    those in ``busy``; ``urgent``: one of them could bring a chunk; ``decoders``: for each r, somebody could decode.
    """

    def __init__(self, params: Params, longest: int) -> None:
        self._params = params
        self._longest = longest
        seats, bits = params.seats, params.seat_bits
        count = range(seats + 1)
        super().__init__(
            {
                "seat": In(bits),
                "take": In(1),
                "take_tier": In(2),
                "take_decoding": In(1),
                "take_credited": In(1),
                "take_stepped": In(1),
                **{strobe: In(1) for strobe in SET},
                "loop_end": In(1),
                "plan": In(1),
                "shares": In(longest),
                "busy": In(seats),
                "sampled": In(seats),
                "finished": In(seats),
                "enqueue": In(1),
                "dequeue": In(1),
                "set_aside": In(1),
                "take_back": In(1),
                "waiting": In(TIERS),
                "min_seats": In(data.ArrayLayout(9, TIERS)),
                "seat_floor": In(data.ArrayLayout(9, TIERS)),
                "reset_begin": In(1),
                "reset_end": In(1),
                "credit_take": In(1),
                "credit_give": In(1),
                "blocks": In(16),
                "value": In(32),
                **{
                    name: In(1)
                    for name in ("set_limit", "set_rows", "set_blocks", "set_cost", "set_decode_cost", "set_chunk_cost")
                },
                **{name: Out(seats) for name in TRAITS},
                "resetting": Out(1),
                "queued_count": Out(16),
                "aside_count": Out(16),
                "seated_count": Out(count),
                "decoding_count": Out(count),
                "parked_count": Out(count),
                "awake_count": Out(count),
                "unbound_count": Out(count),
                **{f"{name}_any": Out(1) for name in ("free", "leaving", "parking", "unbound", "victim")},
                **{f"{name}_seat": Out(bits) for name in ("free", "leaving", "parking", "unbound", "victim")},
                "hungry": Out(TIERS),
                "welcome": Out(TIERS),
                "prompts": Out(1),
                "above": Out(TIERS),
                "urgent": Out(1),
                "decoders": Out(longest),
                "along": Out(seats),
                "number": Out(32),
                "vacant": Out(1),
                "resting": Out(1),
                "limit": Out(count, init=seats),
                "rows": Out(10, init=params.default_rows),
                "blocks_total": Out(16),
                "blocks_free": Out(16),
                "cost": Out(32, init=Group.COST_RESET),
                "decode_cost": Out(16),
                "chunk_cost": Out(32),
            }
        )
        self._eager = Signal(TIERS)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        tier_seats = self._keep_seats(m)
        self._summarize(m, tier_seats)
        self._keep_budgets(m)
        return m

    def _keep_seats(self, m: Module) -> list[Signal]:
        """The bitmaps and what is counted of them; returns each tier's seats."""
        seats = self._params.seats
        one = Signal(seats)
        strobed = Signal()
        now = {name: Signal(name=f"{name}_now") for name in TRAITS}
        after = {name: Signal(name=f"{name}_after") for name in TRAITS}
        m.d.comb += [one.eq(1 << self.seat), strobed.eq(self.take | Cat(getattr(self, name) for name in SET).any())]
        m.d.comb += [now[name].eq((getattr(self, name) & one) != 0) for name in TRAITS]
        m.d.comb += [after[name].eq(now[name]) for name in TRAITS]
        with m.If(self.take):
            m.d.comb += [
                after["seated"].eq(1),
                after["decoding"].eq(self.take_decoding),
                after["listed"].eq(~self.take_decoding),
                after["credited"].eq(self.take_credited),
                after["stepped"].eq(self.take_stepped),
            ]
        for strobe, traits in SET.items():
            with m.If(getattr(self, strobe)):
                m.d.comb += [after[name].eq(value) for name, value in traits.items()]
        with m.If(strobed):
            for name in TRAITS:
                bitmap = getattr(self, name)
                m.d.sync += bitmap.eq(Mux(after[name], bitmap | one, bitmap & ~one))
        with m.If(self.loop_end):
            m.d.sync += self.parking.eq(self.parking | (self.stepped & self.sampled & self.seated))

        def keep_count(count: Signal, *names: str, here: Value | int = 1) -> None:
            counted, counts = (
                Cat(~of[name[1:]] if name[0] == "~" else of[name] for name in names).all() for of in (now, after)
            )
            with m.If(counts & ~counted & here):
                m.d.sync += count.eq(count + 1)
            with m.Elif(~counts & counted & here):
                m.d.sync += count.eq(count - 1)

        keep_count(self.seated_count, "seated")
        keep_count(self.decoding_count, "decoding")
        keep_count(self.parked_count, "parked")
        for total, *names in (
            (self.awake_count, "decoding", "~parked"),
            (self.unbound_count, "decoding", "~parked", "~bound"),
        ):
            counts = [Signal.like(total, name=f"{total.name}_{share}") for share in range(self._longest)]
            for share, count in enumerate(counts):
                keep_count(count, *names, here=self.seat % self._longest == share)
            m.d.comb += total.eq(
                sum((Mux(self.shares[share], count, 0) for share, count in enumerate(counts)), start=Const(0))
            )

        free = Signal.like(self.limit)
        m.d.comb += free.eq(self.limit - self.seated_count)
        tier_seats = [Signal(seats, name=f"tier_{tier}") for tier in range(TIERS)]
        tier_counts = [Signal(range(seats + 1), name=f"tier_count_{tier}") for tier in range(TIERS)]
        for tier, (bitmap, count) in enumerate(zip(tier_seats, tier_counts, strict=True)):
            with m.If(self.take & (self.take_tier == tier)):
                m.d.sync += [bitmap.eq(bitmap | one), count.eq(count + 1)]
            with m.Elif(self.leave & ((bitmap & one) != 0)):
                m.d.sync += [bitmap.eq(bitmap & ~one), count.eq(count - 1)]
            m.d.comb += [
                self.hungry[tier].eq(count < self.min_seats[tier]),
                self.welcome[tier].eq(self.hungry[tier] | (free > self.seat_floor[tier])),
                self._eager[tier].eq((self.hungry[tier] & (free == 0)) | (free == self.seat_floor[tier])),
            ]
        self._tier_counts = tier_counts
        return tier_seats

    def _summarize(self, m: Module, tier_seats: list[Signal]) -> None:
        seats = self._params.seats
        everyone = Const((1 << seats) - 1, seats)
        below_limit = Signal(seats, init=everyone.value)
        m.d.sync += below_limit.eq(everyone >> (seats - self.limit)[: len(self.limit)])
        sharing = self.shares.replicate(seats // self._longest)
        wanting = self.waiting & self._eager
        yielding = [
            Mux(wanting[:tier].any() & (self._tier_counts[tier] > self.min_seats[tier]), tier_seats[tier], 0)
            for tier in range(1, TIERS)
        ]
        sets = {
            "free": ~self.seated & below_limit,
            "leaving": self.seated & Mux(self.resetting, everyone, (self.marked | self.finished) & ~self.busy),
            "parking": self.parking & ~self.busy,
            "unbound": self.decoding & ~self.bound & ~self.parked & sharing,
            "victim": (yielding[0] | yielding[1] | yielding[2]) & ~self.busy,
        }
        for name, value in sets.items():
            bitmap = Signal(seats, name=f"{name}_seats")
            m.d.comb += bitmap.eq(value)
            m.d.sync += [
                getattr(self, f"{name}_any").eq(bitmap != 0),
                getattr(self, f"{name}_seat").eq(lowest(m, bitmap, name)),
            ]
        m.d.comb += self.along.eq(self.decoding & self.bound & ~self.parked & sharing)
        prompting = Cat((self.listed & of_tier) != 0 for of_tier in tier_seats)
        running = Cat((self.busy & of_tier) != 0 for of_tier in tier_seats)
        decoders = self.decoding & ~self.parked & ~self.busy
        above = Cat(~running[: tier + 1].any() for tier in range(TIERS))
        m.d.sync += [
            self.prompts.eq(self.listed != 0),
            self.above.eq(above),
            self.urgent.eq((prompting & above) != 0),
            self.decoders.eq(Cat(decoders[share :: self._longest].any() for share in range(self._longest))),
        ]

    def _keep_budgets(self, m: Module) -> None:
        m.d.sync += [
            self.queued_count.eq(self.queued_count + self.enqueue - self.dequeue),
            self.aside_count.eq(self.aside_count + self.set_aside - self.take_back),
        ]
        m.d.comb += [
            self.vacant.eq((self.queued_count == 0) & (self.seated_count == 0) & (self.aside_count == 0)),
            self.resting.eq((self.queued_count == 0) & (self.seated_count == self.parked_count)),
        ]
        with m.If(self.plan):
            m.d.sync += self.number.eq(self.number + 1)
        with m.If(self.reset_begin):
            m.d.sync += self.resetting.eq(1)
        with m.Elif(self.reset_end):
            m.d.sync += self.resetting.eq(0)
        for strobe, register in (
            (self.set_limit, self.limit),
            (self.set_rows, self.rows),
            (self.set_blocks, self.blocks_total),
            (self.set_cost, self.cost),
            (self.set_decode_cost, self.decode_cost),
            (self.set_chunk_cost, self.chunk_cost),
        ):
            with m.If(strobe):
                m.d.sync += register.eq(self.value)
        with m.If(self.set_blocks):
            m.d.sync += self.blocks_free.eq(self.value)
        with m.Elif(self.credit_take):
            m.d.sync += self.blocks_free.eq(self.blocks_free - self.blocks)
        with m.Elif(self.credit_give):
            m.d.sync += self.blocks_free.eq(self.blocks_free + self.blocks)
