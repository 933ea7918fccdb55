"""A pass never takes more rows than the group's budget."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Mux, Signal

from cuelight_rtl.budget import Budget
from cuelight_rtl.params import Params

from .spec import Spec

__all__ = ["taking"]


def taking(params: Params) -> Spec:
    """The budget of a pass beside a ghost that adds up the rows of the pass."""
    room = Budget(params)
    spec = Spec(room)
    m = spec.m
    chunks, bound, unbound, decoding, limit = Signal(12), Signal(4), Signal(4), Signal(4), Signal(10)
    taken = Signal(13)
    forming, entered = Signal(), Signal()
    binds = room.add & (room.add_rows == 0)
    m.d.comb += taken.eq(decoding - unbound + bound + chunks)

    # What forming promises: ROWS leaves 16 rows beside all seats, a chunk has the grain's rows at most, and the
    # smallest chunk is forced into a pass only that has no row and no entry.
    spec.assume((room.row_limit >= params.seats + 16) & (room.row_limit <= 512))
    spec.assume((room.unbound_rows <= room.decode_rows) & (room.decode_rows <= params.seats))
    spec.assume(~room.empty | (forming & (decoding == unbound) & ~entered))
    spec.assume(~room.add | (forming & ~room.plan & (room.add_rows <= room.grain)))
    spec.assume(~binds | room.may_bind)
    with m.If(room.plan):
        m.d.sync += [forming.eq(1), entered.eq(0), chunks.eq(0), bound.eq(0)]
        m.d.sync += [unbound.eq(room.unbound_rows), decoding.eq(room.decode_rows), limit.eq(room.row_limit)]
    with m.Elif(room.add):
        m.d.sync += [entered.eq(1), chunks.eq(chunks + room.add_rows), bound.eq(bound + binds)]

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
    spec.claim("An empty pass always takes a chunk.", grain >= 8, when=room.empty)
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
        (unbound <= decoding) & (decoding <= params.seats) & (limit >= params.seats + 16) & (limit <= 512),
        when=forming,
    )
    spec.lemma("Seats to bind are counted.", spec.inside("to_bind") + bound == unbound)
    spec.lemma("Without an entry there is no chunk.", chunks == 0, when=~entered)
    spec.lemma("Before PLAN nothing is taken.", (chunks == 0) & (bound == 0) & (unbound == 0), when=~forming)
    spec.reach("A pass takes all its rows.", forming & (taken == limit))
    return spec
