"""Runs of the core with all its rooms, in which its claims say something."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from amaranth.hdl import Value
from amaranth.sim import SimulatorContext

from cuelight_rtl import regmap
from cuelight_rtl.hand import RequestKind
from cuelight_rtl.judge import CANCEL
from cuelight_rtl.pages import AttrState
from cuelight_rtl.params import Params

from .core import CoreState
from .core_promises import claimed

__all__ = ["tell"]

EPOCH = 1
CYCLES = 160
STRIDE = regmap.LANE_STRIDE
"""Of lanes, and of groups."""
GROUP_RESET = regmap.CONTROL + regmap.Control.GROUP_RESET
SEATS = regmap.GROUP + regmap.Group.SEATS
BLOCKS = regmap.GROUP + regmap.Group.KV_BLOCKS
FLOOR = regmap.TIER + regmap.Tier.SEAT_FLOOR
DEPTH, SEQUENCE, FIRST_STAGE, PIPELINE = (
    regmap.LANE + each
    for each in (regmap.Lane.DEPTH, regmap.Lane.SEQUENCE, regmap.Lane.FIRST_STAGE, regmap.Lane.PIPELINE)
)


@dataclass(frozen=True)
class Ask:
    """Something that the bus asks, as soon as ``moment`` has come."""

    kind: RequestKind
    slot: int = 0
    moment: str = "now"
    stage: int = 0
    tier: int = 0
    rows: int = 1
    automatic: int = 1
    offset: int = GROUP_RESET
    value: int = 0


@dataclass(frozen=True)
class Story:
    """What is asked, one after the other; pass 0 is complete soon, once ``release`` of it is done.

    Whoever has the highest tier is reported finished.
    """

    asks: Sequence[Ask]
    release: int = 0


def admit(slot: int, tier: int, rows: int, moment: str = "now") -> Ask:
    return Ask(RequestKind.COMMAND, slot, moment, tier=tier, rows=rows)


def cancel(slot: int, moment: str = "now") -> Ask:
    return Ask(RequestKind.COMMAND, slot, moment, stage=CANCEL)


def write(offset: int, value: int, moment: str = "now") -> Ask:
    return Ask(RequestKind.CONFIG, moment=moment, offset=offset, value=value)


def park(slot: int, moment: str = "now") -> Ask:
    return Ask(RequestKind.PARK, slot, moment)


def credit(slot: int, moment: str = "now") -> Ask:
    return Ask(RequestKind.CREDIT, slot, moment)


STORIES = [
    # The one seat goes to a higher tier, which is finished; then its owner is seated again, and bound.
    Story(
        [
            write(SEATS, 1),
            write(BLOCKS, 3),
            write(DEPTH, 2),
            write(SEQUENCE, 1),
            write(FIRST_STAGE, 1),
            write(PIPELINE, 1),
            admit(0, 1, 1),
            admit(1, 0, 1, "decoding"),
            Ask(RequestKind.RETIRE_POP, moment="shown"),
        ]
    ),
    # A second pass beside the first, whose prompt goes on. The first one's asks for a park, and is credited.
    Story(
        [
            admit(0, 1, 300),
            admit(1, 0, 300, "alive"),
            park(0, "second"),
            credit(0, "parked"),
            park(0),
            credit(0),
            cancel(1),
        ],
        release=3,
    ),
    # The second pass has the last rows of its prompt.
    Story([admit(0, 1, 300), admit(1, 0, 1, "alive"), Ask(RequestKind.STAGE_DONE, 1, "second")], release=3),
    # Two entries in a pass; then its group is reset.
    Story(
        [
            admit(0, 1, 300),
            admit(1, 1, 1),
            Ask(RequestKind.STAGE_DONE, 0, "alive"),
            write(GROUP_RESET, 0, "decoding"),
        ],
        release=3,
    ),
    # Its floor keeps one of a higher tier out, who is parked and credited behind another that sits; both are lost.
    Story(
        [
            write(SEATS, 1),
            write(FLOOR, 2),
            admit(1, 0, 1),
            admit(0, 1, 300),
            park(1),
            credit(1),
            write(GROUP_RESET, 0),
        ]
    ),
    # A request in manual mode.
    Story([Ask(RequestKind.COMMAND, automatic=0), Ask(RequestKind.STAGE_DONE), Ask(RequestKind.COMMAND), cancel(0)]),
    # Two lanes are one pipeline.
    Story([write(PIPELINE, 2), admit(0, 0, 1), admit(1, 1, 1), park(1, "decoding")]),
]


def tell(params: Params, part: str = "") -> list[int]:
    """Plays all stories; for each claim of a part, or of all, the first cycle in which it says something, or -1."""
    core = claimed(CoreState(params, part, played=True))
    return core.spec.play([_script(core, story, group) for group in range(params.lanes) for story in STORIES])


def _script(core: CoreState, story: Story, group: int) -> Callable[[SimulatorContext], bool]:
    hand, request, pages = core.hand, core.request, core.pages
    first, second, seats = hand.passes[group], hand.passes[core.params.lanes + group], hand.seats[group]
    highest = core.spec.inside(f"seats_{group}.tier_0")
    moments: dict[str, Value] = {
        "alive": first.alive,
        "second": second.alive,
        "decoding": seats.decoding.any(),
        "parked": seats.parked.any(),
        "shown": core.core.retired.valid,
    }
    ages = [0] * len(hand.passes)
    told, asking, done, cycle = 0, False, False, 0

    def script(context: SimulatorContext) -> bool:
        nonlocal told, asking, done, cycle
        for room, (walker, pass_) in enumerate(zip(core.lanes.walkers, hand.passes, strict=True)):
            walks = context.get(pass_.alive) and not context.get(core.looping[room])
            ages[room] = ages[room] + 1 if walks else 0
            held = room == group and told < story.release
            context.set(walker.done, ages[room] == 2)
            context.set(walker.due, ages[room] > 2 and not held)
            context.set(core.lanes.finish_seats[room], context.get(highest))
        context.set(pages.enable, 1)
        context.set(pages.offered, 1)
        for lane in core.lanes.dispatchers:
            context.set(lane.awaited, context.get(first.view.members))
        if done:
            context.set(request.valid, 0)
            asking, told = False, told + 1
        elif not asking and told < len(story.asks):
            ask = story.asks[told]
            if ask.moment == "now" or context.get(moments[ask.moment]):
                asking = True
                _ask(context, core, ask, group)
        done = bool(context.get(request.done))
        cycle += 1
        return cycle > CYCLES

    return script


def _ask(context: SimulatorContext, core: CoreState, ask: Ask, group: int) -> None:
    """Asks it of ``group``."""
    request, reset = core.request, ask.offset == GROUP_RESET
    place = 0 if reset or ask.offset == FLOOR else group * STRIDE
    context.set(core.pages.offer[0].slot, ask.slot)
    for name, value in (
        ("kind", ask.kind),
        ("offset", ask.offset + place),
        ("value", group if reset else ask.value),
        ("attr_state", AttrState.WHOLE),
    ):
        context.set(getattr(request, name), value)
    for name, value in (("id", EPOCH << 16 | ask.slot), ("stage", ask.stage)):
        context.set(getattr(request.command, name), value)
    for name, value in (("automatic", ask.automatic), ("tier", ask.tier), ("rows", ask.rows), ("group", group)):
        context.set(getattr(request.attr, name), value)
    context.set(request.valid, 1)
