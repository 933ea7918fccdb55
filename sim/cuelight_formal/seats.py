"""What is counted of seats is what their bitmaps show, and what is chosen may be chosen."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Signal, Value

from cuelight_rtl.params import TIERS, Params
from cuelight_rtl.seats import SET, TRAITS, Seats

from .spec import Spec

__all__ = ["choices", "promised"]

LONGEST = 2


def promised(spec: Spec, room: Seats, params: Params) -> None:
    """What the core promises a group's seats."""
    sits, listed, decoding, parked = (
        getattr(room, name).bit_select(room.seat, 1) for name in ("seated", "listed", "decoding", "parked")
    )
    strobes = Cat(getattr(room, name) for name in SET)
    alone = [getattr(room, name) for name in SET if name not in ("bind", "relist")]
    spec.promise(
        "One thing happens to a seat at a time, but that an entry binds it, or it is listed when it goes on.",
        (sum(alone, start=room.take) <= 1) & (~room.relist | ~(room.take | Cat(alone).any()) | room.unpark),
        when=room.take | strobes.any(),
    )
    spec.promise("Only a free seat is taken.", ~sits, when=room.take)
    spec.promise("Only a seat that is taken has traits.", sits & (room.seat < params.seats), when=strobes.any())
    spec.promise(
        "Listed is who has rows left to prefill, and is not parked.",
        ~decoding & (~parked | room.unpark) & ~room.bind,
        when=room.relist,
    )
    spec.promise("Who turns to decoding is not listed.", ~listed, when=room.turn)
    spec.promise(
        "SEATS is 1 at least, and no more than there are; it changes while nobody sits.",
        (room.value >= 1) & (room.value <= params.seats) & (room.seated_count == 0),
        when=room.set_limit,
    )


