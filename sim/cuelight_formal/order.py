"""Which steps the core takes for a group at which part of its work."""

from __future__ import annotations

import warnings

from amaranth.hdl import Cat, Const, Mux, Signal, UnusedElaboratable, Value

from cuelight_rtl.core import Core
from cuelight_rtl.hand import Job, RequestKind, Step
from cuelight_rtl.lanes import Lanes
from cuelight_rtl.pages import Pages
from cuelight_rtl.params import Params
from cuelight_rtl.regmap import CommitKind

from .spec import Spec

__all__ = ["order"]


def core(params: Params) -> tuple[Spec, Lanes]:
    """The core; pages, walkers and dispatchers around it answer as they like, and so do slots and lists."""
    # Rooms around the one that is proven are never elaborated.
    warnings.simplefilter("ignore", UnusedElaboratable)
    pages, lanes = Pages(params), Lanes(params)
    pipelines = lanes.pipelines
    around = [
        *(pages.enable, pages.offered, *map(Value.cast, pages.offer)),
        *(*pipelines.owners, *pipelines.lengths, pipelines.absorbed, pipelines.legal),
        *(signal for walker in lanes.walkers for signal in (walker.due, walker.done)),
        *(signal for lane in lanes.dispatchers for signal in (lane.awaited, lane.outstanding)),
        *lanes.finish_seats,
    ]
    return Spec(Core(params, pages, lanes), around=map(Value.cast, around)), lanes


def order(params: Params) -> Spec:
    """The core beside a ghost that knows, from the commits alone, what each group is at."""
    spec, lanes = core(params)
    m, room = spec.m, spec.room
    step, groups = room.step, params.lanes
    hand = room._hand
    job, current, group = hand.job, hand.current, hand.group
    forming, looping, resetting = (Signal(groups, name=name) for name in ("at_forming", "at_loop", "at_reset"))
    lane = step.lane[: max(1, (groups - 1).bit_length())]

    def of(bits: Value) -> Value:
        return bits.bit_select(lane, 1)

    def is_kind(*kinds: CommitKind) -> Value:
        return step.valid & Cat(step.kind == kind for kind in kinds).any()

    with m.If(is_kind(CommitKind.PLAN)):
        m.d.sync += of(forming).eq(1)
    with m.If(is_kind(CommitKind.FORM)):
        m.d.sync += of(forming).eq(0)
    with m.If(is_kind(CommitKind.LOOP_POINT)):
        m.d.sync += of(looping).eq(1)
    with m.If(hand.strobes["end"]):
        m.d.sync += looping.bit_select(group, 1).eq(0)
    with m.If(is_kind(CommitKind.GROUP_RESET)):
        m.d.sync += [of(resetting).eq(1), of(forming).eq(0), of(looping).eq(0)]
    with m.If(is_kind(CommitKind.GROUP_READY)):
        m.d.sync += of(resetting).eq(0)

    # What the rooms around promise: requests are of some kind (registers.py), a pass that is due is alive (walk.py).
    spec.assume(~room.request.valid | (room.request.kind <= max(RequestKind)))
    for pass_, walker in zip(room.passes, lanes.walkers, strict=True):
        spec.assume(~walker.due | pass_.alive)

    begun = (forming | looping).any()
    at = spec.states()
    # That these steps happen is seen in the benches, where each is a bin of coverage: a run from reset to a first chunk
    # is too long for a solver.
    for sentence, kinds, holds in (
        (
            "Entries are taken and passes are formed only from a PLAN of the group on, up to its FORM.",
            (CommitKind.CHUNK, CommitKind.FORM),
            of(forming) & ~of(resetting),
        ),
        (
            "Chunks advance only from a LOOP_POINT of the group on, up to its end.",
            (CommitKind.ADVANCE,),
            of(looping) & ~of(resetting),
        ),
        (
            "Nobody is seated, paused or parked, and no pass begins or ends, while one is formed or at its loop point.",
            (CommitKind.SEAT, CommitKind.PAUSE, CommitKind.PARKED, CommitKind.PLAN, CommitKind.LOOP_POINT),
            ~begun & ~of(resetting),
        ),
        ("A reset is complete only where one was begun.", (CommitKind.GROUP_READY,), of(resetting)),
        (
            "Nobody leaves a seat between PLAN and FORM, and at a loop point only the group's own do.",
            (CommitKind.RETIRE,),
            ~at["EXECUTE"] | (~forming.any() & (of(looping) | ~looping.any())),
        ),
        (
            "A group without a pass comes to no loop point.",
            (CommitKind.LOOP_POINT,),
            hand.in_pass.bit_select(lane, 1),
        ),
    ):
        spec.claim(sentence, ~is_kind(*kinds) | holds)

    mine = (Const(1, groups) << group)[:groups]
    spec.lemma("What was begun is the job in hand.", forming == Mux(job == Job.FORM, mine, 0))
    spec.lemma("So is a loop point.", looping == Mux(job == Job.LOOP, mine, 0))
    spec.lemma("The seats know of a reset.", Cat(seats.resetting for seats in room.seats) == resetting)
    spec.lemma("A reset ends what was begun.", ((forming | looping) & resetting) == 0)
    under_way = Cat(at[name] for name in ("LOOKUP", "FETCH", "WEIGH", "EXECUTE")).any()
    lost = resetting.bit_select(group, 1)
    for sentence, some, holds in (
        ("A step of forming is taken while a pass is formed.", (Step.BIND, Step.CHUNK), job == Job.FORM),
        ("A step of a loop point is taken at one.", (Step.ADVANCE,), job == Job.LOOP),
        ("A step between passes is taken there.", (Step.SEAT, Step.PAUSE, Step.PARK_SEATED), (job == Job.NONE) & ~lost),
        ("A queue is emptied in a reset.", (Step.RETIRE_QUEUED,), lost),
        ("A seat is not emptied while a pass is formed.", (Step.RETIRE_SEATED,), job != Job.FORM),
    ):
        spec.lemma(sentence, ~(under_way & Cat(current == each for each in some).any()) | holds)
    spec.lemma("A group is one that there is, and so is a job.", (group < groups) & (job <= max(Job)))
    return spec
