"""What is in hand at each step of the core: the slot, its rows, its seat, its list."""

from __future__ import annotations

from collections.abc import Callable

from amaranth.hdl import Array, Cat, Const, Mux, Signal, Value

from cuelight_rtl.hand import Job, RequestKind, Step
from cuelight_rtl.params import TIERS
from cuelight_rtl.queue import ListOp
from cuelight_rtl.seats import Seats
from cuelight_rtl.slots import Life, Owner

from .budget import Taking
from .core import CoreState, one_of
from .queue import Links

__all__ = ["step_claims"]


def step_claims(core: CoreState, links: Links, taking: Taking) -> None:
    with core.spec.part("steps"):
        states(core, links.where)
        rows(core, links)
        lists_in_hand(core, links.where)
        seats_in_hand(core, taking)
        summaries(core)


def states(core: CoreState, where: Array[Signal]) -> None:
    spec, hand, at, current = core.spec, core.hand, core.at, core.current
    spec.lemma(
        "Before the sweep is done nothing happens, and nobody is there.",
        Cat(
            at["SELECT"],
            hand.job == Job.NONE,
            ~core.core.active.any(),
            ~core.core.retired.valid,
            *(~seats.seated.any() & ~seats.resetting for seats in hand.seats),
            *(~pass_.alive for pass_ in hand.passes),
            *(where[slot] == hand.lists.count for slot in core.slots),
        ).all(),
        when=~core.swept,
    )
    spec.lemma(
        "The state is one that there is.", Cat(at.values()).any() & (current <= max(Step)) & (hand.job <= max(Job))
    )
    requests = core.has & (current <= max(RequestKind))
    spec.lemma(
        "What the bus asks stands until it is done.", core.request.valid & (core.request.kind == current), when=requests
    )
    spec.lemma("A control write needs no slot.", at["EXECUTE"], when=core.does(Step.CONFIG))
    spec.lemma(
        "Only steps of a seat look it up.",
        core.looked,
        when=at["LOOKUP"],
    )
    spec.lemma("Only a chunk is weighed.", current == Step.CHUNK, when=at["WEIGH"])
    spec.lemma(
        "Only who goes to a second list has a second half.",
        one_of(current, Step.COMMAND, Step.RETIRE_SEATED, Step.RETIRE_QUEUED, Step.PAUSE),
        when=core.second,
    )


def rows(core: CoreState, links: Links) -> None:
    spec, hand, at, current = core.spec, core.hand, core.at, core.current
    kinds = (Step.COMMAND, Step.STAGE_DONE, Step.PARK, Step.CREDIT)
    spec.lemma(
        "A request of the bus is about the slot that its id names.",
        hand.slot == core.request.command.id[: core.params.slot_bits],
        when=core.does(*kinds),
    )
    owner, work = (core.of_slot([Value.cast(row) for row in of], hand.slot) for of in (core.owners, core.works))
    spec.lemma(
        "The rows of the slot in hand were read.",
        (spec.read_data("slots.owner_ram") == owner) & (spec.read_data("slots.work_ram") == work),
        when=core.has & (current != Step.CONFIG),
    )
    spec.claim(
        "A step sees the rows of its slot as they are.",
        (Value.cast(hand.slots.owner) == owner) & (Value.cast(hand.slots.work) == work),
        when=at["WEIGH"] | (at["EXECUTE"] & (current != Step.CONFIG)),
    )
    spec.lemma(
        "The links of the slot in hand were asked for, and nothing was done to lists since.",
        (links.asked[0] == hand.slot) & (links.ops[0] == ListOp.NONE),
        when=core.has & (current != Step.CONFIG),
    )
    spec.lemma(
        "A step sees its links as they are.",
        (links.asked[1] == hand.slot) & (links.ops[1] == ListOp.NONE) & links.begun,
        when=at["WEIGH"] | (at["EXECUTE"] & (current != Step.CONFIG)),
    )
    shown, now = hand.slots.owner, Owner(owner)
    spec.lemma(
        "Its second half knows its tier and group.",
        (shown.tier == now.tier) & (shown.group == now.group),
        when=core.second,
    )
    spec.lemma(
        "In its second half it has retired, or is queued again.",
        core.of_slot(core.lives, hand.slot) == Mux(current == Step.PAUSE, Life.QUEUED, Life.RETIRED),
        when=core.second,
    )
    spec.lemma(
        "In the second half of a step of a group it is the group's.",
        now.group == hand.group,
        when=core.second & (current != Step.COMMAND),
    )