def choices(params: Params) -> Spec:
    """A group whose pipeline may have two lanes, beside a ghost that knows in which tier each seat was taken."""
    room = Seats(params, LONGEST)
    spec = Spec(room)
    m, seats = spec.m, range(params.seats)
    tiers = Array(Signal(2, name=f"tier_of_{seat}") for seat in seats)

    promised(spec, room, params)
    with m.If(room.take):
        m.d.sync += tiers[room.seat].eq(room.take_tier)

    def number(bits: list[Value]) -> Value:
        return sum(bits[1:], start=bits[0])

    def of_tier(tier: Value | int) -> Value:
        return Cat(room.seated[seat] & (tiers[seat] == tier) for seat in seats)

    awake = room.decoding & ~room.parked
    shared = Cat(room.shares.bit_select(seat % LONGEST, 1) for seat in seats)
    for sentence, count, bitmap in (
        ("Seats taken are counted.", room.seated_count, room.seated),
        ("Seats that decode are counted.", room.decoding_count, room.decoding),
        ("Parked seats are counted.", room.parked_count, room.parked),
        (
            "Of the seats in the shares those are counted that decode and are not parked.",
            room.awake_count,
            awake & shared,
        ),
        ("And of those the ones that no entry has bound.", room.unbound_count, awake & shared & ~room.bound),
    ):
        spec.claim(sentence, count == number([bitmap[seat] for seat in seats]))
    for share in range(LONGEST):
        spec.lemma(
            f"Seats of share {share} are counted.",
            (spec.inside(f"awake_count_{share}") == number([awake[seat] for seat in seats[share::LONGEST]]))
            & (
                spec.inside(f"unbound_count_{share}")
                == number([(awake & ~room.bound)[seat] for seat in seats[share::LONGEST]])
            ),
        )
    for tier in range(TIERS):
        spec.lemma(
            f"Seats of tier {tier} are kept and counted.",
            (spec.inside(f"tier_{tier}") == of_tier(tier))
            & (spec.inside(f"tier_count_{tier}") == number([of_tier(tier)[seat] for seat in seats])),
        )
    spec.claim(
        "Nothing is known of a free seat, but that it may park.",
        (
            (room.decoding | room.listed | room.marked | room.parked | room.credited | room.stepped | room.bound)
            & ~room.seated
        )
        == 0,
    )
    spec.claim(
        "Who is listed has rows left to prefill, and is not parked.", (room.listed & (room.decoding | room.parked)) == 0
    )
    some = spec.some("some", params.seat_bits)
    traits = Cat(getattr(room, name).bit_select(some, 1) for name in TRAITS if name != "parking")
    untouched = (room.seat != some) | ~(room.take | Cat(getattr(room, name) for name in SET).any())
    spec.claim(
        "A seat that nothing happens to keeps what is known of it.",
        traits == spec.past(traits),
        when=spec.past(untouched),
    )
    spec.claim("No more seats are taken than there are.", room.seated_count <= params.seats)

    before = {name: spec.past(getattr(room, name)) for name in ("seated", "busy", "parked", "bound")}

    def was(name: str, seat: Value) -> Value:
        return before[name].bit_select(seat, 1)

    limit_before = Signal.like(room.limit, name="limit_before", init=params.seats)
    m.d.sync += limit_before.eq(room.limit)
    spec.lemma(
        "SEATS acts a cycle later.",
        spec.inside("below_limit") == Cat(limit_before > seat for seat in seats),
    )
    spec.claim("SEATS is 1 at least, and no more than there are.", (room.limit >= 1) & (room.limit <= params.seats))
    spec.lemma("So it was.", (limit_before >= 1) & (limit_before <= params.seats))
    available = spec.past(Cat(~room.seated[seat] & (limit_before > seat) for seat in seats))
    spec.claim(
        "A free seat is offered only if nobody sits there, and only below SEATS.",
        available.bit_select(room.free_seat, 1),
        when=room.free_any,
    )
    spec.claim("A seat is offered as long as one below SEATS is free.", room.free_any, when=available.any())
    lowest_free = spec.some("lowest_free", params.seat_bits)
    spec.claim(
        "The lowest free seat is offered.",
        room.free_seat <= lowest_free,
        when=available.bit_select(lowest_free, 1),
    )
    spec.claim(
        "Who leaves sits there, and is in no pass alive unless the group is resetting.",
        was("seated", room.leaving_seat) & (~was("busy", room.leaving_seat) | spec.past(room.resetting)),
        when=room.leaving_any,
    )
    spec.claim(
        "A seat that an entry is to bind decodes unbound, and is not parked.",
        was("seated", room.unbound_seat) & ~was("parked", room.unbound_seat) & ~was("bound", room.unbound_seat),
        when=room.unbound_any,
    )
    every = range(TIERS)
    taken = [number([of_tier(tier)[seat] for seat in seats]) for tier in every]
    now_free = (room.limit - room.seated_count)[: len(room.limit)]
    spec.claim(
        "A tier is called hungry exactly if it has fewer seats than its MIN_SEATS.",
        room.hungry == Cat(taken[tier] < room.min_seats[tier] for tier in every),
    )
    spec.claim(
        "A tier is given a free seat exactly if it is hungry, or its SEAT_FLOOR is below the number of free seats.",
        room.welcome == Cat(room.hungry[tier] | (now_free > room.seat_floor[tier]) for tier in every),
    )
    minimums, floors, waiting = (
        spec.past(Value.cast(each)) for each in (room.min_seats, room.seat_floor, room.waiting)
    )
    free = spec.past(now_free)
    counts = [spec.past(each) for each in taken]
    its_tier = spec.past(Cat(*tiers)).word_select(room.victim_seat, 2)
    above = Cat(
        waiting[tier]
        & (tier < its_tier)
        & ((free == floors.word_select(tier, 9)) | ((free == 0) & (counts[tier] < minimums.word_select(tier, 9))))
        for tier in range(TIERS)
    ).any()
    spec.claim(
        "A victim sits, in no pass alive.",
        was("seated", room.victim_seat) & ~was("busy", room.victim_seat),
        when=room.victim_any,
    )
    spec.claim(
        "Its tier has more seats taken than its minimum.",
        Array(counts)[its_tier] > minimums.word_select(its_tier, 9),
        when=room.victim_any,
    )
    spec.claim("A higher tier waits, which one seat more would let in.", above, when=room.victim_any)
    tier_of_some = spec.past(Cat(*tiers)).word_select(some, 2)
    spec.claim(
        "No lower seat of a tier above its minimum could be a victim.",
        room.victim_seat <= some,
        when=room.victim_any
        & was("seated", some)
        & ~was("busy", some)
        & (Array(counts)[tier_of_some] > minimums.word_select(tier_of_some, 9))
        & (its_tier <= tier_of_some),
    )
    spec.reach("A seat is a victim to a tier that misses its minimum.", room.victim_any & (free == 0))
    return spec
