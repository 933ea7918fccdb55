"""The core keeps its promises to the rooms around it, and ties lives, lists, seats and passes together."""

from __future__ import annotations

from cuelight_rtl.params import Params

from . import budget, dispatch, pages, passes, pipelines, queue, seats, slots, walk
from .core import WAITS, CoreState
from .core_credit import credit_claims
from .core_lists import list_claims
from .core_passes import pass_claims
from .core_seats import seat_claims
from .core_steps import step_claims
from .core_waits import wait_claims
from .spec import Spec

__all__ = ["claimed", "steps", "waits"]


def steps(params: Params, part: str = "") -> Spec:
    """One part of what is claimed of the core's steps, or all of it."""
    return claimed(CoreState(params, part)).spec


def waits(params: Params) -> Spec:
    """What is claimed of queues and free seats, where all that is proven of the core's steps is taken to hold."""
    return claimed(CoreState(params, WAITS)).spec


def claimed(core: CoreState) -> CoreState:
    """Assumes and claims all of it."""
    spec, hand, params = core.spec, core.hand, core.params
    core.assume_bus()
    core.assume_seats()
    core.assume_pipelines()
    core.assume_walkers()
    with spec.part("promises"):
        slots.promised(spec, hand.slots)
        links = queue.promised(
            spec, hand.lists, params, hand.lists.list, hand.lists.onto, hand.lists.heads, hand.lists.count
        )
        for group in core.groups:
            with spec.about(f"Group {group}"):
                seats.promised(spec, hand.seats[group], params)
        forming = []
        for room in core.rooms:
            with spec.about(f"Pass {room}"):
                forming.append(passes.promised(spec, hand.passes[room], f"_{room}"))
        over = hand.strobes["form"] | (hand.strobes["drop"] & (hand.target == hand.group))
        used = pages.promised(spec, core.pages, params)
        pipelines.promised(spec, core.pipelines, params)
        walking = []
        for room in core.rooms:
            with spec.about(f"Pass {room}"):
                walking.append(walk.promised(spec, core.lanes.walkers[room], params, core.pipelines, room))
        for index, lane in enumerate(core.lanes.dispatchers):
            with spec.about(f"Lane {index}"):
                dispatch.promised(spec, lane, resting=~lane.outstanding & ~core.serves(index))
        spec.claim(
            "Reports and drops are requests of the bus, done in that cycle.",
            core.request.done,
            when=hand.reported.any() | hand.strobes["drop"],
        )
        taking = budget.promised(spec, hand.budget, params, over)
    core.assume_lists(links)
    budget.assume_proven(spec, hand.budget, taking)
    step_claims(core, links, taking)
    list_claims(core, links.where, used)
    seat_claims(core)
    pass_claims(core, forming, taking, walking)
    credit_claims(core)
    if core.part == WAITS:
        wait_claims(core)
    return core
