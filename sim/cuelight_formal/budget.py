"""A pass never takes more rows than the group's budget."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Mux, Signal, Value

from cuelight_rtl.budget import Budget
from cuelight_rtl.params import Params

from .spec import Spec

__all__ = ["Taking", "assume_proven", "promised", "taking"]


@dataclass(frozen=True)
class Taking:
    """What the pass that is being formed, or was last, has taken in.

    Attributes
    ----------
    decoding, unbound, limit
        Decode rows, how many of them unbound, and ROWS, at its PLAN.
    entered, chunks, bound
        Whether it has an entry; rows of its chunks; how many seats it bound.
    """

    forming: Signal
    decoding: Signal
    unbound: Signal
    limit: Signal
    entered: Signal
    chunks: Signal
    bound: Signal


def promised(spec: Spec, room: Budget, params: Params, over: Value) -> Taking:
    """What forming promises the budget, until it is ``over``."""
    m = spec.m
    now = Taking(
        Signal(name="taking"),
        Signal(4, name="decoding"),
        Signal(4, name="unbound"),
        Signal(10, name="limit"),
        Signal(name="entered"),
        Signal(12, name="chunks"),
        Signal(4, name="bound"),
    )
    binds = room.add & (room.add_rows == 0)
    with m.If(room.plan):
        m.d.sync += [now.forming.eq(1), now.entered.eq(0), now.chunks.eq(0), now.bound.eq(0)]
        m.d.sync += [now.unbound.eq(room.unbound_rows), now.decoding.eq(room.decode_rows), now.limit.eq(room.row_limit)]
    with m.Elif(over):
        m.d.sync += now.forming.eq(0)
    with m.If(room.add):
        m.d.sync += [now.entered.eq(1), now.chunks.eq(now.chunks + room.add_rows), now.bound.eq(now.bound + binds)]
    spec.promise(
        "ROWS leaves 16 rows beside all decode rows, and is 512 at most.",
        (room.row_limit >= room.decode_rows + 16) & (room.row_limit <= 512),
        when=room.plan,
    )
    spec.promise(
        "Unbound decode rows are decode rows, a seat each.",
        (room.unbound_rows <= room.decode_rows) & (room.decode_rows <= params.seats),
        when=room.plan,
    )
    spec.promise(
        "The pass that is being formed is empty where no bound seat decodes, and it has no entry.",
        room.empty == ((now.decoding == now.unbound) & ~now.entered),
        when=now.forming,
    )
    spec.promise("Chunks come after PLAN.", now.forming & ~room.plan, when=room.add)
    spec.promise("A chunk has the grain's rows at most.", room.add_rows <= room.grain, when=room.add)
    spec.promise("A seat is bound where one may be.", room.may_bind, when=binds)
    return now


def taking(params: Params) -> Spec:
    """The budget of a pass beside a ghost that adds up the rows of the pass."""
    room = Budget(params)
    spec = Spec(room)
    m = spec.m
    taking = promised(spec, room, params, over=spec.any("over", 1))
    forming, entered, chunks, bound = taking.forming, taking.entered, taking.chunks, taking.bound
    unbound, decoding, limit = taking.unbound, taking.decoding, taking.limit
    taken = Signal(13)
    m.d.comb += taken.eq(decoding - unbound + bound + chunks)

    rows, cost = spec.inside("rows"), spec.inside("cost")
    grain = room.grain
    spec.claim("A pass never has more rows than ROWS.", taken <= limit, when=forming)
    spec.claim("No more seats are bound than PLAN counted.", bound <= unbound)
    spec.claim("As long as fewer were bound, another may be.", room.may_bind == (bound < unbound), when=forming)
    spec.claim(
        "The grain is a power of two that is 8 at least, or 0.",
        ((grain & (grain - 1)) == 0) & ((grain >= 8) | (grain == 0)),
    )
    spec.claim(
        "A chunk leaves the rows that are reserved, unless it is the first and 8 rows.",
        (grain + room.reserve + chunks + decoding <= limit) | (room.empty & (grain == 8)),
        when=forming & (grain != 0),
    )
    shifts = range(3, 10)
    spec.claim(
        "A chunk costs no more than what is left, unless it is the first and 8 rows.",
        Cat(~grain[bit] | (room.row_cost << bit <= cost) for bit in shifts).all() | (room.empty & (grain == 8)),
        when=grain != 0,
    )
    spec.claim(
        "The grain is the largest such power: twice as much has too many rows, or costs too much.",
        Cat(
            ~(Mux(rows > room.reserve, rows - room.reserve, 0) >= 1 << bit)
            | (room.row_cost << bit > cost)
            | (grain >= 1 << bit)
            for bit in shifts
        ).all(),
    )
    spec.claim("An empty pass always takes a chunk.", (grain >= 8) & room.rows_at_hand, when=room.empty)
    spec.claim(
        "The cost that is left never wraps: it falls only, until the next PLAN.",
        cost <= spec.past(cost),
        when=forming & ~spec.past(room.plan),
    )
    decoded = room.decode_rows * room.decode_cost
    spec.claim(
        "PLAN leaves COST less the cost of the decode rows, at least 0.",
        cost == spec.past(Mux(room.cost_limit > decoded, room.cost_limit - decoded, 0)),
        when=spec.past(room.plan),
    )
    spent_rows, spent_cost = spec.inside("spent_rows"), spec.inside("spent_cost")
    spec.claim(
        "The rows of a chunk and the cost of each are multiplied in the cycle after.",
        (spent_rows == spec.past(room.add_rows)) & (spent_cost == spec.past(room.row_cost)),
        when=spec.past(room.add),
    )
    spent = spent_rows * spent_cost
    spec.claim(
        "The product is taken off what is left, down to 0, and else nothing is until the next PLAN.",
        cost == spec.past(Mux(cost > spent, cost - spent, 0)),
        when=spec.past(Const(1)) & ~spec.past(room.plan),
    )
    spec.claim("In other cycles the product is 0.", spent_rows == 0, when=~spec.past(room.add))
    spec.lemma(
        "Rows left are the limit less decode rows, all of which have their place, and chunks.",
        rows + decoding + chunks == limit,
        when=forming,
    )
    spec.lemma(
        "No more decodes than there are seats.",
        (unbound <= decoding) & (decoding <= params.seats) & (limit >= decoding + 16) & (limit <= 512),
        when=forming,
    )
    spec.lemma("Seats to bind are counted.", spec.inside("to_bind") + bound == unbound)
    spec.lemma("Without an entry there is no chunk.", chunks == 0, when=~entered)
    spec.reach("A pass takes all its rows.", forming & (taken == limit))
    return spec


def assume_proven(spec: Spec, room: Budget, now: Taking) -> None:
    """What is proven of the budget, for proofs of other rooms."""
    grain = room.grain
    spec.assume(((grain & (grain - 1)) == 0) & ((grain >= 8) | (grain == 0)))
    spec.assume(~room.empty | ((grain >= 8) & room.rows_at_hand))
    spec.assume(~now.forming | (room.may_bind == (now.bound < now.unbound)))
    spec.assume(~now.forming | (now.decoding + now.chunks <= now.limit))
    fits = (grain + now.decoding + now.chunks <= now.limit) | (room.empty & (grain == 8))
    spec.assume(~(now.forming & (grain != 0)) | fits)
