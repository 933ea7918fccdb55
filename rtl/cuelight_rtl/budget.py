"""What the pass that is being formed may still take in."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .params import Params

__all__ = ["Budget"]

SMALLEST_CHUNK = 8


class Budget(wiring.Component):
    """Rows, cost, and seats to bind (docs/device.md §6.7); one pass is formed at a time.

    ``grain`` is the most rows the next chunk may have: the largest power of two that leaves ``reserve`` rows and whose
    cost, at ``row_cost`` a row, is within the budget; 0 if there is none. ``rows_at_hand`` says whether the rows alone
    allow a chunk. A pass that is ``empty`` takes the smallest chunk whatever it costs. ``bind`` counts a seat as bound;
    ``may_bind`` says that rows are set aside for another: one credited after PLAN has none.
    """

    def __init__(self, params: Params) -> None:
        count = range(params.seats + 1)
        super().__init__(
            {
                "plan": In(1),
                "decode_rows": In(count),
                "unbound_rows": In(count),
                "row_limit": In(10),
                "cost_limit": In(32),
                "decode_cost": In(16),
                "empty": In(1),
                "reserve": In(12),
                "row_cost": In(27),
                "add": In(1),
                "add_rows": In(10),
                "may_bind": Out(1),
                "rows_at_hand": Out(1),
                "grain": Out(10),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rows = Signal(10)
        cost = Signal(32)
        to_bind = Signal.like(self.unbound_rows)
        spent_rows = Signal(10)
        spent_cost = Signal(27)
        at_hand, fits = Signal(10), Signal(10)
        m.d.comb += [
            self.may_bind.eq(to_bind != 0),
            at_hand.eq(Mux(rows > self.reserve, rows - self.reserve, 0)),
            self.rows_at_hand.eq((at_hand >= SMALLEST_CHUNK) | self.empty),
            fits[3].eq(((at_hand >= SMALLEST_CHUNK) & (self.row_cost << 3 <= cost)) | self.empty),
        ]
        for bit in range(4, 10):
            m.d.comb += fits[bit].eq((at_hand >= 1 << bit) & (self.row_cost << bit <= cost))
        for bit in range(3, 10):
            m.d.comb += self.grain[bit].eq(fits[bit] & ~fits[bit + 1 :].any())

        # The cost of a chunk takes a cycle of its own; the next one is weighed later.
        spent = spent_rows * spent_cost
        m.d.sync += spent_rows.eq(0)
        with m.If(spent_rows != 0):
            m.d.sync += cost.eq(Mux(cost > spent, cost - spent, 0))
        with m.If(self.plan):
            decode_cost = self.decode_rows * self.decode_cost
            m.d.sync += [
                to_bind.eq(self.unbound_rows),
                rows.eq(self.row_limit - self.decode_rows),
                cost.eq(Mux(self.cost_limit > decode_cost, self.cost_limit - decode_cost, 0)),
            ]
        with m.If(self.add):
            m.d.sync += [rows.eq(rows - self.add_rows), spent_rows.eq(self.add_rows), spent_cost.eq(self.row_cost)]
            with m.If(self.add_rows == 0):
                m.d.sync += to_bind.eq(to_bind - 1)
        return m
