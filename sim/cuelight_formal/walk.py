"""A pass goes through its stages in order, and on to another lane only when all its dispatches are complete."""

from __future__ import annotations

import warnings

from amaranth.hdl import Cat, Mux, Signal, UnusedElaboratable, Value

from cuelight_rtl.params import Params
from cuelight_rtl.pipelines import Pipelines
from cuelight_rtl.walk import Walker

from .spec import Spec

__all__ = ["joined", "promised", "stages"]


def promised(spec: Spec, room: Walker, params: Params, pipelines: Pipelines, number: int) -> Signal:
    """What the core promises a walker, whose pass is in room ``number``; returns whether the pass is on its way."""
    m = spec.m
    alive = Signal(name=f"walks_{number}")
    with m.If(room.start):
        m.d.sync += alive.eq(1)
    with m.Elif(room.loop | room.drop):
        m.d.sync += alive.eq(0)
    group = pipelines.owners[number] if number < params.lanes else number - params.lanes
    lanes = zip(pipelines.owners, pipelines.absorbed, pipelines.first_stages, strict=True)
    settings = [Cat(owner == group, Mux(owner == group, Cat(gone, first), 0)) for owner, gone, first in lanes]
    spec.promise(
        "There are four stages at least.",
        (room.stage_count >= 4) & (room.stage_count <= params.stages),
        when=room.start,
    )
    kept = Cat(*settings, room.stage_count, room.binds, room.samples)
    spec.promise(
        "Stages, the group's lanes and entries stay while the pass is on its way.", kept == spec.past(kept), when=alive
    )
    spec.promise("One pass begins at a time.", ~(alive | room.drop), when=room.start)
    spec.promise("Its loop point begins when it is due.", room.due, when=room.loop)
    return alive


def joined(spec: Spec, room: Walker, outstanding: Value, ended: Value) -> None:
    """What lanes promise a walker that has dispatches ``outstanding``, and had its last one if it ``ended``."""
    spec.promise(
        "What is dispatched was ready; two are outstanding at most, and none completes or is dropped in that cycle.",
        room.ready & ~room.drop & ~room.done & (outstanding < 2),
        when=room.go,
    )
    spec.promise("What completes was outstanding, and is not dropped.", (outstanding != 0) & ~room.drop, when=room.done)
    spec.promise(
        "Of its last dispatch it is told so, and of no other.",
        room.done_final == (room.done & ended & (outstanding == 1)),
        when=room.done | room.done_final,
    )


def stages(params: Params, *, second: bool = False) -> Spec:
    """Pass 0 of group 0, which owns whichever lanes, or its second pass; a ghost remembers what was dispatched."""
    warnings.simplefilter("ignore", UnusedElaboratable)
    pipelines = Pipelines(params)
    room = Walker(params, params.lanes if second else 0, pipelines)
    settings = [*pipelines.owners, pipelines.absorbed, *pipelines.first_stages]
    spec = Spec(room, around=settings)
    m = spec.m
    go, done, stage, lane = room.go, room.done, room.next.stage, room.next.lane
    alive = promised(spec, room, params, pipelines, 0)
    ended, begun = Signal(), Signal()
    layer, latest_lane = Signal(8), Signal(3)
    outstanding = Signal(2)

    spec.assume(pipelines.owners[0] == 0)
    joined(spec, room, outstanding, ended)

    final_stage = room.stage_count - 2 + room.samples
    with m.If(room.start):
        m.d.sync += [ended.eq(0), begun.eq(0), layer.eq(1)]
    with m.If(go):
        m.d.sync += [begun.eq(1), latest_lane.eq(lane), ended.eq(stage == final_stage)]
        with m.If(stage != 1):
            m.d.sync += layer.eq(stage)
    m.d.sync += outstanding.eq(Mux(room.drop, 0, outstanding + go - done))

    def runs(number: Value) -> Value:
        chosen: Value = Value.cast(0)
        for other in range(1, 1 if second else params.lanes):
            ours = (pipelines.owners[other] == 0) & pipelines.absorbed[other]
            chosen = Mux(ours & (pipelines.first_stages[other] <= number), other, chosen)
        return chosen

    moves = begun & (lane != latest_lane)
    fresh = ~begun | moves
    upcoming = (layer + 1)[:8]
    spec.claim("Layer stages go in order, from 2 on, and none is left out.", stage == upcoming, when=go & (stage != 1))
    spec.claim(
        "A second pass stays on its group's lane."
        if second
        else "A stage runs on the highest lane of the group whose FIRST_STAGE is not above it, else on lane g; stage 1"
        " on the lane that the next layer stage runs on.",
        lane == runs(upcoming),
        when=go,
    )
    spec.claim(
        "The first dispatch on each lane is stage 1 exactly if an entry binds.",
        (stage == 1) == room.binds,
        when=go & fresh,
    )
    spec.claim("No later dispatch on a lane is stage 1.", stage != 1, when=go & ~fresh)
    spec.claim("`first` marks the first on each lane.", room.next.first == fresh, when=go)
    spec.claim(
        "`last` marks the last on each lane.",
        room.next.last == ((stage != 1) & ((stage == final_stage) | (runs((stage + 1)[:8]) != lane))),
        when=go,
    )
    spec.claim(
        "The last stage is output decode if a row samples, else the last layer stage.",
        room.next.final == (stage == final_stage),
        when=go,
    )
    if second:
        spec.claim("No lane is told that it arrives.", ~room.arrives)
        spec.lemma("It has been on its lane.", latest_lane == runs(upcoming), when=alive & begun)
    else:
        spec.claim(
            "It goes on to another lane only when all its dispatches are complete.", outstanding == 0, when=go & moves
        )
        spec.claim(
            "A lane that it arrives at is told with the completion that lets it go on.",
            room.arrives == (done & (outstanding == 1) & alive & ~ended & moves),
        )
        spec.reach("It goes on to a third lane.", alive & begun & (latest_lane == 2) & go)
    spec.claim("Nothing is ready after its last stage, or when no pass is alive.", ~room.ready, when=~alive | ended)
    spec.claim(
        "It is due from the completion of its last dispatch on, until its loop point, and at no other time.",
        room.due == (alive & ended & (outstanding == 0)),
    )
    spec.claim(
        "A pass alive is due, has a stage to dispatch, or waits for a completion.",
        room.due | room.walking | (outstanding != 0),
        when=alive,
    )
    spec.claim("With none outstanding, its next stage is ready.", room.ready, when=alive & ~ended & (outstanding == 0))
    spec.lemma("What walks is alive and has not ended.", room.walking == (alive & ~ended))
    spec.lemma("A pass that has gone is over.", outstanding == 0, when=~alive)
    spec.lemma("Dispatches are counted.", spec.inside("outstanding") == outstanding)
    spec.lemma("Nothing is outstanding before the first dispatch.", outstanding == 0, when=alive & ~begun)
    spec.lemma("The walker's last stage is the pass's.", spec.inside("final_stage") == final_stage, when=alive)
    spec.lemma(
        "The walker's next stage is the one after the latest, on its lane.",
        (spec.inside("stage") == upcoming) & (lane == runs(upcoming)) & (layer < final_stage) & (layer >= 1),
        when=room.walking,
    )
    spec.lemma("It is fresh where nothing was dispatched.", spec.inside("fresh") == fresh, when=room.walking)
    spec.lemma(
        "Stage 1 comes first where it comes.",
        spec.inside("binding") == (fresh & room.binds),
        when=room.walking,
    )
    spec.lemma("What has ended began.", begun & (layer == final_stage), when=alive & ended)
    return spec
