"""Whose turn a free seat is, and in how many steps it is given away (docs/device.md §9)."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Array, Cat, Const, Mux, Value

from cuelight_rtl.hand import Job, Step
from cuelight_rtl.params import TIERS
from cuelight_rtl.queue import ListOp
from cuelight_rtl.regmap import CommitKind

from .core import WAITS, CoreState, number
from .core_cycles import cycle_claims

__all__ = ["wait_claims"]


def wait_claims(core: CoreState) -> None:
    with core.spec.part(WAITS):
        heads(core)
        due = [is_due(core, group) for group in core.groups]
        left = core.spec.past(core.at["EXECUTE"] & core.hand.strobes["leave"])
        turns(core, due, left)
        steps(core)
        jobs(core)
        cycle_claims(core, Cat(due).any(), left)


def is_due(core: CoreState, group: int) -> Value:
    """Whether a seat is free for a tier of the group that waits."""
    seats = core.hand.seats[group]
    free = ~seats.seated & Cat(seats.limit > seat for seat in core.chairs)
    return free.any() & (core.hand.waiting[group] & seats.welcome).any() & ~seats.resetting


def is_step(core: CoreState, *but: CommitKind) -> Value:
    """Whether a step of the group in turn is committed that is none of ``but``."""
    step = core.hand.step
    of_group = step.valid & ~core.request.done & ~core.second
    return of_group & ~Cat(step.kind == kind for kind in but).any()


def heads(core: CoreState) -> None:
    """Who joins a queue where, and which of them is given a seat."""
    spec, hand, lists = core.spec, core.hand, core.hand.lists
    of_queue = lists.list < core.params.lanes * TIERS
    spec.claim(
        "Who is paused or credited is put in front of a queue, each time one, and nobody else is.",
        (core.second & (core.current == Step.PAUSE)) | (core.at["EXECUTE"] & (core.current == Step.CREDIT)),
        when=(lists.op == ListOp.PUSH_FRONT) & of_queue,
    )
    spec.claim(
        "Who is admitted joins its queue behind all others.",
        core.at["EXECUTE"] & (core.current == Step.COMMAND) & (hand.step.kind == CommitKind.ADMIT),
        when=(lists.op == ListOp.PUSH) & of_queue,
    )
    given = core.does(Step.SEAT)
    tier = core.field("tier", hand.slot)
    waiting = Array(hand.waiting)[hand.group]
    poor, welcome = (waiting & core.of_group(name, hand.group) for name in ("hungry", "welcome"))
    spec.claim(
        "A seat is given to the highest tier that waits and has fewer than its MIN_SEATS; if there is none, to the"
        " highest that waits and leaves its SEAT_FLOOR free.",
        Mux(
            poor.any(),
            poor.bit_select(tier, 1) & ~(poor & ((1 << tier) - 1)).any(),
            welcome.bit_select(tier, 1) & ~(welcome & ((1 << tier) - 1)).any(),
        ),
        when=given,
    )
    lower = [given & waiting[own] & (tier > own) for own in range(TIERS)]
    spec.claim(
        "While somebody of a tier waits, a lower tier is given a seat only if that has fewer than its MIN_SEATS, or the"
        " higher one's SEAT_FLOOR keeps it out.",
        [poor.bit_select(tier, 1) | ~welcome[own] for own in range(TIERS)],
        when=lower,
    )


def turns(core: CoreState, due: list[Value], left: Value) -> None:
    """A group for which a seat is due has its turn."""
    spec, hand, at = core.spec, core.hand, core.at
    for group, seats in enumerate(hand.seats):
        free = ~seats.seated & Cat(seats.limit > seat for seat in core.chairs)
        spec.lemma(
            f"A free seat of group {group} is not missed, but in the cycle after somebody left it.",
            seats.free_any | (at["SELECT"] & left),
            when=free.any() & (seats.queued_count != 0) & (at["SELECT"] | at["STEP"]),
        )
    spec.claim(
        "Where a group is chosen, one for which a seat is due can be, but in the cycle after somebody left a seat.",
        [hand.wanted[group] | left for group in core.groups],
        when=[at["SELECT"] & due[group] for group in core.groups],
    )
    chooses = at["SELECT"] & (hand.job == Job.NONE) & ~core.request.valid & ~hand.show_due & core.swept
    if core.params.lanes > 1:
        pairs = [(a, b) for a in core.groups for b in core.groups]

        def after(group: int, other: int) -> int:
            """How many groups have their turn between the two."""
            return (other - group - 1) % core.params.lanes

        distance = [Array(Const(after(a, b)) for b in core.groups) for a in core.groups]
        spec.claim(
            "Groups that have something to do take turns: the one after the latest is chosen.",
            [distance[a][hand.group] <= after(a, b) for a, b in pairs],
            when=[spec.past(chooses & (hand.group == a) & hand.wanted[b]) for a, b in pairs],
        )
    chosen = [at["STEP"] & (hand.job == Job.NONE) & (hand.group == group) & due[group] for group in core.groups]
    spec.claim(
        "A group in turn for which a seat is due takes a step, and plans no pass.",
        (at["LOOKUP"] | at["FETCH"] | spec.past(hand.step.valid)) & ~spec.past(hand.strobes["plan"]),
        when=spec.past(Cat(chosen).any()),
    )


def steps(core: CoreState) -> None:
    """How many steps a group may take before it gives a seat away that is due."""
    spec, hand, most = core.spec, core.hand, core.params.entries
    forms, loops = hand.job == Job.FORM, hand.job == Job.LOOP
    spec.lemma(
        "Who has sampled in a pass is a member.",
        [(spec.inside(f"pass_{room}.sampled") & ~pass_.view.members) == 0 for room, pass_ in enumerate(hand.passes)],
    )
    for group, seats in enumerate(hand.seats):
        formed = forms & (hand.group == group)
        alive = [
            (core.groups_of[room] == group) & core.under_way(room, forms & (hand.room == room)) for room in core.rooms
        ]
        of_passes, members = [], [Const(0, core.params.seats)]
        for room, view in enumerate(pass_.view for pass_ in hand.passes):
            here = hand.room == room
            # What is formed has its loop point before it, and the entries that it may still take.
            of_forming = (most - view.count) + 1 + (most + 1)
            left = Mux(forms & here, of_forming, Mux(loops & here, hand.entries_left, 1 + view.count))
            of_passes.append(Mux(alive[room], left, 0))
            members.append(Mux(alive[room], view.members, 0))
        # Who sits may leave, and may be parked before that, at once or when a pass ends.
        parks = seats.seated & (seats.parking | reduce(or_, members) | formed.replicate(core.params.seats))
        left = sum(of_passes, start=number(seats.seated) + number(parks))
        before = spec.past(left)
        spec.claim(
            f"Steps are left to group {group} before SEAT: ENTRIES + 1 for each pass, once more for one that is formed,"
            " and 2 for each seat at most.",
            left <= (most + 1) * (number(Cat(alive)) + formed) + 2 * seats.limit,
        )
        spec.claim(
            f"Each step of group {group}, but for SEAT and PLAN, leaves fewer.",
            left < before,
            when=spec.past(is_step(core, CommitKind.SEAT, CommitKind.PLAN) & (hand.group == group) & ~seats.resetting),
        )
        begins = (hand.group == group) & (hand.strobes["take"] | hand.strobes["plan"])
        spec.claim(
            f"Nothing else leaves more to group {group}, but a PARK, which leaves one.",
            left <= before + spec.past(hand.strobes["ask_park"]),
            when=spec.past(~begins),
        )


def jobs(core: CoreState) -> None:
    """How many steps a group may take in its turn."""
    spec, hand, most = core.spec, core.hand, core.params.entries
    count = Array(pass_.view.count for pass_ in hand.passes)[hand.room]
    seated = core.of_group("seated_count", hand.group)
    of_loop = hand.entries_left + Mux(hand.advancing, 0, seated)
    left = Mux(hand.job == Job.FORM, (most - count) + 1, Mux(hand.job == Job.LOOP, of_loop, 0))
    spec.claim(
        "Once begun, forming or a loop point has ENTRIES + SEATS steps at most.",
        left <= most + core.of_group("limit", hand.group),
        when=hand.job != Job.NONE,
    )
    begun = spec.past(hand.job != Job.NONE)
    spec.claim("Each step of it leaves fewer.", left < spec.past(left), when=begun & spec.past(is_step(core)))
    spec.claim("Nothing leaves it more.", left <= spec.past(left), when=begun)
