"""How soon a step is followed by the next one, while a seat waits to be given away (docs/device.md §9)."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Mux, Signal, Value

from cuelight_rtl.hand import Job, Step
from cuelight_rtl.params import TIERS

from .core import CoreState

__all__ = ["cycle_claims"]

CYCLES = 12
"""Within which a step follows the one before."""


def known(core: CoreState, group: int) -> list[tuple[Value, Value]]:
    """What is known of a group's seats, and whether it is so."""
    spec, seats = core.spec, core.hand.seats[group]
    of_tier = [spec.inside(f"seats_{group}.tier_{tier}") for tier in range(TIERS)]
    running = [(seats.busy & each).any() for each in of_tier]
    urgent = [(seats.listed & each).any() & ~Cat(running[: tier + 1]).any() for tier, each in enumerate(of_tier)]
    decoders = seats.decoding & ~seats.parked & ~seats.busy
    waits = seats.queued_count != 0
    return [
        *(
            (getattr(seats, f"{name}_any"), spec.inside(f"seats_{group}.{name}_seats").any())
            for name in ("leaving", "parking", "victim")
        ),
        (seats.free_any & waits, spec.inside(f"seats_{group}.free_seats").any()),
        (seats.prompts, seats.listed.any()),
        (seats.urgent, Cat(urgent).any()),
        *((seats.decoders[share], decoders[share :: seats._longest].any()) for share in range(seats._longest)),
    ]


def cycle_claims(core: CoreState, due: Value, left: Value) -> None:
    """Claims it of a core in which a seat is ``due`` to somebody; ``left`` says that somebody left one a cycle ago."""
    spec, hand, at, m = core.spec, core.hand, core.at, core.spec.m
    shows = hand.current == Step.SHOW_RETIRED
    none = hand.job == Job.NONE
    # What is known of seats shows a cycle later.
    settled = ~spec.past((at["EXECUTE"] & ~shows) | (at["STEP"] & ~none))
    for group in core.groups:
        flags, facts = zip(*known(core, group), strict=True)
        spec.lemma(
            f"Once it has settled, what is known of the seats of group {group} is so.",
            list(facts),
            when=[at["SELECT"] & settled & flag for flag in flags],
        )
    for walker, pass_ in zip(core.lanes.walkers, hand.passes, strict=True):
        # walk.py: a pass is due until its loop point.
        spec.assume(walker.due | ~spec.past(walker.due & ~pass_.loop & ~pass_.drop))
    certain = spec.past(settled & at["SELECT"])
    spec.lemma(
        "Then a group that is chosen has something to do.",
        Array(hand.wanted)[hand.group],
        when=at["STEP"] & none & certain,
    )
    spec.lemma(
        "Who brings a chunk is of a tier on turn.", hand.on_turn.bit_select(hand.tier, 1), when=core.does(Step.CHUNK)
    )
    skipped = Cat(now != spec.past(now) for now in (hand.entries_left, hand.on_turn)).any()
    passed = Signal(range(2 * CYCLES))
    with m.If(hand.step.valid | core.request.valid | skipped | ~due):
        m.d.sync += passed.eq(0)
    with m.Elif(passed < 2 * CYCLES - 1):
        m.d.sync += passed.eq(passed + 1)
    spec.lemma("Who leaves a seat takes a step.", passed == 0, when=left)
    waited = Mux(skipped, 0, passed)
    most = {
        "SELECT": Mux(hand.show_due, Mux(none, 2, 0), Mux(none, Mux(settled, CYCLES - 5, CYCLES - 7), CYCLES - 9)),
        "STEP": Mux(hand.show_due, 1, Mux(none, Mux(certain, CYCLES - 4, CYCLES - 6), CYCLES - 8)),
        "LOOKUP": Mux(none, CYCLES - 3, CYCLES - 7),
        "FETCH": Mux(shows, Mux(none, 3, 1), Mux(none, CYCLES - 2, CYCLES - 6)),
        "WEIGH": CYCLES - 5,
        "EXECUTE": Mux(shows, Mux(none, 4, 2), CYCLES - 1),
        "SECOND": 0,
    }
    spec.lemma(
        "So long it takes until each state of a step.",
        [waited <= each for each in most.values()],
        when=[at[name] & due for name in most],
    )
    spec.claim(
        f"While a seat is due and no write comes, a step is taken within {CYCLES} cycles, or an entry or a tier is"
        " passed over.",
        waited < CYCLES,
        when=due,
    )