def lists_in_hand(core: CoreState, where: Array[Signal]) -> None:
    spec, hand, lists = core.spec, core.hand, core.hand.lists
    group, resetting = hand.group, core.of_group("resetting", hand.group)
    queue = core.waiting_list(core.field("tier", hand.slot), group)
    spec.lemma(
        "Who is given a seat is the head of a queue of the group.",
        (where[hand.slot] == queue) & (lists.heads[queue] == hand.slot),
        when=core.does(Step.SEAT),
    )
    limit = core.of_group("limit", group)
    spec.lemma(
        "The seat that is given is free, and below SEATS.",
        (hand.seat < limit) & ~core.in_hand("seated") & (hand.job == Job.NONE) & ~resetting,
        when=core.does(Step.SEAT),
    )
    spec.lemma(
        "Who retires unseated is queued, and its group is resetting.",
        (where[hand.slot] == queue) & resetting,
        when=core.does(Step.RETIRE_QUEUED),
    )
    spec.lemma(
        "Who is shown in RETIRE_HEAD, or popped, is the head of the retirement FIFO.",
        (where[hand.slot] == lists.retired) & (lists.heads[lists.retired] == hand.slot),
        when=core.does(Step.SHOW_RETIRED) | (core.does(Step.RETIRE_POP) & lists.filled[lists.retired]),
    )
    spec.lemma(
        "Who brings a chunk is in a prefilling list of the tier on turn.",
        where[hand.slot] == core.prefilling_list(hand.tier, group),
        when=core.does(Step.CHUNK),
    )
    spec.claim(
        "RETIRE_HEAD, where it is valid, shows the head of the retirement FIFO, with its epoch and reason.",
        Cat(
            lists.filled[lists.retired],
            core.core.retired.id[: core.params.slot_bits] == lists.heads[lists.retired],
            core.core.retired.id[16:] == core.field("epoch", lists.heads[lists.retired]),
            core.core.retired.reason == core.field("reason", lists.heads[lists.retired]),
            core.core.retired.index == hand.retire_index[: len(core.core.retired.index)],
        ).all(),
        when=core.core.retired.valid,
    )


def seats_in_hand(core: CoreState, taking: Taking) -> None:
    spec, hand, at = core.spec, core.hand, core.at
    mapped = core.sits_in(hand.group, hand.seat)
    spec.lemma("The seat map was read.", spec.read_data("seat_map") == mapped, when=at["LOOKUP"])
    looked_up = (Step.RETIRE_SEATED, Step.PARK_SEATED, Step.PAUSE, Step.BIND)
    spec.lemma("The slot in hand is that of the seat.", hand.slot == mapped, when=core.does(*looked_up, Step.ADVANCE))
    spec.lemma(
        "The seat in hand is taken.",
        (hand.seat < core.params.seats) & core.in_hand("seated"),
        when=core.looked | core.does(Step.ADVANCE),
    )
    resetting = core.of_group("resetting", hand.group)
    leaves = (core.in_hand("marked") | core.in_hand("finished")) & ~core.in_hand("busy")

    def looks(step: Step) -> Value:
        return core.looked & (core.current == step)

    spec.claim(
        "Who retires from a seat is marked, or reported finished, and in no pass alive, unless the group is resetting.",
        leaves | resetting,
        when=looks(Step.RETIRE_SEATED),
    )
    spec.lemma(
        "Nobody retires while a pass is formed, or chunks advance.",
        (hand.job == Job.NONE) | ((hand.job == Job.LOOP) & ~hand.advancing),
        when=looks(Step.RETIRE_SEATED),
    )
    quiet = ~core.in_hand("busy") & (hand.job == Job.NONE) & ~resetting
    spec.claim(
        "Who is parked asked for it, and is in no pass.", core.in_hand("parking") & quiet, when=looks(Step.PARK_SEATED)
    )
    spec.claim("Who is paused is in no pass.", quiet, when=looks(Step.PAUSE))
    spec.claim(
        "Who is bound decodes unbound, and is not parked; PLAN counted one more.",
        Cat(
            core.in_hand("decoding"),
            ~core.in_hand("bound"),
            ~core.in_hand("parked"),
            hand.job == Job.FORM,
            taking.forming,
            taking.bound < taking.unbound,
        ).all(),
        when=looks(Step.BIND),
    )
    share = Array(seats.shares.bit_select(hand.seat[: (seats._longest - 1).bit_length()], 1) for seats in hand.seats)
    spec.lemma("It decodes in this pass.", share[hand.group], when=looks(Step.BIND))
    spec.claim(
        "There is a place for an entry.",
        (hand.job == Job.FORM) & ~Array(pass_.full for pass_ in hand.passes)[hand.room],
        when=looks(Step.BIND) | core.does(Step.CHUNK),
    )
    entry = hand.chunks.entry
    left = (hand.entries_left - 1)[: (core.params.entries - 1).bit_length()]
    kept = Array(Value.cast(each) for each in core.entries)[Cat(left, hand.room)]
    spec.lemma(
        "The entry that advances next was read.",
        Value.cast(entry) == kept,
        when=(hand.job == Job.LOOP) & (hand.entries_left != 0) & (at["STEP"] | core.does(Step.ADVANCE)),
    )
    spec.claim(
        "Who advances is the request of that entry, which has rows.",
        Cat(
            hand.job == Job.LOOP,
            hand.advancing,
            hand.entries_left != 0,
            hand.seat == entry.seat,
            hand.slot == entry.slot,
            entry.rows != 0,
        ).all(),
        when=core.does(Step.ADVANCE),
    )


