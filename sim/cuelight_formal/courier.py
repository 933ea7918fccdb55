"""A lane that falls has what is outstanding offered again once, and no dispatch is popped that was not fetched."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Mux, Signal, Value

from cuelight_rtl import regmap
from cuelight_rtl.bus.pcie_usp.courier import UNITS, Courier
from cuelight_rtl.params import ENTRIES, Params

from .spec import Spec

__all__ = ["delivery"]

_ANSWER_CYCLES = 3
"""After its acceptance a read is answered: what the proof `bus` says."""


def delivery(params: Params) -> Spec:
    """The courier of two lanes; the scheduler behind the bus shows any dispatches, and ends them when it likes."""
    room = Courier(params)
    spec = Spec(room)
    m, bus, letter = spec.m, room.bus, room.letter
    lanes = range(params.lanes)
    accepted = bus.valid & bus.ready
    reads = spec.past(accepted & ~bus.write, _ANSWER_CYCLES)
    spec.assume(bus.answer_valid == reads)
    spec.assume(~letter.done | letter.valid)

    states, now, again = spec.states(), spec.inside("lane"), spec.inside("again")
    issued, answered = spec.inside("issued"), spec.inside("answered")
    # A pass has no more entries than its record has places.
    spec.assume(~(states["DISPATCH"] & bus.answer_valid & (answered == 1)) | (bus.answer[32:40] <= ENTRIES))
    asked = Array(room.reoffer[lane] for lane in lanes)[now]

    def writes(register: int) -> list[Value]:
        return [
            bus.write & (bus.address == regmap.POLL + regmap.POLL_STRIDE * lane + register) & (bus.strobe == 0x0F)
            for lane in lanes
        ]

    pops, reoffers = writes(regmap.Poll.POP), writes(regmap.Poll.REOFFER)
    for lane in lanes:
        # What the dispatcher does, in the cycle after: see the proof `dispatch`.
        spec.assume(~room.hit[lane] | spec.past(accepted & reoffers[lane]))
        # What a lane's mode does: see the proof `mode`.
        before, answered_to = spec.past(room.reoffer[lane]), spec.past(room.reoffered[lane])
        spec.assume(room.reoffer[lane] == Mux(before, ~answered_to, room.reoffer[lane]))

    spec.claim(
        "It writes POP and REOFFER of a lane, and nothing else.", Cat(pops, reoffers).any(), when=bus.valid & bus.write
    )
    spec.claim("A write waits for the bus.", bus.valid & bus.write, when=spec.past(bus.valid & ~bus.ready & bus.write))

    # A letter for each POP.
    popped, comes, owed = Cat(pops).any() & accepted, letter.valid & ~spec.past(letter.valid & ~letter.done), Signal()
    with m.If(popped):
        m.d.sync += owed.eq(0)
    with m.Elif(comes):
        m.d.sync += owed.eq(1)
    spec.claim(
        "It pops the dispatch of its letter, as soon as that is complete, and once.",
        (owed | comes) & (bus.data[:32] == letter.descriptor[:32]) & Array(pops)[letter.lane],
        when=popped,
    )
    spec.claim("Each letter's dispatch is popped before there is another letter.", ~owed, when=comes)
    spec.claim(
        "A letter comes for a lane in PUSH, a read or so ago.",
        Cat(spec.past(room.pushing[lane]) & (letter.lane == lane) for lane in lanes).any() | (letter.lane == now),
        when=comes,
    )
    spec.claim(
        "All stamps of a dispatch are the low half of its sequence, which is not 0.",
        (letter.descriptor[112:128] == letter.descriptor[:16])
        & (letter.descriptor[240:] == letter.descriptor[:16])
        & letter.descriptor[:32].any(),
        when=letter.valid,
    )
    spec.claim(
        "A pass's first dispatch never goes without its record.",
        (letter.units >= 3) & (letter.units <= UNITS),
        when=letter.valid & letter.descriptor[44],
    )

    for lane in lanes:
        spec.claim(
            f"When lane {lane} is told that all is offered again, it just was, or nothing is outstanding.",
            room.hit[lane] | (bus.answer_valid & (room.oldest == 0)),
            when=room.reoffered[lane],
        )
        spec.claim(
            f"Lane {lane} is told at once, so nothing is offered twice.", room.reoffered[lane], when=room.hit[lane]
        )
        spec.claim(
            f"Lane {lane} asked for it.", room.reoffer[lane], when=room.reoffered[lane] | (bus.valid & reoffers[lane])
        )

    recent = [spec.past(accepted & ~bus.write, cycles) for cycles in range(1, _ANSWER_CYCLES + 1)]
    reading = states["DISPATCH"] | states["RECORD"] | states["OLDEST"]
    spec.lemma(
        "Reads are answered in the state that asked.",
        (issued - answered == sum(recent[1:], recent[0])) & (issued >= answered),
        when=reading,
    )
    spec.lemma("Else none is on its way.", ~Cat(recent).any(), when=~reading)
    spec.lemma(
        "There is no letter while the next one is fetched.", ~letter.valid, when=states["DISPATCH"] | states["RECORD"]
    )
    spec.lemma("A POP is owed in its state.", (owed | comes) == states["POP"])
    spec.lemma(
        "What is fetched belongs together.",
        (letter.descriptor[112:128] == letter.descriptor[:16]) & letter.descriptor[:32].any(),
        when=states["RECORD"] | states["POP"] | letter.valid,
    )
    spec.lemma("The lane in hand is one.", (now < params.lanes) & (letter.lane < params.lanes))
    spec.lemma("The letter is the lane's in hand.", letter.lane == now, when=states["RECORD"] | states["POP"])
    spec.lemma("Two words make a dispatch.", (issued <= 2) & (answered <= 1), when=states["DISPATCH"])
    spec.lemma("One makes a sequence.", (issued <= 1) & (answered == 0), when=states["OLDEST"])
    total = spec.inside("total")
    spec.lemma(
        "A record has its words.",
        (issued <= total) & (answered < total) & total[0] & (total >= 7) & (total <= 2 * UNITS + 1),
        when=states["RECORD"],
    )
    spec.lemma(
        "First dispatches need their record.",
        letter.units >= 3,
        when=(states["POP"] | letter.valid) & letter.descriptor[44],
    )
    spec.lemma("A record's units are as many as it has.", letter.units <= UNITS)
    spec.lemma(
        "Only who asks is offered again.", asked, when=(states["OLDEST"] & again) | states["REOFFER"] | states["CHECK"]
    )
    spec.lemma("Writes are checked in the cycle after.", states["CHECK"] == spec.past(accepted & states["REOFFER"]))
    return spec
