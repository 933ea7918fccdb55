"""What the device masters keeps to the rules of the link, and to who may be written to."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Mux, Signal, Value

from cuelight_rtl import regmap
from cuelight_rtl.bus.pcie_usp.courier import UNITS
from cuelight_rtl.bus.pcie_usp.requester import Requester
from cuelight_rtl.bus.pcie_usp.streams import RequestType, RqDescriptor

from .spec import Spec

__all__ = ["packets"]


def packets(lanes: int) -> Spec:
    """RQ, beside a ghost that follows the packet on it; letters, reads and messages come as they like."""
    room = Requester(lanes)
    spec = Spec(room)
    m, letter, message, rq = spec.m, room.letter, room.message, room.rq
    spec.assume(~Cat(address[:12] for address in room.port_address).any())
    spec.assume(~Cat(address[:2] for address in room.heartbeat_address).any() & ~message.address[:2].any())
    for addresses in (room.port_address, room.heartbeat_address):
        for address in addresses:
            spec.assume(spec.first() | (address == spec.past(address)))
    spec.assume(room.max_payload == spec.some("max_payload", 2))
    spec.assume((letter.units <= UNITS) & (letter.lane < lanes))
    # A letter stands until it is done.
    told = Cat(letter.lane, letter.units, letter.buffer, letter.place)
    stands = spec.past(letter.valid & ~letter.done)
    spec.assume(~stands | (letter.valid & (told == spec.past(told))))

    begins, taken = Signal(), rq.valid & rq.ready
    inside, words, wanted = Signal(), Signal(8), Signal(8)
    descriptor = RqDescriptor(rq.payload.data[:128])
    first = rq.valid & ~inside
    m.d.comb += begins.eq(first & ~spec.past(rq.valid & ~rq.ready))
    in_beat = Mux(rq.payload.keep == 0xFF, 8, Mux(rq.payload.keep == 0x1F, 5, 4))
    writes = descriptor.kind == RequestType.MEMORY_WRITE
    total = 4 + Mux(writes, descriptor.count, 0)
    with m.If(taken):
        m.d.sync += [
            inside.eq(~rq.payload.last),
            words.eq(Mux(rq.payload.last, 0, words + in_beat)),
        ]
        with m.If(~inside):
            m.d.sync += wanted.eq(total)

    spec.claim(
        "No packet crosses 4 KiB, nor is longer than the largest payload.",
        (descriptor.address[:10] + descriptor.count <= 1024)
        & (descriptor.count <= (32 << Mux(room.max_payload == 3, 2, room.max_payload))),
        when=first,
    )
    spec.claim(
        "It is a write of some dwords, or the read of one.",
        (descriptor.count != 0) & (writes | ((descriptor.kind == RequestType.MEMORY_READ) & (descriptor.count == 1))),
        when=first,
    )
    spec.claim(
        "It has traffic class 0 and no attributes, so nothing passes anything.",
        (descriptor.traffic_class == 0) & (descriptor.attributes == 0) & ~descriptor.poisoned,
        when=first,
    )
    spec.claim(
        "All bytes of its dwords are enabled.",
        (rq.payload.user.first_be == 0xF) & (rq.payload.user.last_be == Mux(descriptor.count == 1, 0, 0xF)),
        when=first,
    )
    spec.claim(
        "It ends with as many dwords as its header says.",
        words + in_beat == Mux(inside, wanted, total),
        when=rq.valid & rq.payload.last,
    )
    spec.claim("Its other beats are full.", rq.payload.keep == 0xFF, when=rq.valid & ~rq.payload.last)
    beat = Cat(rq.payload)
    spec.claim(
        "A beat stands until it is taken.",
        rq.valid & (beat == spec.past(beat)),
        when=spec.past(rq.valid & ~rq.ready),
    )
    spec.claim("A packet that has begun goes on in the next cycle.", rq.valid, when=inside & spec.past(taken))
    spec.claim("Nothing begins while the function may not master.", spec.past(room.mastering), when=begins)

    owner, left = spec.inside("owner"), spec.inside("left")
    owned = owner.any()
    spec.claim("A packet is of one lane at most.", (owner & (owner - 1)) == 0)
    spec.claim(
        "A read begins for a lane that asks for it, with the lane's tag, at the address of its heartbeat.",
        [
            ~writes
            & (descriptor.tag == spec.past(room.tag[lane]))
            & (descriptor.address == room.heartbeat_address[lane][2:])
            & spec.past(room.read[lane])
            for lane in range(lanes)
        ],
        when=[spec.past(room.sent[lane]) for lane in range(lanes)],
    )
    spec.claim("No other read begins.", spec.past(room.sent.any()), when=begins & ~writes)
    addressee = (1 << letter.lane)[:lanes]
    wanted_now = (room.pushing & addressee).any()
    spec.claim(
        "A packet of a letter begins only while its lane is in PUSH.",
        (owner == addressee) & spec.past(letter.valid & wanted_now),
        when=begins & writes & owned,
    )
    ports = Array(room.port_address)
    into = (descriptor.address - ports[letter.lane][2:])[:62]
    in_record = (into >= _dwords(regmap.LanePort.RECORD + (letter.buffer << 9))) & (
        into + descriptor.count <= _dwords(regmap.LanePort.RECORD + (letter.buffer << 9) + regmap.Record.SIZE)
    )
    in_ring = (into == _dwords(regmap.LanePort.RING + (letter.place << 5))) & (descriptor.count == 8)
    spec.claim(
        "It is written into the letter's record buffer, or to its place in the ring.",
        in_record | in_ring,
        when=begins & writes & owned,
    )
    spec.claim(
        "Any other write is the message.",
        spec.past(message.taken)
        & (descriptor.address == spec.past(message.address[2:]))
        & (rq.payload.data[128:160] == spec.past(message.data)),
        when=begins & writes & ~owned,
    )
    spec.claim(
        "A lane is busy as long as its packet is on its way, or its letter there.",
        (~rq.valid | ((room.busy & owner) == owner)) & (~letter.valid | (room.busy & addressee).any()),
        when=rq.valid | letter.valid,
    )
    spec.claim(
        "A letter is pushed when its dispatch is on RQ after its whole record.",
        letter.done & (spec.inside("unit") == letter.units),
        when=room.pushed.any(),
    )
    spec.claim(
        "The letter of a lane that is not in PUSH is dropped at once, unless a read goes first or a packet must end.",
        letter.done,
        when=letter.valid & ~wanted_now & (left == 0) & ~room.sent.any(),
    )

    # What the hard block has, and tells of by the number that came with it.
    number, before = Cat(rq.payload.user.sequence_low, rq.payload.user.sequence_high), Signal(6)
    following = Signal(6)
    m.d.comb += following.eq(Mux(before == 63, 1, before + 1))
    lettered = begins & writes & owned
    with m.If(lettered):
        m.d.sync += before.eq(number)
    spec.claim(
        "A packet of a letter has the number after the latest one's, and never 0.", number == following, when=lettered
    )
    spec.claim("Other packets have 0.", number == 0, when=begins & ~lettered)
    spec.lemma(
        "The next number is known.",
        spec.inside("number") == Mux(lettered, Mux(following == 63, 1, following + 1), following),
    )
    for lane in range(lanes):
        latest, away = Signal(6, name=f"number_{lane}"), Signal(name=f"away_{lane}")
        departs = Cat(each.valid & (each.number == latest) for each in room.departures).any()
        mine = begins & writes & owner[lane]
        known = Mux(mine, number, latest)
        m.d.sync += latest.eq(known)
        with m.If(mine):
            m.d.sync += away.eq(~Cat(each.valid & (each.number == number) for each in room.departures).any())
        with m.Elif(departs):
            m.d.sync += away.eq(0)
        spec.claim(f"Lane {lane} is leaving until its last packet has departed.", room.leaving[lane] == (away | mine))
        spec.lemma(f"Its number is known for lane {lane}.", spec.inside(f"latest_{lane}") == known)

    unit, units = spec.inside("unit"), letter.units
    reached = unit + left
    spec.lemma("Units are written in their order.", unit <= units, when=letter.valid)
    spec.lemma("Nothing is left of a letter that is not there.", (left == 0) & (unit == 0), when=~letter.valid)
    spec.lemma(
        "What is left of a packet is a letter's: some units of its record, or the dispatch's second.",
        letter.valid & (owner == addressee) & Mux(unit == units, left == 1, (reached <= units)),
        when=left != 0,
    )
    spec.lemma(
        "A packet that is cut goes on where a row of memory begins.",
        (reached == units) | ~reached[0],
        when=letter.valid & (unit != units),
    )
    spec.lemma("A packet ends where nothing is left of it.", rq.payload.last == (left == 0), when=rq.valid)
    spec.lemma(
        "Beats have as many dwords as there are.",
        Cat(rq.payload.keep == keep for keep in (0x0F, 0x1F, 0xFF)).any(),
        when=rq.valid,
    )
    spec.lemma("A packet that has begun is on RQ.", rq.valid, when=inside | (left != 0))
    spec.lemma(
        "What is still to come is what the header says.",
        words + in_beat + (left << 2) == Mux(inside, wanted, total),
        when=rq.valid,
    )
    spec.lemma("Nothing is counted of a packet that has not begun.", words == 0, when=~inside)
    return spec


def _dwords(offset: Value) -> Value:
    return offset >> 2
