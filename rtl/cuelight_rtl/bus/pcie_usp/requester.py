"""RQ: what the device masters, a packet at a time.

References: AMD PG213 (1.3) for the stream, PCI Express Base Specification 4.0, 2.2.7, for what a packet may hold.
"""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ... import regmap
from ...encode import lowest
from .courier import UNITS, Letter
from .streams import RQ, RequestType, RqDescriptor

__all__ = ["Departure", "Message", "Requester"]

_MPS_UNITS = 8
"""Units of 128 bytes, the smallest payload that the function may be limited to."""
_DISPATCH_UNITS = regmap.LanePort.RING_STRIDE // 16


class Message(wiring.Signature):
    """A dword that is written to announce something."""

    def __init__(self) -> None:
        super().__init__({"valid": Out(1), "address": Out(64), "data": Out(32), "taken": In(1)})


class Departure(wiring.Signature):
    """The hard block tells that no completion of ours overtakes the packet with a number any more."""

    def __init__(self) -> None:
        super().__init__({"valid": Out(1), "number": Out(6)})


class Requester(wiring.Component):
    """Writes letters and messages, and asks for heartbeats: 32-bit or 64-bit addresses, traffic class 0, strict order.

    Heartbeat reads go first, then the letter, then the message. So a message comes behind the letter that was there
    before it; and it waits for one letter at most, since the next one takes longer to fetch than a message to write.
    A record is cut where its address is a multiple of the largest payload, so nothing crosses 4 KiB.

    A lane that is not ``pushing`` has its letter dropped, one that does not ask for a ``read`` has none: a packet may
    still be on its way out then, or the letter be there, and so long the lane is ``busy``. Then it is ``leaving`` until
    its last packet has departed: inside of the hard block completions may overtake what came on RQ. For that, packets
    of letters have numbers, 1 to 63 in turn, and all others 0. The hard block has room for fewer packets than that.
    Numbers go on through resets, as what departs late must not be taken for something new.

    ``max_payload`` is the hard block's code, 0 for 128 bytes, 1 for 256 and 2 or more for 512.
    """

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        super().__init__(
            {
                "mastering": In(1),
                "max_payload": In(2),
                "pushing": In(lanes),
                "port_address": In(64).array(lanes),
                "heartbeat_address": In(64).array(lanes),
                "read": In(lanes),
                "tag": In(8).array(lanes),
                "sent": Out(lanes),
                "letter": In(Letter()),
                "pushed": Out(lanes),
                "message": In(Message()),
                "busy": Out(lanes),
                "leaving": Out(lanes),
                "departures": In(Departure()).array(2),
                "rq": Out(RQ),
            }
        )
        self.head = Signal(RqDescriptor)
        """Of the packet that begins in this cycle."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        letter, message, outgoing = self.letter, self.message, self.rq.payload
        # Which lane the packet on RQ is of, if of any, and how far a letter is: units written of its record, units
        # that its present packet still needs.
        owner = Signal(self._lanes)
        unit, left = (Signal(range(UNITS + 2), name=name) for name in ("unit", "left"))
        middle, in_record = left != 0, unit != letter.units
        reader = lowest(m, self.read, "reader")
        addressee = (1 << letter.lane)[: self._lanes]
        wanted = (addressee & self.pushing).any()
        m.d.comb += self.busy.eq(Mux(self.rq.valid | middle, owner, 0) | Mux(letter.valid, addressee, 0))

        room, chooses = Signal(), Signal()
        numbered = self._number(m, chooses)
        m.d.comb += [room.eq(~self.rq.valid | self.rq.ready), chooses.eq(room & ~middle & self.mastering)]
        with m.If(room):
            m.d.sync += self.rq.valid.eq(0)

        with m.If(chooses & self.read.any()):
            self._begin(m, RequestType.MEMORY_READ, Array(self.heartbeat_address)[reader], 1, keep=0x0F)
            m.d.comb += [self.head.tag.eq(Array(self.tag)[reader]), self.sent.eq((1 << reader)[: self._lanes])]
            m.d.sync += owner.eq(self.sent)
        with m.Elif(letter.valid & ~wanted & ~middle):
            m.d.comb += letter.done.eq(1)
        with m.Elif(chooses & letter.valid):
            count, address = self._cut(m, unit, in_record)
            payload = Mux(in_record, letter.even, letter.descriptor[:128])
            self._begin(m, RequestType.MEMORY_WRITE, address, count << 2, payload, keep=0xFF)
            m.d.sync += [owner.eq(addressee), left.eq(count - 1), outgoing.last.eq(count == 1)]
            m.d.comb += numbered.eq(addressee)
            with m.If(in_record):
                m.d.sync += unit.eq(unit + 1)
        with m.Elif(chooses & message.valid):
            self._begin(m, RequestType.MEMORY_WRITE, message.address, 1, message.data, keep=0x1F)
            m.d.comb += message.taken.eq(1)
            m.d.sync += owner.eq(0)

        with m.If(room & middle):
            ends = left <= 2
            m.d.sync += [
                self.rq.valid.eq(1),
                outgoing.data.eq(Mux(in_record, Cat(letter.odd, letter.even), letter.descriptor[128:])),
                outgoing.keep.eq(Mux(left == 1, 0x0F, 0xFF)),
                outgoing.last.eq(ends),
                left.eq(Mux(ends, 0, left - 2)),
            ]
            with m.If(in_record):
                m.d.sync += unit.eq(unit + Mux(left == 1, 1, 2))
            with m.Else():
                m.d.comb += [letter.done.eq(1), self.pushed.eq(addressee)]
        with m.If(letter.done):
            m.d.sync += unit.eq(0)
        # Between two packets `unit` is even: packets are cut at multiples of an even number.
        m.d.comb += [letter.odd_row.eq(unit >> 1), letter.even_row.eq((unit + 1) >> 1)]
        return m

    def _number(self, m: Module, begins: Signal) -> Signal:
        """Numbers packets that may begin; the result says which lane's letter one is of that does."""
        numbered, number = Signal(self._lanes), Signal(6, init=1, reset_less=True)
        user = self.rq.payload.user
        with m.If(begins):
            m.d.sync += Cat(user.sequence_low, user.sequence_high).eq(Mux(numbered.any(), number, 0))
        with m.If(numbered.any()):
            m.d.sync += number.eq(Mux(number == 63, 1, number + 1))
        for lane in range(self._lanes):
            latest = Signal(6, name=f"latest_{lane}")
            departs = Cat(each.valid & (each.number == latest) for each in self.departures).any()
            with m.If(numbered[lane]):
                m.d.sync += [self.leaving[lane].eq(1), latest.eq(number)]
            with m.Elif(departs):
                m.d.sync += self.leaving[lane].eq(0)
        return numbered

    def _begin(
        self, m: Module, kind: RequestType, address: Value, count: Value | int, payload: ValueLike = 0, *, keep: int
    ) -> None:
        """Puts the first beat of a packet on RQ."""
        outgoing = self.rq.payload
        m.d.comb += [self.head.kind.eq(kind), self.head.address.eq(address >> 2), self.head.count.eq(count)]
        m.d.sync += [
            self.rq.valid.eq(1),
            outgoing.data.eq(Cat(self.head, payload)),
            outgoing.keep.eq(keep),
            outgoing.last.eq(1),
            outgoing.user.first_be.eq(0xF),
            outgoing.user.last_be.eq(Mux(self.head.count == 1, 0, 0xF)),
        ]

    def _cut(self, m: Module, unit: Signal, in_record: Value) -> tuple[Value, Value]:
        """Units and address of a letter's next packet."""
        letter = self.letter
        most, fits, count = Signal(6), Signal(6), Signal(range(UNITS + 1))
        rest = letter.units - unit
        m.d.comb += [
            most.eq(_MPS_UNITS << Mux(self.max_payload[1], 2, self.max_payload[0])),
            fits.eq(most - (unit & (most - 1))),
            count.eq(Mux(in_record, Mux(rest < fits, rest, fits), _DISPATCH_UNITS)),
        ]
        record = regmap.LanePort.RECORD + letter.buffer * regmap.LanePort.RECORD_STRIDE + (unit << 4)
        place = regmap.LanePort.RING + letter.place * regmap.LanePort.RING_STRIDE
        return count, (Array(self.port_address)[letter.lane] + Mux(in_record, record, place))[:64]
