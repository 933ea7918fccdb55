"""The pass of a lane group: which seats are in it, its chunks, its rows."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from .params import ENTRIES, Params

__all__ = ["Chunk", "Pass"]

SMALLEST_CHUNK = 8


class Chunk(data.StructLayout):
    """An entry of a pass: rows of one prompt."""

    def __init__(self, params: Params) -> None:
        super().__init__(
            {
                "slot": params.slot_bits,
                "epoch": 16,
                "start": 20,
                "seat": params.seat_bits,
                "rows": 10,
                "first": 1,
                "last": 1,
                "bind": 1,
            }
        )


class Pass(wiring.Component):
    """A group's pass, from PLAN to the end of its loop point (docs/device.md §6).

    ``grain`` is the most rows the next chunk may have: the largest power of two that leaves ``reserve`` rows and whose
    cost, at ``row_cost`` a row, is within the pass's budget; 0 if there is none. ``rows_at_hand`` says whether the
    rows alone allow a chunk. ``entry`` shows the chunk ``select`` one cycle later, for the scheduler's own use;
    ``shown`` likewise ``show`` for the poll window.
    """

    def __init__(self, params: Params) -> None:
        self._params = params
        seats = params.seats
        count = range(seats + 1)
        chunk = Chunk(params)
        super().__init__(
            {
                "plan": In(1),
                "decoding": In(seats),
                "awake_count": In(count),
                "unbound_count": In(count),
                "row_limit": In(10),
                "cost_limit": In(32),
                "decode_cost": In(16),
                "reserve": In(12),
                "row_cost": In(27),
                "add": In(1),
                "chunk": In(chunk),
                "form": In(1),
                "end": In(1),
                "finish": In(1),
                "finish_seats": In(seats),
                "alive": Out(1),
                "number": Out(32),
                "decode": Out(seats),
                "members": Out(seats),
                "sampled": Out(seats),
                "finished": Out(seats),
                "rows": Out(10),
                "count": Out(range(ENTRIES + 1)),
                "binds": Out(1),
                "samples": Out(1),
                "full": Out(1),
                "may_bind": Out(1),
                "empty": Out(1),
                "rows_at_hand": Out(1),
                "grain": Out(10),
                "select": In(range(ENTRIES)),
                "entry": Out(chunk),
                "show": In(range(ENTRIES)),
                "shown": Out(chunk),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.chunk_ram = ram = memory.Memory(shape=Chunk(self._params), depth=ENTRIES, init=[])
        write, entry_read, shown_read = ram.write_port(), ram.read_port(), ram.read_port()
        m.d.comb += [
            write.en.eq(self.add),
            write.addr.eq(self.count),
            write.data.eq(self.chunk),
            entry_read.addr.eq(self.select),
            shown_read.addr.eq(self.show),
            self.entry.eq(entry_read.data),
            self.shown.eq(shown_read.data),
        ]
        self._keep_budgets(m)
        self._keep_members(m)
        return m

    def _keep_budgets(self, m: Module) -> None:
        row_budget, cost_budget = Signal(10), Signal(32)
        spent_rows, spent_cost = Signal(10), Signal(27)
        at_hand = Signal(10)
        fits = Signal(10)
        m.d.comb += [
            self.full.eq(self.count == ENTRIES),
            self.empty.eq((self.count == 0) & (self.rows == 0)),
            at_hand.eq(Mux(row_budget > self.reserve, row_budget - self.reserve, 0)),
            self.rows_at_hand.eq((at_hand >= SMALLEST_CHUNK) | self.empty),
            fits[3].eq(((at_hand >= SMALLEST_CHUNK) & (self.row_cost << 3 <= cost_budget)) | self.empty),
        ]
        for bit in range(4, 10):
            m.d.comb += fits[bit].eq((at_hand >= 1 << bit) & (self.row_cost << bit <= cost_budget))
        for bit in range(3, 10):
            m.d.comb += self.grain[bit].eq(fits[bit] & ~fits[bit + 1 :].any())

        # The cost of a chunk takes a cycle of its own; the next one is weighed later.
        cost = spent_rows * spent_cost
        m.d.sync += spent_rows.eq(0)
        with m.If(spent_rows != 0):
            m.d.sync += cost_budget.eq(Mux(cost_budget > cost, cost_budget - cost, 0))
        with m.If(self.plan):
            decode_cost = self.awake_count * self.decode_cost
            m.d.sync += [
                row_budget.eq(self.row_limit - self.awake_count),
                cost_budget.eq(Mux(self.cost_limit > decode_cost, self.cost_limit - decode_cost, 0)),
            ]
        with m.If(self.add):
            m.d.sync += [
                row_budget.eq(row_budget - self.chunk.rows),
                spent_rows.eq(self.chunk.rows),
                spent_cost.eq(self.row_cost),
            ]

    def _keep_members(self, m: Module) -> None:
        one = Signal(self._params.seats)
        # Rows are set aside for seats that wait at PLAN; one credited later has none of its own.
        to_bind = Signal.like(self.unbound_count)
        m.d.comb += self.may_bind.eq(to_bind != 0)
        decodes = self.chunk.rows == 0
        m.d.comb += one.eq(1 << self.chunk.seat)
        with m.If(self.plan):
            awake = self.awake_count - self.unbound_count
            m.d.sync += [
                self.number.eq(self.number + 1),
                to_bind.eq(self.unbound_count),
                self.decode.eq(self.decoding),
                self.members.eq(self.decoding),
                self.sampled.eq(self.decoding),
                self.rows.eq(awake),
                self.count.eq(0),
                self.binds.eq(0),
                self.samples.eq(awake != 0),
                self.finished.eq(0),
            ]
        with m.If(self.add):
            m.d.sync += [
                self.members.eq(self.members | one),
                self.rows.eq(self.rows + Mux(decodes, 1, self.chunk.rows)),
                self.count.eq(self.count + 1),
                self.binds.eq(self.binds | self.chunk.bind),
            ]
            with m.If(decodes):
                m.d.sync += [self.decode.eq(self.decode | one), to_bind.eq(to_bind - 1)]
            with m.If(decodes | self.chunk.last):
                m.d.sync += [self.sampled.eq(self.sampled | one), self.samples.eq(1)]
        with m.If(self.form):
            m.d.sync += self.alive.eq(self.rows != 0)
        with m.If(self.finish):
            m.d.sync += self.finished.eq(self.finished | (self.finish_seats & self.members))
        with m.If(self.end):
            m.d.sync += [self.alive.eq(0), self.finished.eq(0)]
