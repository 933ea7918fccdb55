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
            }
        )


class Pass(wiring.Component):
    """A group's pass, from PLAN to the end of its loop point (docs/device.md §6).

    ``grain`` is the most rows the next chunk may have, 0 if no further chunk fits. ``entry`` shows the chunk
    ``select`` one cycle later, for the scheduler's own use; ``shown`` likewise ``show`` for the poll window.
    """

    def __init__(self, params: Params) -> None:
        self._params = params
        seats = params.seats
        chunk = Chunk(params)
        super().__init__(
            {
                "plan": In(1),
                "decoding": In(seats),
                "decoding_count": In(range(seats + 1)),
                "row_limit": In(10),
                "add": In(1),
                "chunk": In(chunk),
                "form": In(1),
                "end": In(1),
                "finish": In(1),
                "finish_seats": In(seats),
                "alive": Out(1),
                "number": Out(32),
                "decode": Out(seats),
                "finished": Out(seats),
                "rows": Out(10),
                "count": Out(range(ENTRIES + 1)),
                "binds": Out(1),
                "samples": Out(1),
                "grain": Out(10),
                "select": In(range(ENTRIES)),
                "entry": Out(chunk),
                "show": In(range(ENTRIES)),
                "shown": Out(chunk),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        seats = self._params.seats
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

        members = Signal(seats)
        budget = Signal(10)
        fits = Signal(10)
        for bit in range(10):
            m.d.comb += fits[bit].eq(budget[bit] & ~budget[bit + 1 :].any())
        m.d.comb += self.grain.eq(Mux((budget >= SMALLEST_CHUNK) & (self.count != ENTRIES), fits, 0))

        with m.If(self.plan):
            m.d.sync += [
                self.number.eq(self.number + 1),
                self.decode.eq(self.decoding),
                members.eq(self.decoding),
                self.rows.eq(self.decoding_count),
                budget.eq(self.row_limit - self.decoding_count),
                self.count.eq(0),
                self.binds.eq(0),
                self.samples.eq(self.decoding_count != 0),
                self.finished.eq(0),
            ]
        with m.If(self.add):
            m.d.sync += [
                members.eq(members | (1 << self.chunk.seat)),
                self.rows.eq(self.rows + self.chunk.rows),
                budget.eq(budget - self.chunk.rows),
                self.count.eq(self.count + 1),
                self.binds.eq(self.binds | self.chunk.first),
                self.samples.eq(self.samples | self.chunk.last),
            ]
        with m.If(self.form):
            m.d.sync += self.alive.eq(self.rows != 0)
        with m.If(self.finish):
            m.d.sync += self.finished.eq(self.finished | (self.finish_seats & members))
        with m.If(self.end):
            m.d.sync += [self.alive.eq(0), self.finished.eq(0)]
        return m
