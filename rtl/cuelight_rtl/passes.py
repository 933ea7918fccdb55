"""The passes of the lane groups: which seats are in them, their chunks, their rows.

A pass lives in a room. Rooms are numbered: one for each lane, which holds pass 0 of the lane's own group, or pass k of
the pipeline that the lane is the k-th of; then one for each lane's second pass.
"""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from .params import Params

__all__ = ["Chunk", "Chunks", "Pass", "PassView"]


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


class Chunks(wiring.Component):
    """The entries of all passes.

    ``entry`` shows entry ``select`` of the pass in ``room`` one cycle later, for the scheduler's own use; ``shown``
    likewise ``show`` of ``show_room`` for the poll window. ``add`` writes ``chunk`` to place ``count`` of ``room``.
    """

    def __init__(self, params: Params) -> None:
        self._params = params
        chunk = Chunk(params)
        rooms, places = range(2 * params.lanes), range(params.entries)
        super().__init__(
            {
                "room": In(rooms),
                "add": In(1),
                "count": In(places),
                "chunk": In(chunk),
                "select": In(places),
                "entry": Out(chunk),
                "show_room": In(rooms),
                "show": In(places),
                "shown": Out(chunk),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        depth = 2 * self._params.lanes * self._params.entries
        m.submodules.ram = ram = memory.Memory(shape=Chunk(self._params), depth=depth, init=[])
        write, entry_read, shown_read = ram.write_port(), ram.read_port(), ram.read_port()
        m.d.comb += [
            write.en.eq(self.add),
            write.addr.eq(Cat(self.count, self.room)),
            write.data.eq(self.chunk),
            entry_read.addr.eq(Cat(self.select, self.room)),
            shown_read.addr.eq(Cat(self.show, self.show_room)),
            self.entry.eq(entry_read.data),
            self.shown.eq(shown_read.data),
        ]
        return m


class PassView(wiring.Signature):
    """A pass as lanes see it.

    ``index`` is its k in its group; with ``turned`` it names the record buffer. ``count`` are the entries.
    """

    def __init__(self, params: Params) -> None:
        super().__init__(
            {
                "number": Out(32),
                "index": Out(3),
                "turned": Out(1, init=1),
                "rows": Out(10),
                "count": Out(range(params.entries + 1)),
                "samples": Out(1),
                "members": Out(params.seats),
            }
        )


class Pass(wiring.Component):
    """A pass, from PLAN to the end of its loop point (docs/device.md §6).

    ``busy`` are its members while it is alive, up to its loop point; ``leaving`` and
    ``sampling`` are those reported finished, and those that sampled, in its loop point.
    """

    def __init__(self, params: Params) -> None:
        self._params = params
        seats = params.seats
        super().__init__(
            {
                "plan": In(1),
                "plan_number": In(32),
                "decoding": In(seats),
                "decode_rows": In(range(seats + 1)),
                "add": In(1),
                "chunk": In(Chunk(params)),
                "form": In(1),
                "loop": In(1),
                "end": In(1),
                "drop": In(1),
                "finish": In(1),
                "finish_seats": In(seats),
                "view": Out(PassView(params)),
                "alive": Out(1),
                "decode": Out(seats),
                "busy": Out(seats),
                "leaving": Out(seats),
                "sampling": Out(seats),
                "binds": Out(1),
                "full": Out(1),
                "empty": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        view, seats = self.view, self._params.seats
        looping = Signal()
        sampled = Signal(seats)
        finished = Signal(seats)
        one = Signal(seats)
        decodes = self.chunk.rows == 0
        m.d.comb += [
            one.eq(1 << self.chunk.seat),
            self.full.eq(view.count == self._params.entries),
            self.empty.eq((view.count == 0) & (view.rows == 0)),
            self.busy.eq(Mux(self.alive & ~looping, view.members, 0)),
            self.leaving.eq(Mux(looping, finished, 0)),
            self.sampling.eq(Mux(looping, sampled, 0)),
        ]
        with m.If(self.plan):
            m.d.sync += [
                view.turned.eq(~view.turned),
                view.number.eq(self.plan_number),
                view.rows.eq(self.decode_rows),
                view.count.eq(0),
                view.samples.eq(self.decode_rows != 0),
                view.members.eq(self.decoding),
                self.decode.eq(self.decoding),
                self.binds.eq(0),
                sampled.eq(self.decoding),
                finished.eq(0),
            ]
        with m.If(self.add):
            m.d.sync += [
                view.members.eq(view.members | one),
                view.rows.eq(view.rows + Mux(decodes, Const(1), self.chunk.rows)),
                view.count.eq(view.count + 1),
                self.binds.eq(self.binds | self.chunk.bind),
            ]
            with m.If(decodes):
                m.d.sync += self.decode.eq(self.decode | one)
            with m.If(decodes | self.chunk.last):
                m.d.sync += [sampled.eq(sampled | one), view.samples.eq(1)]
        with m.If(self.form):
            m.d.sync += self.alive.eq(1)
        with m.If(self.finish):
            m.d.sync += finished.eq(finished | (self.finish_seats & view.members))
        with m.If(self.loop):
            m.d.sync += looping.eq(1)
        with m.If(self.end | self.drop):
            m.d.sync += [self.alive.eq(0), looping.eq(0)]
        return m
