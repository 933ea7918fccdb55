"""What a host does that polls, done for the lanes in PUSH (docs/push.md)."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ... import regmap
from ...encode import lowest
from ...params import ENTRIES, Params
from ...record import BITMAP_WORDS
from ...registers import Bus
from ...regmap import DispatchHead, DispatchPass

__all__ = ["UNITS", "Courier", "Letter"]

UNITS = (BITMAP_WORDS + 2 * ENTRIES) // 2
"""Of 16 bytes, of the largest record."""


class Letter(wiring.Signature):
    """A dispatch on its way, from the courier's side: to ``lane``, with ``units`` of a record for buffer ``buffer``.

    ``even`` and ``odd`` show the record's units 2 ``even_row`` and 2 ``odd_row`` + 1; ``descriptor`` is the dispatch.
    ``done`` takes the letter away.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "valid": Out(1),
                "lane": Out(3),
                "units": Out(range(UNITS + 1)),
                "buffer": Out(4),
                "place": Out(4),
                "descriptor": Out(256),
                "even": Out(128),
                "odd": Out(128),
                "even_row": In(range((UNITS + 1) // 2)),
                "odd_row": In(range((UNITS + 1) // 2)),
                "done": In(1),
            }
        )


class Courier(wiring.Component):
    """Fetches dispatches from the poll windows, one after the other, and looks after those that are outstanding.

    A pass's record goes along with its first dispatch, and unless it was already fetched since the lane is ``pushing``.
    As a dispatch may end while its record is read, its head is read again at the end: only if it still stands, all that
    was read belongs together. The dispatch is popped as soon as the letter is complete, for a lane that falls before
    it is written has it offered again.

    ``reoffer`` and ``look`` are requests, which go first; ``hit`` says that a lane's dispatches have just been offered
    again.
    """

    def __init__(self, params: Params) -> None:
        self._lanes = params.lanes
        lanes = params.lanes
        super().__init__(
            {
                "bus": Out(Bus()),
                "poll_valid": In(lanes),
                "pushing": In(lanes),
                "look": In(lanes),
                "reoffer": In(lanes),
                "hit": In(lanes),
                "looked": Out(lanes),
                "oldest": Out(32),
                "reoffered": Out(lanes),
                "letter": Out(Letter()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus, letter = self.bus, self.letter
        lane, latest = (Signal(range(max(self._lanes, 2)), name=name) for name in ("lane", "latest"))
        head, second, named = Signal(DispatchHead), Signal(DispatchPass), Signal(32)
        issued, answered, total = (Signal(range(2 * UNITS + 2), name=name) for name in ("issued", "answered", "total"))
        again = Signal()
        storing = Signal()
        here = (1 << lane)[: self._lanes]
        known = Array(Signal(16, name=f"known_{index}") for index in range(self._lanes))
        for index, buffers in enumerate(known):
            with m.If(~self.pushing[index]):
                m.d.sync += buffers.eq(0)

        with m.If(bus.valid & bus.ready):
            m.d.sync += issued.eq(issued + 1)
        with m.If(bus.answer_valid):
            m.d.sync += answered.eq(answered + 1)
        with m.If(letter.done):
            m.d.sync += letter.valid.eq(0)
        m.d.comb += [
            bus.strobe.eq(0x0F),
            self.oldest.eq(bus.answer[:32]),
            letter.descriptor.eq(Cat(head, second, Const(0, 112), head.sequence[:16])),
            letter.buffer.eq(head.buffer),
            letter.place.eq(head.sequence[:4]),
        ]
        poll = regmap.POLL + lane * regmap.POLL_STRIDE
        urgent, offered = self.reoffer | self.look, self.poll_valid & self.pushing
        later = offered & ((Const(~0, self._lanes + 1) << (latest + 1))[: self._lanes])
        watched = lowest(m, urgent, "watched")
        chosen = Mux(later.any(), lowest(m, later, "later"), lowest(m, offered, "offered"))

        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [issued.eq(0), answered.eq(0)]
                with m.If(urgent.any()):
                    m.d.sync += [lane.eq(watched), again.eq(self.reoffer.bit_select(watched, 1))]
                    m.next = "OLDEST"
                with m.Elif(offered.any() & ~letter.valid):
                    m.d.sync += [lane.eq(chosen), latest.eq(chosen)]
                    m.next = "DISPATCH"

            with m.State("DISPATCH"):
                m.d.comb += [bus.valid.eq(issued < 2), bus.address.eq(poll + regmap.Poll.DISPATCH + (issued << 3))]
                with m.If(bus.answer_valid & (answered == 0)):
                    m.d.sync += head.eq(bus.answer)
                with m.Elif(bus.answer_valid):
                    m.d.sync += [second.eq(bus.answer), issued.eq(0), answered.eq(0)]
                    m.d.sync += [letter.lane.eq(lane), letter.units.eq(0)]
                    now = DispatchPass(bus.answer)
                    m.d.sync += total.eq(BITMAP_WORDS + 2 * now.entries + 1)
                    with m.If((head.sequence == 0) | (now.stamp != head.sequence[:16])):
                        m.next = "IDLE"
                    with m.Elif(head.first | ~known[lane].bit_select(head.buffer, 1)):
                        m.next = "RECORD"
                    with m.Else():
                        m.d.sync += letter.valid.eq(1)
                        m.next = "POP"

            with m.State("RECORD"):
                ends = answered == total - 1
                offset = Mux(issued == total - 1, regmap.Poll.DISPATCH, regmap.Poll.RECORD + (issued << 3))
                m.d.comb += [bus.valid.eq(issued != total), bus.address.eq(poll + offset)]
                m.d.comb += storing.eq(bus.answer_valid & ~ends)
                with m.If(bus.answer_valid & ends):
                    m.next = "IDLE"
                    with m.If(bus.answer[:32] == head.sequence):
                        m.d.sync += known[lane].eq(known[lane] | (1 << head.buffer)[:16])
                        m.d.sync += [letter.valid.eq(1), letter.units.eq(total >> 1)]
                        m.next = "POP"

            with m.State("POP"):
                m.d.comb += [bus.valid.eq(1), bus.write.eq(1), bus.address.eq(poll + regmap.Poll.POP)]
                m.d.comb += bus.data.eq(head.sequence)
                with m.If(bus.ready):
                    m.next = "IDLE"

            with m.State("OLDEST"):
                base = regmap.LANE + lane * regmap.LANE_STRIDE
                m.d.comb += [bus.valid.eq(issued == 0), bus.address.eq(base + regmap.Lane.OLDEST)]
                with m.If(bus.answer_valid):
                    m.d.sync += named.eq(self.oldest)
                    m.next = "IDLE"
                    with m.If(~again):
                        m.d.comb += self.looked.eq(here)
                    with m.Elif(self.oldest == 0):
                        m.d.comb += self.reoffered.eq(here)
                    with m.Else():
                        m.next = "REOFFER"

            with m.State("REOFFER"):
                m.d.comb += [bus.valid.eq(1), bus.write.eq(1), bus.address.eq(poll + regmap.Poll.REOFFER)]
                m.d.comb += bus.data.eq(named)
                with m.If(bus.ready):
                    m.next = "CHECK"

            # It may have ended just before: then another one is the oldest.
            with m.State("CHECK"):
                m.d.sync += [issued.eq(0), answered.eq(0)]
                m.next = "OLDEST"
                with m.If((self.hit & here).any()):
                    m.d.comb += self.reoffered.eq(here)
                    m.next = "IDLE"
        self._store(m, storing, answered)
        return m

    def _store(self, m: Module, storing: Signal, word: Signal) -> None:
        """The record, units with even numbers in one memory and those with odd numbers in the other."""
        for number, (row, shown) in enumerate(
            ((self.letter.even_row, self.letter.even), (self.letter.odd_row, self.letter.odd))
        ):
            memory = Memory(shape=unsigned(128), depth=(UNITS + 1) // 2, init=[])
            m.submodules[f"units_{number}"] = memory
            writes, reads = memory.write_port(granularity=64), memory.read_port(domain="comb")
            m.d.comb += [
                writes.addr.eq(word >> 2),
                writes.data.eq(self.bus.answer.replicate(2)),
                writes.en.eq(Mux(storing & (word[1] == number), Cat(~word[0], word[0]), 0)),
                reads.addr.eq(row),
                shown.eq(reads.data),
            ]
