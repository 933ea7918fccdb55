"""A pass has dispatches on one lane at a time, and two lanes never complete in one cycle."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Signal, Value

from cuelight_rtl.lanes import Lanes
from cuelight_rtl.params import Params

from .spec import Spec
from .walk import joined

__all__ = ["completions"]


def completions(params: Params) -> Spec:
    """All lanes with the walkers of all passes, beside a ghost that knows on which lane each pass is."""
    room = Lanes(params)
    lanes, walkers, pipelines = room.dispatchers, room.walkers, room.pipelines
    spec = Spec(room, keeps=True)
    m = spec.m
    rooms, numbers = range(len(walkers)), range(params.lanes)
    owners = Array(pipelines.owners)
    group_of = [owners[each] if each < params.lanes else Const(each - params.lanes, 3) for each in rooms]
    alive = [Signal(name=f"alive_{each}") for each in rooms]
    home = [Signal(range(max(params.lanes, 2)), name=f"home_{each}") for each in rooms]
    members = [Signal(params.seats, name=f"members_{each}") for each in rooms]

    # What the bus promises: one write at a time, and none in the cycle of a member's report and in the one after.
    writing, written = spec.any("writing", 3), spec.any("written", 3)
    reports, group, seat = spec.any("reports", 1), spec.any("group", 3), spec.any("seat", params.seat_bits)
    spec.assume(~(reports | spec.past(reports)) | (written == 0))
    drops = spec.any("drops", 1)
    spec.assume(~drops | ((written == 0) & ~reports))
    for number, lane in enumerate(lanes):
        here = writing == number
        awaited = (owners[number] == group) & lane.awaited.bit_select(seat, 1)
        m.d.comb += [
            lane.finished_write.eq(here & (written == 1)),
            lane.done_write.eq(here & (written == 2)),
            lane.taken_write.eq(here & (written == 3)),
            lane.reoffer_write.eq(here & (written == 4)),
            lane.report.eq(reports & awaited),
            lane.report_seat.eq(seat),
            lane.drop.eq(drops & (owners[number] == group)),
            lane.done_sequence.eq(spec.any(f"done_sequence_{number}", 32)),
            lane.entry.eq(spec.any(f"entry_{number}", 4)),
            lane.value.eq(spec.any(f"depth_{number}", 32)),
            lane.set_depth.eq(spec.any(f"set_depth_{number}", 1)),
            *(view.members.eq(members[each]) for view, each in zip(lane.view, lane.rooms, strict=True)),
        ]
        spec.assume(~lane.set_depth | (((lane.value == 1) | (lane.value == 2)) & ~lane.outstanding & ~lane.ready.any()))

    # What the core promises: settings stay while a pass of the group is alive; a pass begins when it is not alive, and
    # ends when it is due; a seat is in one pass of its group at most.
    vacant = [~Cat(alive[each] & (group_of[each] == number) for each in rooms).any() for number in numbers]
    m.d.comb += [
        pipelines.lane.eq(spec.any("set_lane", 3)),
        pipelines.value.eq(spec.any("set_value", 32)),
        pipelines.set_pipeline.eq(spec.any("set_pipeline", 1)),
        pipelines.set_first_stage.eq(spec.any("set_first_stage", 1)),
        pipelines.vacant.eq(Cat(vacant)),
    ]
    spec.assume(~pipelines.set_pipeline | pipelines.legal)
    spec.assume(~pipelines.set_first_stage | (Array(vacant)[owners[pipelines.lane]] & (pipelines.lane < params.lanes)))
    starts = Cat(walker.start for walker in walkers).any()
    spec.assume(~starts | ~(pipelines.set_pipeline | pipelines.set_first_stage))
    stage_count = Signal(8, init=4)
    with m.If(~Cat(alive).any() & ~starts):
        m.d.sync += stage_count.eq(spec.any("stage_count", 8))
    spec.assume((stage_count >= 4) & (stage_count <= params.stages))
    for each, walker in enumerate(walkers):
        with m.If(~alive[each] & ~walker.start):
            m.d.sync += members[each].eq(spec.any(f"new_members_{each}", params.seats))
        m.d.comb += [
            walker.stage_count.eq(stage_count),
            walker.start.eq(spec.any(f"start_{each}", 1)),
            walker.loop.eq(spec.any(f"loop_{each}", 1)),
            walker.drop.eq(drops & (group_of[each] == group)),
        ]
        kept = Signal(2, name=f"kept_{each}")
        m.d.comb += Cat(walker.binds, walker.samples).eq(kept)
        with m.If(~alive[each] & ~walker.start):
            m.d.sync += kept.eq(spec.any(f"new_kept_{each}", 2))
        spec.assume(~walker.start | (~alive[each] & ~walker.drop))
        spec.assume(~walker.loop | (walker.due & ~walker.drop))
        if each >= params.lanes:
            spec.assume(~walker.start | ~pipelines.absorbed[each - params.lanes])
            spec.assume(~walker.start | (Array(pipelines.lengths)[each - params.lanes] == 1))
        with m.If(walker.start):
            m.d.sync += alive[each].eq(1)
        with m.If(walker.loop | walker.drop):
            m.d.sync += alive[each].eq(0)
        for number, lane in enumerate(lanes):
            if each in lane.rooms:
                with m.If(lane.go[lane.rooms.index(each)]):
                    m.d.sync += home[each].eq(number)
        for other in range(each):
            together = alive[each] & alive[other] & (group_of[each] == group_of[other])
            spec.assume(~together | ((members[each] & members[other]) == 0))

    held: list[list[tuple[Value, Value, int]]] = [[] for _ in rooms]
    """By pass, every place that may hold a dispatch of it: whether it does, whether it is its last, which lane."""
    for number, lane in enumerate(lanes):
        for name in ("oldest", "newest"):
            path = f"lane_{number}.{name}"
            valid, whose, final = (spec.inside(f"{path}_{field}") for field in ("valid", "whose", "final"))
            for place, each in enumerate(lane.rooms):
                held[each].append((valid & (whose == place), final, number))

    two = [(a, b) for b in numbers for a in range(b)]
    spec.claim(
        "A pass has dispatches on one lane at a time.",
        Cat(~(here & there) for places in held for here, _, a in places for there, _, b in places if a < b).all(),
        when=Cat(here for places in held for here, _, _ in places).any(),
    )
    spec.claim(
        "A seat's report is awaited by one lane of its group at a time.",
        Cat((owners[a] != owners[b]) | ((lanes[a].awaited & lanes[b].awaited) == 0) for a, b in two).all(),
        when=Cat(lanes[a].awaited.any() & lanes[b].awaited.any() for a, b in two).any(),
    )
    completes = [lane.done.any() for lane in lanes]
    spec.claim(
        "Two lanes never complete in one cycle.",
        ~Cat(completes[a] & completes[b] for a, b in two).any(),
        when=Cat(completes).any(),
    )
    for each, walker in enumerate(walkers):
        outstanding, lane = spec.inside(f"walk_{each}.outstanding"), walker.next.lane
        fresh = spec.inside(f"walk_{each}.fresh")
        here = Cat(now for now, _, _ in held[each])
        with spec.about(f"Walker {each}"):
            joined(spec, walker, outstanding, alive[each] & ~walker.walking)
        spec.lemma(
            f"Walker {each} counts its dispatches, which are on the lane where its latest was.",
            (outstanding == sum(here))
            & Cat(~now | (home[each] == number) for now, _, number in held[each]).all()
            & (~walker.walking | fresh | (lane == home[each])),
        )
        spec.lemma(
            f"Walker {each} walks or waits in a pass alive, and not when it is due.",
            (~(walker.walking | here.any() | walker.due) | alive[each]) & ~(walker.due & (walker.walking | here.any())),
        )
        spec.lemma(
            f"Walker {each} keeps to the lanes of its group.",
            (~walker.walking | ((lane < params.lanes) & (owners[lane] == group_of[each])))
            & (~here.any() | (owners[home[each]] == group_of[each])),
        )
        spec.lemma(
            f"The last dispatch of walker {each} is the last to be complete.",
            Cat(~(now & final) | ~walker.walking for now, final, _ in held[each]).all()
            & (walker.walking | ~here.any() | Cat(now & final for now, final, _ in held[each]).any()),
        )
    for number, lane in enumerate(lanes):
        oldest, newest = (
            [spec.inside(f"lane_{number}.{name}_{field}") for field in ("valid", "whose", "final")]
            for name in ("oldest", "newest")
        )
        spec.lemma(
            f"Lane {number} fills its places from the oldest on, with passes that there are.",
            (oldest[0] | ~newest[0])
            & Cat(~valid | (whose < len(lane.rooms)) for valid, whose, _ in (oldest, newest)).all()
            & ~(newest[0] & oldest[2] & (newest[1] == oldest[1]))
            & ((lane.depth == 2) | ((lane.depth == 1) & ~newest[0])),
        )
    spec.lemma(
        "What is complete by reports was awaited a cycle ago, by one lane.",
        Cat(~spec.inside(f"lane_{a}.reported") | ~spec.inside(f"lane_{b}.reported") for a, b in two).all()
        & Cat(~spec.inside(f"lane_{number}.reported") | spec.past(reports) for number in numbers).all(),
    )
    spec.reach("Two lanes have a dispatch outstanding.", Cat(lane.outstanding for lane in lanes).all())
    spec.reach("A pass of a pipeline goes on to its second lane.", (home[0] == 1) & held[0][-2][0])
    return spec