def summaries(core: CoreState) -> None:
    """Summaries of the seats are registered; where the next step is chosen they are right."""
    spec, hand = core.spec, core.hand
    everyone = (1 << core.params.seats) - 1
    table: list[tuple[str, str, Callable[[Seats], Value]]] = [
        ("leaving", "who leaves", lambda s: s.seated & Mux(s.resetting, everyone, (s.marked | s.finished) & ~s.busy)),
        ("parking", "who parks", lambda s: s.seated & s.parking & ~s.busy),
        (
            "unbound",
            "who is bound",
            lambda s: s.decoding & ~s.bound & ~s.parked & s.shares.replicate(core.params.seats // s._longest),
        ),
        ("victim", "who is paused", lambda s: s.seated & ~s.busy),
        ("free", "which seat is given", lambda s: ~s.seated),
    ]
    for name, sentence, bitmap in table:
        here = [
            core.at["STEP"] & (hand.group == group) & getattr(seats, f"{name}_any")
            for group, seats in enumerate(hand.seats)
        ]
        if name == "unbound":
            here = [each & (hand.job == Job.FORM) for each in here]
        spec.lemma(
            f"Where the next step is chosen it is known {sentence}.",
            [bitmap(seats).bit_select(getattr(seats, f"{name}_seat"), 1) for seats in hand.seats],
            when=here,
        )
        if name in ("leaving", "parking", "unbound"):
            chosen = hand.job == Job.FORM if name == "unbound" else Const(1)
            spec.lemma(
                f"And that there is one: {sentence} is never missed.",
                [getattr(seats, f"{name}_any") for seats in hand.seats],
                when=[
                    core.at["STEP"] & (hand.group == group) & bitmap(seats).any() & chosen
                    for group, seats in enumerate(hand.seats)
                ],
            )
    begins = core.at["STEP"] & (hand.job == Job.NONE)
    spec.lemma(
        "Where the next pass is chosen, somebody is listed if prompts are seen.",
        [seats.listed.any() for seats in hand.seats],
        when=[begins & seats.prompts for seats in hand.seats],
    )
    spec.lemma(
        "Somebody above is listed if that is urgent.",
        [
            Cat(
                seats.above[tier] & (seats.listed & spec.inside(f"seats_{group}.tier_{tier}")).any()
                for tier in range(TIERS)
            ).any()
            for group, seats in enumerate(hand.seats)
        ],
        when=[begins & seats.urgent for seats in hand.seats],
    )
    shares = [(seats, share) for seats in hand.seats for share in range(seats._longest)]
    spec.lemma(
        "Somebody decodes, is not parked, and is in no pass, if decoders are seen.",
        [(seats.decoding & ~seats.parked & ~seats.busy)[share :: seats._longest].any() for seats, share in shares],
        when=[begins & seats.decoders[share] for seats, share in shares],
    )
    matches = [
        spec.inside(f"seats_{group}.below_limit") == Cat(seats.limit > seat for seat in core.chairs)
        for group, seats in enumerate(hand.seats)
    ]
    spec.lemma(
        "SEATS acts before anybody waits for a seat.",
        [
            match | (core.at["SELECT"] & (seats.queued_count == 0))
            for match, seats in zip(matches, hand.seats, strict=True)
        ],
    )
    spec.lemma(
        "A free seat is below SEATS where somebody waits for it.",
        [(seats.queued_count == 0) | (seats.free_seat < seats.limit) for seats in hand.seats],
        when=[core.at["STEP"] & seats.free_any for seats in hand.seats],
    )
