"""A lane group's seats as bitmaps, and its budgets."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .encode import lowest
from .params import Params

__all__ = ["Seats"]


class Seats(wiring.Component):
    """Who sits where in a lane group, who decodes, who must leave; configuration and KV credit of the group.

    Strobes act on ``seat`` in this cycle. ``free_seat`` and ``leaving_seat`` are registered: they are right one
    cycle after the bitmaps changed.
    """

    def __init__(self, params: Params) -> None:
        self._params = params
        seats, bits = params.seats, params.seat_bits
        super().__init__(
            {
                "seat": In(bits),
                "take": In(1),
                "turn": In(1),
                "leave": In(1),
                "mark": In(1),
                "enqueue": In(1),
                "dequeue": In(1),
                "reset_begin": In(1),
                "reset_end": In(1),
                "finished": In(seats),
                "credit_take": In(1),
                "credit_give": In(1),
                "blocks": In(16),
                "value": In(32),
                "set_limit": In(1),
                "set_rows": In(1),
                "set_blocks": In(1),
                "seated": Out(seats),
                "decoding": Out(seats),
                "marked": Out(seats),
                "resetting": Out(1),
                "queued_count": Out(16),
                "seated_count": Out(range(seats + 1)),
                "decoding_count": Out(range(seats + 1)),
                "free_any": Out(1),
                "free_seat": Out(bits),
                "leaving_any": Out(1),
                "leaving_seat": Out(bits),
                "limit": Out(range(seats + 1), init=seats),
                "rows": Out(10, init=params.default_rows),
                "blocks_total": Out(16),
                "blocks_free": Out(16),
                "vacant": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        seats = self._params.seats
        one = Signal(seats)
        m.d.comb += one.eq(1 << self.seat)
        everyone = Const((1 << seats) - 1, seats)
        below_limit = Signal(seats, init=everyone.value)

        was_decoding = (self.decoding & one).any()
        with m.If(self.take):
            m.d.sync += [self.seated.eq(self.seated | one), self.seated_count.eq(self.seated_count + 1)]
        with m.If(self.turn):
            m.d.sync += [self.decoding.eq(self.decoding | one), self.decoding_count.eq(self.decoding_count + 1)]
        with m.If(self.mark):
            m.d.sync += self.marked.eq(self.marked | one)
        with m.If(self.leave):
            m.d.sync += [
                self.seated.eq(self.seated & ~one),
                self.decoding.eq(self.decoding & ~one),
                self.marked.eq(self.marked & ~one),
                self.seated_count.eq(self.seated_count - 1),
                self.decoding_count.eq(self.decoding_count - was_decoding),
            ]
        m.d.sync += self.queued_count.eq(self.queued_count + self.enqueue - self.dequeue)
        with m.If(self.reset_begin):
            m.d.sync += self.resetting.eq(1)
        with m.Elif(self.reset_end):
            m.d.sync += self.resetting.eq(0)

        free = Signal(seats)
        leaving = Signal(seats)
        m.d.comb += [
            free.eq(~self.seated & below_limit),
            leaving.eq(self.seated & Mux(self.resetting, everyone, self.marked | self.finished)),
            self.vacant.eq((self.queued_count == 0) & (self.seated_count == 0)),
        ]
        m.d.sync += [
            self.free_any.eq(free.any()),
            self.free_seat.eq(lowest(m, free, "free")),
            self.leaving_any.eq(leaving.any()),
            self.leaving_seat.eq(lowest(m, leaving, "leaving")),
        ]

        with m.If(self.set_limit):
            m.d.sync += self.limit.eq(self.value)
        m.d.sync += below_limit.eq(everyone >> (seats - self.limit)[: len(self.limit)])
        with m.If(self.set_rows):
            m.d.sync += self.rows.eq(self.value)
        with m.If(self.set_blocks):
            m.d.sync += [self.blocks_total.eq(self.value), self.blocks_free.eq(self.value)]
        with m.If(self.credit_take):
            m.d.sync += self.blocks_free.eq(self.blocks_free - self.blocks)
        with m.Elif(self.credit_give):
            m.d.sync += self.blocks_free.eq(self.blocks_free + self.blocks)
        return m
