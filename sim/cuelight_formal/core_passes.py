"""Who is in a pass sits, is ready, and is in no other."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Mux, Signal, Value

from cuelight_rtl.hand import Job
from cuelight_rtl.params import TIERS

from .budget import Taking
from .core import CoreState

__all__ = ["pass_claims"]


def pass_claims(core: CoreState, forming: list[Signal], taking: Taking, walking: list[Signal]) -> None:
    with core.spec.part("passes"):
        jobs(core, forming, taking)
        core.spec.claim(
            "A pass is on its way from FORM to its loop point.",
            [
                walks == (pass_.alive & ~at)
                for walks, pass_, at in zip(walking, core.hand.passes, core.looping, strict=True)
            ],
        )
        candidates(core, taking)
        members(core, forming, taking)
        entries(core, forming)
        rows(core, forming, taking)


def jobs(core: CoreState, forming: list[Signal], taking: Taking) -> None:
    spec, hand, rooms = core.spec, core.hand, core.rooms
    here = [hand.room == room for room in rooms]
    spec.lemma(
        "A pass forms where that is the core's job.", [forming[r] == ((hand.job == Job.FORM) & here[r]) for r in rooms]
    )
    spec.lemma(
        "A pass is at its loop point where that is the core's job.",
        [core.looping[r] == ((hand.job == Job.LOOP) & here[r]) for r in rooms],
    )
    spec.lemma("A pass at its loop point is alive.", [pass_.alive for pass_ in hand.passes], when=list(core.looping))
    spec.lemma("A pass that is formed is not alive.", [~pass_.alive for pass_ in hand.passes], when=list(forming))
    spec.lemma("The budget is that of the pass being formed.", taking.forming == (hand.job == Job.FORM))
    under_way = [core.under_way(r, forming[r]) for r in rooms]
    spec.lemma(
        "The job is for a pass of the group in turn.",
        [core.groups_of[r] == hand.group for r in rooms],
        when=[(hand.job != Job.NONE) & here[r] for r in rooms],
    )
    spec.claim(
        "A group that is resetting has no pass.",
        [~under_way[r] for r in rooms],
        when=[core.of_group("resetting", core.groups_of[r]) for r in rooms],
    )
    spec.lemma("Nor has it a job.", hand.job == Job.NONE, when=core.of_group("resetting", hand.group))


def candidates(core: CoreState, taking: Taking) -> None:
    """Why every plan becomes a pass."""
    spec, hand = core.spec, core.hand
    group, lists, lanes = hand.group, hand.lists, core.params.lanes
    unbound = [
        (
            seats.decoding & ~seats.bound & ~seats.parked & seats.shares.replicate(core.params.seats // seats._longest)
        ).any()
        for seats in hand.seats
    ]
    filled = lists.filled[lanes * TIERS : 2 * lanes * TIERS].word_select(group, TIERS)
    spec.lemma(
        "While a pass that is formed has nobody, somebody can come along.",
        ((taking.bound < taking.unbound) & Array(unbound)[group]) | (filled & hand.on_turn).any(),
        when=(hand.job == Job.FORM) & Array(pass_.empty for pass_ in hand.passes)[hand.room],
    )


def members(core: CoreState, forming: list[Signal], taking: Taking) -> None:
    spec, hand, rooms = core.spec, core.hand, core.rooms
    views = [pass_.view for pass_ in hand.passes]
    of = [lambda name, r=r: core.of_group(name, core.groups_of[r]) for r in rooms]
    under_way = [core.under_way(r, forming[r]) for r in rooms]
    before_loop = [under_way[r] & ~core.looping[r] for r in rooms]
    spec.claim(
        "Members of a pass sit, from PLAN to its loop point.",
        [(views[r].members & ~of[r]("seated")) == 0 for r in rooms],
        when=before_loop,
    )
    spec.claim(
        "A pass alive has a member.", [views[r].members.any() for r in rooms], when=[p.alive for p in hand.passes]
    )
    spec.claim(
        "Nobody unready is in a pass: members are bound, and not in a prefilling list.",
        [(views[r].members & (~of[r]("bound") | of[r]("listed"))) == 0 for r in rooms],
        when=before_loop,
    )
    spec.claim(
        "Nobody unready is in a pass: members are not parked.",
        [(views[r].members & of[r]("parked")) == 0 for r in rooms],
        when=under_way,
    )
    pairs = [(a, b) for a in rooms for b in rooms if a < b]
    spec.claim(
        "Nobody is in two passes.",
        [(views[a].members & views[b].members) == 0 for a, b in pairs],
        when=[under_way[a] & under_way[b] & (core.groups_of[a] == core.groups_of[b]) for a, b in pairs],
    )
    lanes = core.params.lanes
    spec.claim(
        "Who decodes in a pass of a group, or of a pipeline, has a seat of its share.",
        [(views[r].members & of[r]("decoding") & ~core.share(r)) == 0 for r in rooms[:lanes]],
        when=[before_loop[r] for r in rooms[:lanes]],
    )
    seconds = rooms[lanes:]
    spec.claim(
        "Nobody decodes in a second pass.",
        [(views[r].members & of[r]("decoding")) == 0 for r in seconds],
        when=[before_loop[r] for r in seconds],
    )
    spec.lemma(
        "Somebody sits while a pass is formed.",
        core.of_group("seated", hand.group).any(),
        when=hand.job == Job.FORM,
    )
    spec.lemma(
        "A second pass binds nobody who decodes.",
        [(taking.decoding == 0) & (taking.unbound == 0) for _ in seconds],
        when=[forming[r] for r in seconds],
    )
    spec.lemma(
        "Reports are of members.",
        [(spec.inside(f"pass_{r}.finished") & ~views[r].members) == 0 for r in rooms],
    )


def entries(core: CoreState, forming: list[Signal]) -> None:
    spec, hand, rooms, most = core.spec, core.hand, core.rooms, core.params.entries
    views = [pass_.view for pass_ in hand.passes]
    spec.lemma("A pass has no more entries than there are.", [views[r].count <= most for r in rooms])
    spec.lemma(
        "A loop point goes through the entries.",
        [hand.entries_left <= views[r].count for r in rooms],
        when=list(core.looping),
    )
    places = [(r, index) for r in rooms for index in range(most)]
    kept = {place: core.entries[place[0] * most + place[1]] for place in places}
    # An entry stands from CHUNK until it has advanced in the pass's loop point.
    stands = {
        (r, index): core.under_way(r, forming[r])
        & (index < views[r].count)
        & (~core.looping[r] | (index < hand.entries_left))
        for r, index in places
    }

    def of(name: str, r: int, index: int) -> Value:
        return core.of_group(name, core.groups_of[r]).bit_select(kept[r, index].seat, 1)

    def slot(r: int, index: int) -> Value:
        return core.sits_in(core.groups_of[r], kept[r, index].seat)

    sits = {place: of("seated", *place) for place in places}
    spec.claim(
        "An entry is of a member.",
        [views[r].members.bit_select(kept[r, index].seat, 1) for r, index in places],
        when=[stands[place] for place in places],
    )
    spec.claim(
        "It names the slot of the request that sits there.",
        [kept[place].slot == slot(*place) for place in places],
        when=[stands[place] & sits[place] for place in places],
    )
    rest = [work.rest for work in core.works]
    spec.claim(
        "An entry with rows is of a request that has as many left to prefill, and is in no list; one without is of a"
        " request that decodes.",
        [
            Mux(
                kept[place].rows != 0,
                ~of("decoding", *place) & ~of("listed", *place) & (kept[place].rows <= Array(rest)[slot(*place)]),
                of("decoding", *place),
            )
            for place in places
        ],
        when=[stands[place] & sits[place] for place in places],
    )
    twos = [(r, a, b) for r in rooms for b in range(most) for a in range(b)]
    spec.claim(
        "No two entries are of one seat.",
        [kept[r, a].seat != kept[r, b].seat for r, a, b in twos],
        when=[stands[r, b] for r, _, b in twos],
    )
    owned = [(group, seat) for group in core.groups for seat in core.chairs]
    spec.claim(
        "Nobody is forgotten: who has rows left to prefill, and is not parked, is in its list or in a pass.",
        [
            hand.seats[group].listed[seat]
            | Cat(
                stands[place]
                & (core.groups_of[place[0]] == group)
                & (kept[place].seat == seat)
                & (kept[place].rows != 0)
                for place in places
            ).any()
            for group, seat in owned
        ],
        when=[
            (s.seated & ~s.decoding & ~s.parked)[seat] & ~s.resetting
            for s, seat in ((hand.seats[group], seat) for group, seat in owned)
        ],
    )


def rows(core: CoreState, forming: list[Signal], taking: Taking) -> None:
    spec, hand, rooms = core.spec, core.hand, core.rooms
    views = [pass_.view for pass_ in hand.passes]
    under_way = [core.under_way(r, forming[r]) for r in rooms]
    spec.lemma(
        "Who has members has rows, and who has rows has members.",
        [views[r].members.any() == views[r].rows.any() for r in rooms],
        when=under_way,
    )
    spec.lemma(
        "Rows are bound seats that decode, and rows of chunks.",
        [views[r].rows + taking.unbound == taking.decoding + taking.bound + taking.chunks for r in rooms],
        when=list(forming),
    )
    spec.lemma("Entries are known.", [taking.entered == (views[r].count != 0) for r in rooms], when=list(forming))
    spec.lemma(
        "No more decode than sit, and ROWS has room for them.",
        Cat(
            taking.bound <= taking.unbound,
            taking.unbound <= taking.decoding,
            taking.decoding <= core.params.seats,
            taking.limit >= taking.decoding + 16,
            taking.limit <= 512,
        ).all(),
        when=taking.forming,
    )
