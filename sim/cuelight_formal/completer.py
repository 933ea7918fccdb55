"""The endpoint's completer: each non-posted request is answered once, a write is whole or not at all, nothing hangs."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Mux, Signal, Value

from cuelight_rtl.bus.arbiter import Arbiter
from cuelight_rtl.bus.pcie_usp.completer import REGISTERS_BAR, TABLE_BAR, Completer
from cuelight_rtl.bus.pcie_usp.receiver import PAYLOAD
from cuelight_rtl.bus.pcie_usp.streams import DWORDS, CcDescriptor, CompletionStatus, CqDescriptor, RequestType

from .spec import Spec

__all__ = ["payloads", "requests", "two_masters"]

_CQ_HEADER, _CC_HEADER = 4, 3
"""Dwords before the payload."""
_BEATS = 4
"""Beats of a packet are counted up to here."""


class Request:
    """What a descriptor and its byte enables ask for."""

    def __init__(self, descriptor: CqDescriptor, first_be: Value, last_be: Value) -> None:
        self.descriptor, self.first_be, self.last_be = descriptor, first_be, last_be
        self.kind, self.count, self.bar = descriptor.kind, descriptor.count, descriptor.bar
        self.reads, self.writes = self.kind == RequestType.MEMORY_READ, self.kind == RequestType.MEMORY_WRITE
        self.posted = self.writes | (self.kind >= RequestType.MESSAGE)
        self.offset = Cat(bit & (descriptor.aperture > place + 2) for place, bit in enumerate(descriptor.address[:14]))
        self.ours = ((self.bar == REGISTERS_BAR) | (self.bar == TABLE_BAR)) & (descriptor.aperture <= 16)
        window = self.offset[11:]
        long = (self.bar == REGISTERS_BAR) & ((window == 0xA000 >> 13) | (window == 0xC000 >> 13))
        self.fits = (self.count != 0) & (self.count <= Mux(long, PAYLOAD, 2))
        self.legal = (self.reads | self.writes) & self.ours & self.fits
        self.units = ((self.count[:5] + self.offset[0] + 1) >> 1)[:4]

    def completion(self) -> Value:
        """Every bit of the descriptor that its completion begins with."""
        request, one = self.descriptor, self.count == 1
        memory = self.reads | (self.kind == RequestType.LOCKED_READ)
        swaps = (self.kind == RequestType.FETCH_ADD) | (self.kind == RequestType.SWAP)
        compares = self.kind == RequestType.COMPARE_SWAP
        begin, end = Const(0, 2), Const(0, 3)
        for byte in range(4):
            last = Mux(one, self.first_be, self.last_be)
            begin = Mux(self.first_be[3 - byte], 3 - byte, begin)
            end = Mux(last[byte], byte + 1, end)
        # Only a request for one dword may do without any byte of it.
        total = (self.count << 2) - begin - 4 + Mux(end == 0, 1, end)
        size = Mux(one & ~self.first_be.any(), 1, total)[:13]
        others = Mux(swaps, self.count << 2, Mux(compares, self.count << 1, 4))[:13]
        aborts = self.reads & self.ours
        refusal = Mux(aborts, CompletionStatus.COMPLETER_ABORT, CompletionStatus.UNSUPPORTED_REQUEST)
        return Cat(
            Mux(memory, Cat(begin[:2], request.address[:5]), 0)[:7],
            Const(0, 1),
            Mux(memory | swaps | compares, request.address_type, 0)[:2],
            Const(0, 6),
            Mux(memory, size, others)[:13],
            self.kind == RequestType.LOCKED_READ,
            Const(0, 2),
            Mux(self.legal, self.count, 0)[:11],
            Mux(self.legal, CompletionStatus.SUCCESSFUL, refusal)[:3],
            Const(0, 2),
            request.requester,
            *(request.tag, request.function, Const(0, 9)),
            *(request.traffic_class, request.attributes, Const(0, 1)),
        )


class Packets(Spec):
    """The completer beside a ghost that knows the latest packet on CQ from the stream alone."""

    def __init__(self) -> None:
        self.room: Completer
        super().__init__(Completer())
        m, room = self.m, self.room
        cq = room.cq.payload
        self.buses = {REGISTERS_BAR: room.registers, TABLE_BAR: room.table}
        self.arrives, self.leaves = room.cq.valid & room.cq.ready, room.cc.valid & room.cc.ready
        self.starts = Signal(init=1)
        descriptor, first_be, last_be = Signal(CqDescriptor, name="request"), Signal(4), Signal(4)
        self.beats, self.taken_back = Signal(range(_BEATS + 1)), Signal()
        with m.If(self.arrives):
            m.d.sync += [
                self.starts.eq(cq.last),
                self.beats.eq(Mux(self.starts, 1, Mux(self.beats == _BEATS, _BEATS, self.beats + 1))),
                self.taken_back.eq(cq.user.discontinue | (self.taken_back & ~self.starts)),
            ]
            with m.If(self.starts):
                m.d.sync += [
                    descriptor.eq(cq.data[:128]),
                    first_be.eq(cq.user.first_be),
                    last_be.eq(cq.user.last_be),
                ]
        self.request = request = Request(descriptor, first_be, last_be)
        needed = ((request.count + _CQ_HEADER + DWORDS - 1) >> 3)[:8]
        self.spoilt = self.taken_back | (request.writes & (request.count <= PAYLOAD) & (self.beats != needed))
        self.carried_out = request.legal & ~self.spoilt
        self.held, self.busy = self.inside("receiver.valid"), self.inside("replier.busy")
        self.issued, self.answered = self.inside("issued"), self.inside("answered")
        self.asks = Cat(bus.valid for bus in self.buses.values()).any()
        self.taken = Cat(bus.valid & bus.ready for bus in self.buses.values()).any()
        self.answers = Cat(bus.answer_valid for bus in self.buses.values()).any()
        self.waits = {bar: Signal(5, name=f"waits_{bar}") for bar in self.buses}
        for bar, bus in self.buses.items():
            asked = bus.valid & bus.ready & ~bus.write
            m.d.sync += self.waits[bar].eq(self.waits[bar] + asked - bus.answer_valid)
            self.promise("A bus answers only reads that it has taken.", self.waits[bar] != 0, when=bus.answer_valid)
        self._know_what_is_held()

    def _know_what_is_held(self) -> None:
        request, held, here = self.request, self.held, self.held | ~self.starts
        self.lemma("While a packet is held none begins.", self.starts, when=held)
        kept = (self.inside(f"receiver.{name}") for name in ("descriptor", "first_be", "last_be", "taken_back"))
        came = (request.descriptor, request.first_be, request.last_be, self.taken_back)
        same = Cat(Value.cast(a) == Value.cast(b) for a, b in zip(kept, came, strict=True)).all()
        self.lemma("What is here is what came.", same, when=here)
        most = _BEATS - 1
        counted = Mux(self.starts, 0, Mux(self.beats > most, most, self.beats))
        self.lemma("Beats are counted.", self.inside("receiver.beat") == counted)
        self.lemma("Up to the last one.", self.inside("receiver.latest") == self.beats - 1, when=held)
        self.lemma("They are counted up to that.", self.beats <= _BEATS)
        self.lemma("A packet has one.", self.beats != 0, when=here)
        carried = held & self.carried_out
        self.lemma("There are as many transactions as units.", self.issued <= request.units, when=carried)
        self.lemma("A write ends with its last one.", self.issued < request.units, when=carried & request.writes)
        self.lemma(
            "A read ends with its last answer.",
            (self.answered <= self.issued) & (self.answered < request.units),
            when=carried & request.reads,
        )
        self.lemma("Nothing else has any.", (self.issued == 0) & (self.answered == 0), when=~carried)
        self.lemma("A write has no answers.", self.answered == 0, when=held & request.writes)
        for bar, waits in self.waits.items():
            mine = carried & request.reads & (request.bar == bar)
            self.lemma(f"What BAR {bar} owes is known.", waits == Mux(mine, self.issued - self.answered, 0)[:5])


def requests() -> Spec:
    """Any packets on CQ, at any pace; buses and the CC stream take and answer when they like."""
    spec = Packets()
    room, request, held = spec.room, spec.request, spec.held
    spec.claim("A packet that is not whole does nothing.", ~spec.asks, when=~held)
    spec.claim("Nor does one that is to be thrown away, dropped or refused.", ~spec.asks, when=held & ~spec.carried_out)
    rest = ~request.legal & ~spec.spoilt
    counted = {"spoilt": spec.spoilt, "dropped": rest & request.posted, "refused": rest & ~request.posted}
    for name, should in counted.items():
        spec.claim(f"What is counted as {name} is.", held & should, when=getattr(room, name))
    applied, over = Signal(5), spec.past(held & request.writes) & ~held
    with spec.m.If(spec.arrives & room.cq.payload.last):
        spec.m.d.sync += applied.eq(0)
    with spec.m.Else():
        spec.m.d.sync += applied.eq(applied + spec.taken)
    spec.lemma("Transactions are counted.", applied == spec.issued, when=held)
    spec.claim(
        "A write is carried out whole or not at all: with all its units, or without one.",
        applied == Mux(spec.carried_out, request.units, 0),
        when=over,
    )
    spec.claim(
        "Transactions come in the order of addresses, one for each unit of 64 bits, in the BAR that was hit.",
        [
            (request.bar == bar)
            & (bus.write == request.writes)
            & (bus.address == Cat(Const(0, 3), ((request.offset >> 1) + applied)[:13]))
            & (applied < request.units)
            for bar, bus in spec.buses.items()
        ],
        when=[bus.valid for bus in spec.buses.values()],
    )
    spec.claim(
        "A write of two dwords at a multiple of eight bytes is one transaction.",
        request.units == 1,
        when=spec.asks & request.writes & ~request.offset[0] & (request.count == 2),
    )
    spec.claim("A write waits for no completion.", spec.asks, when=held & spec.carried_out & request.writes)
    done = spec.inside("receiver.release")
    owed = Cat(waits != 0 for waits in spec.waits.values()).any()
    spec.claim(
        "What is held waits for a bus, for an answer or for a completion to leave, or is done with.",
        spec.asks | owed | spec.busy | done,
        when=held,
    )
    spec.claim("Then the next packet is taken.", room.cq.ready | room.halt, when=~held & spec.starts)
    spec.claim("A packet that has begun is taken to its end.", room.cq.ready, when=~spec.starts)
    spec.claim("With halt none begins.", ~spec.arrives, when=room.halt & spec.starts)
    _count_completions(spec)
    _give_credit(spec)
    return spec


def _count_completions(spec: Packets) -> None:
    """Non-posted requests have numbers in the order in which they come, completions in which they go."""
    m, room, request, busy = spec.m, spec.room, spec.request, spec.busy
    cc = room.cc.payload
    ends = Signal(init=1)
    with m.If(spec.leaves):
        m.d.sync += ends.eq(cc.last)
    incoming = Request(
        CqDescriptor(room.cq.payload.data[:128]), room.cq.payload.user.first_be, room.cq.payload.user.last_be
    )
    comes = spec.arrives & spec.starts & ~incoming.posted
    asked, replied, mine = Signal(3), Signal(3), spec.some("mine", 3)
    withdrawn = room.spoilt & ~request.posted
    m.d.sync += [asked.eq(asked + comes - withdrawn), replied.eq(replied + (spec.leaves & cc.last))]
    theirs = Signal(CqDescriptor, name="theirs")
    first_be, last_be = Signal(4), Signal(4)
    with m.If(comes & (asked == mine)):
        m.d.sync += [theirs.eq(incoming.descriptor), first_be.eq(incoming.first_be), last_be.eq(incoming.last_be)]
    wanted = Request(theirs, first_be, last_be).completion()
    nonposted = spec.inside("receiver.nonposted")
    here = spec.held | ~spec.starts
    spec.lemma("A non-posted request is known as such as long as it is here.", nonposted == (here & ~request.posted))
    spec.claim(
        "Every non-posted request is answered once: those that came are those answered and those that are here.",
        asked == (replied + nonposted + busy)[:3],
    )
    latest = Cat(Value.cast(request.descriptor), request.first_be, request.last_be)
    spec.lemma(
        "The one in hand came last.",
        latest == Cat(Value.cast(theirs), first_be, last_be),
        when=nonposted & (asked == (mine + 1)[:3]),
    )
    spec.lemma(
        "What is kept completes the next one.",
        Value.cast(spec.inside("replier.kept")) == wanted,
        when=busy & (replied == mine),
    )
    spec.claim(
        "Completions come in the order of their requests, with every field as the request wants it.",
        cc.data[:96] == wanted,
        when=room.cc.valid & ends & (replied == mine),
    )
    left, beat = spec.inside("replier.left"), spec.inside("replier.beat")
    spec.lemma("A completion is sent from its first beat on.", ends == (beat == 0), when=busy)
    spec.lemma("There are none before it.", ends, when=~busy)
    longest = _CC_HEADER + PAYLOAD
    spec.claim(
        "It is over after three beats at most.", (left != 0) & (left <= longest - (beat << 3)) & (beat < 3), when=busy
    )
    spec.claim("It is sent beat after beat.", room.cc.valid, when=~ends)
    waiting = Value.cast(cc)
    spec.claim(
        "What waits on CC does not change.",
        room.cc.valid & (waiting == spec.past(waiting)),
        when=spec.past(room.cc.valid & ~room.cc.ready),
    )
    spec.claim("Idle means that nothing is here.", ~here & ~busy, when=room.idle)


def _give_credit(spec: Packets) -> None:
    """The hard block lets a non-posted request begin only with credit, and shows how much there is."""
    m, room = spec.m, spec.room
    comes, nonposted = spec.inside("receiver.begins"), spec.inside("receiver.nonposted")
    credit = Signal(6)
    m.d.sync += credit.eq(credit + room.np_req - comes)
    spec.promise("A non-posted request begins only with credit.", credit != 0, when=comes)
    spec.promise("The hard block shows the credit that there is.", room.np_req_count == credit)
    giving = room.np_req != 0
    spec.claim("There is credit for one request at a time.", credit + room.np_req <= 1)
    spec.claim("It is given when the one before is gone.", ~nonposted & ~spec.busy, when=giving)
    spec.lemma("Nothing comes in between.", ~nonposted & ~spec.busy, when=credit != 0)
    spec.lemma("It shows before more is given.", spec.inside("rest") != 0, when=giving)
    spec.claim("So no request waits for the completion of another one.", ~spec.busy, when=nonposted)


def payloads() -> Spec:
    """One dword, whichever, on its way from CQ to a bus, or from a bus to CC."""
    spec = Packets()
    m, room, request = spec.m, spec.room, spec.request
    # PCI Express Base Specification 4.0, 7.5.1.2.1.
    smallest = 7
    incoming = CqDescriptor(room.cq.payload.data[:128])
    spec.promise("A BAR has 128 bytes at least.", incoming.aperture >= smallest, when=spec.arrives & spec.starts)
    aperture = request.descriptor.aperture
    spec.lemma("That of a packet in hand does.", aperture >= smallest, when=spec.held | ~spec.starts)
    index = spec.some("index", 4)
    place, position = (index + _CQ_HEADER)[:5], (index + request.offset[0])[:5]
    word, answer = Signal(32), Signal(32)
    beat, latest = spec.inside("receiver.beat"), spec.inside("receiver.latest")
    with m.If(spec.arrives & (beat == place >> 3)):
        m.d.sync += word.eq(room.cq.payload.data.word_select(place[:3], 32))
    payload, applied = spec.inside("receiver.payload"), spec.issued
    odd = CqDescriptor(spec.inside("receiver.descriptor")).address[0]
    arrived = (~spec.starts & (beat > place >> 3)) | (spec.held & (applied == 0) & (latest >= place >> 3))
    spec.lemma(
        "A dword is kept where memory has it.",
        payload.word_select((index + odd)[:5], 32) == word,
        when=arrived,
    )
    writes = spec.held & spec.carried_out & request.writes
    mine = writes & (index < request.count)
    ahead = (position - (applied << 1))[:5]
    spec.lemma(
        "It comes down with the units before it.",
        payload.word_select(ahead, 32) == word,
        when=mine & (position >> 1 >= applied),
    )
    data = Mux(request.bar == REGISTERS_BAR, room.registers.data, room.table.data)
    strobe = Mux(request.bar == REGISTERS_BAR, room.registers.strobe, room.table.strobe)
    now = mine & (position >> 1 == applied)
    spec.claim("Each dword is written as it came.", data.word_select(position[0], 32) == word, when=now)
    middle = (index != 0) & (index != request.count - 1)
    enables = Mux(index == 0, request.first_be, Mux(middle, 0xF, request.last_be))
    spec.claim("With the bytes that are enabled.", strobe.word_select(position[0], 4) == enables, when=now)
    half = spec.some("half", 1)
    dword = Cat(half, applied)
    beside = (dword < request.offset[0]) | (dword >= request.count[:5] + request.offset[0])
    spec.claim("Bytes beside it are left alone.", strobe.word_select(half, 4) == 0, when=writes & beside)

    reads = spec.held & spec.carried_out & request.reads
    for bus in spec.buses.values():
        with m.If(bus.answer_valid & (spec.answered == position >> 1)):
            m.d.sync += answer.eq(bus.answer.word_select(position[0], 32))
    words = spec.inside("replier.words").word_select(index, 32)
    kept, beat_out = CcDescriptor(spec.inside("replier.kept")), spec.inside("replier.beat")
    good = spec.busy & (kept.status == CompletionStatus.SUCCESSFUL) & (index < kept.count)
    spec.lemma("A read begins when no completion is here.", ~spec.busy, when=reads & (spec.issued != 0))
    spec.lemma(
        "What was answered is kept.",
        words == answer,
        when=reads & (index < request.count) & (spec.answered > position >> 1),
    )
    spec.lemma("Until it has left.", words == answer, when=good)
    left = spec.inside("replier.left")
    spec.lemma(
        "What is left of it is known.",
        (left + (beat_out << 3) == _CC_HEADER + kept.count) & (kept.count <= PAYLOAD),
        when=spec.busy & (kept.status == CompletionStatus.SUCCESSFUL),
    )
    spot = (index + _CC_HEADER)[:5]
    spec.claim(
        "Each dword is answered as the bus has it.",
        room.cc.payload.data.word_select(spot[:3], 32) == answer,
        when=good & (beat_out == spot >> 3),
    )
    spec.claim(
        "It is among those that the beat has.",
        room.cc.payload.keep.bit_select(spot[:3], 1),
        when=good & (beat_out == spot >> 3),
    )
    return spec


def two_masters() -> Spec:
    """Two masters of a bus that answers each read in the third cycle."""
    room = Arbiter()
    spec = Spec(room)
    bus, masters = room.bus, list(room.masters)
    accepted = bus.valid & bus.ready
    both = list(zip(masters, reversed(masters), strict=True))
    names = ("write", "address", "data", "strobe")
    spec.claim(
        "What one asks reaches the bus in the same cycle, as it was asked.",
        [Cat(getattr(bus, name) == getattr(master, name) for name in names).all() & accepted for master in masters],
        when=[master.valid & master.ready for master in masters],
    )
    served = Cat(master.valid & master.ready for master in masters)
    spec.claim("The bus takes from one of them at a time.", (served == 1) | (served == 2), when=accepted)
    asked = Cat(master.valid for master in masters).any()
    spec.claim("Nobody waits while the bus is free.", accepted, when=bus.ready & asked)
    spec.claim(
        "Who waited comes next: the other is served once before it.",
        [master.ready for master in masters],
        when=[
            spec.past(master.valid & ~master.ready & other.valid & other.ready) & master.valid & bus.ready
            for master, other in both
        ],
    )
    read, reads = accepted & ~bus.write, [master.valid & master.ready & ~master.write for master in masters]
    for cycle in range(3):
        owner = spec.inside(f"asked_{cycle}")
        read, reads = spec.past(read), [spec.past(each) for each in reads]
        spec.lemma(
            f"Whose read was accepted {cycle + 1} cycles ago is known.",
            Cat(each == (read & (owner == index)) for index, each in enumerate(reads)).all(),
        )
    spec.promise("A read is answered in the third cycle.", bus.answer_valid == read)
    spec.claim(
        "Each is answered what it asked, in the third cycle.",
        Cat(master.answer_valid == each for master, each in zip(masters, reads, strict=True)).all(),
    )
    return spec
