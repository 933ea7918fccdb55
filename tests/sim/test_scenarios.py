"""Whole lives of many requests on the RTL, the golden model beside it."""

from __future__ import annotations

from random import Random

import pytest

from cuelight import regmap
from cuelight.regmap import CommitKind, PageReqStatus, PageSchedAttr
from cuelight_rtl.params import Params
from cuelight_sim.slots import SlotState
from cuelight_sim.steps import Event

from .host import CANCEL, KV_BLOCKS, Host


def test_a_thousand_requests_with_cancels_leave_nothing_behind() -> None:
    host = Host(Params())
    random = Random(7)
    slots, groups = host.golden.slots, host.golden.groups
    admitted = 0
    living: list[int] = []
    while admitted < 1000 or any(not group.empty for group in groups):
        if admitted < 1000 and host.golden.pages[0].offer is not None and random.random() < 0.6:
            group = random.choice(groups)
            attributes = PageSchedAttr(
                automatic=1,
                tier=random.randrange(4),
                group=group.index,
                kv_blocks=min(random.randrange(20), group.kv_free),
                rows=random.choice((1, 9, 40, 300)),
            )
            living.append(host.admit(attributes))
            admitted += 1
        if random.random() < 0.1:
            request_id = random.choice(living)
            if slots.holds(request_id) and slots.state[request_id & 0xFFFF] is not SlotState.RETIRED:
                host.command(request_id, CANCEL)
        for lane in host.golden.lanes:
            if lane.outstanding is not None:
                finished = sum(1 << seat for seat in range(64) if random.random() < 0.1)
                host.complete(lane, finished & lane.outstanding.run.decode)
        if random.random() < 0.2:
            host.pop_retirements()
        if random.random() < 0.01:
            host.lockstep.rest()
    host.pop_retirements()
    host.lockstep.rest()
    device = host.lockstep.device
    assert PageReqStatus.unpack(device.read(regmap.PAGE + regmap.Page.REQ_STATUS)).active == 0
    assert sum(state is SlotState.FREE for state in slots.state) == 1024
    counters = regmap.COUNTERS
    assert device.read(counters + regmap.Counters.ADMITTED) == 1000
    assert device.read(counters + regmap.Counters.RETIRED) == 1000
    assert {event.stage for event in host.events if event.kind == CommitKind.RETIRE} == {1, 2}
    for group in groups:
        base = regmap.GROUP + group.index * regmap.GROUP_STRIDE
        assert device.read(base + regmap.Group.KV_FREE) == KV_BLOCKS
        assert device.read(base + regmap.Group.OCCUPANCY, 8) == 0


@pytest.mark.parametrize("rows", [1, 8])
def test_16_staggered_arrivals_share_one_pass_after_two(rows: int) -> None:
    host = Host(Params())
    group = host.golden.groups[0]
    host.admit(PageSchedAttr(automatic=1, rows=rows))
    host.lockstep.run(100)
    for _ in range(15):
        host.admit(PageSchedAttr(automatic=1, rows=rows))
        host.lockstep.run(37)
    assert group.pass_number == 1
    host.finish_pass(group)
    host.finish_pass(group)
    host.lockstep.rest()
    assert group.pass_number == 3
    assert group.alive[0].decode == (1 << 16) - 1


def set_budget(host: Host, cost: int) -> None:
    """Lets the chunks of a pass of group 0 have so many rows."""
    host.set_group(host.golden.groups[0], regmap.Group.COST, cost)
    host.set_group(host.golden.groups[0], regmap.Group.COST_CHUNK, 1)


def loop_cycles(parked: int) -> list[int]:
    """Cycles from LOOP_POINT to FORM of passes that four prompts share, so many others being parked meanwhile."""
    host = Host(Params())
    group = host.golden.groups[0]
    set_budget(host, 64 + 32 + 16 + 8)
    staying = [host.admit(PageSchedAttr(automatic=1, rows=1000)) for _ in range(parked)]
    for _ in range(2):
        host.finish_pass(group)
    for request_id in staying:
        host.park(request_id)
    host.finish_pass(group)
    assert [request.parked for request in group.seated.values()] == [True] * parked
    going = {host.admit(PageSchedAttr(automatic=1, rows=400)) for _ in range(4)}
    host.finish_pass(group)
    began, cycles = 0, []

    def note(event: Event) -> None:
        nonlocal began
        if event.kind == CommitKind.LOOP_POINT:
            began = host.golden.cycle
        elif event.kind == CommitKind.FORM:
            cycles.append(host.golden.cycle - began)

    host.lockstep.observe = note
    while not all(request.decoding for request in group.seated.values() if request.id in going):
        host.finish_pass(group)
    for request_id in reversed(staying):
        host.credit(request_id)
    host.finish_pass(group)
    assert [entry.request.id for entry in group.alive[0].entries] == staying[:4]
    assert [request.id for request in group.prefilling[0]] == staying[4:]
    return cycles[:-1]


def test_parked_prompts_cost_a_pass_nothing_and_come_back_to_the_front() -> None:
    alone = loop_cycles(0)
    assert len(alone) > 4
    assert loop_cycles(40) == alone


def pipeline() -> Host:
    """Both lanes in one pipeline, and stages for each."""
    host = Host(Params(slots=64, seats=16, lanes=2, stages=8))
    host.set_lane(1, regmap.Lane.FIRST_STAGE, 4)
    host.set_lane(0, regmap.Lane.PIPELINE, 2)
    return host


def test_passes_of_a_pipeline_bring_chunks_of_different_prompts_at_the_same_time() -> None:
    host = pipeline()
    group = host.golden.groups[0]
    set_budget(host, 16 + 8)
    requests = [host.admit(PageSchedAttr(automatic=1, rows=100)) for _ in range(6)]
    begun: list[int] = []
    together = 0
    while not all(request.decoding for request in group.seated.values()):
        host.lockstep.rest()
        passes = [[entry.request.id for entry in run.entries if entry.rows] for run in group.alive.values()]
        together += len(passes) == 2 and all(passes)
        waiting = [request.id for request in group.prefilling[0]]
        assert waiting == sorted(waiting)
        begun += [request for members in passes for request in members if request not in begun]
        host.complete(next(lane for lane in group.lanes if lane.dispatches))
    assert begun == requests
    assert together > 50


def test_a_prompt_in_one_pass_of_a_pipeline_claims_no_rows_of_another() -> None:
    host = pipeline()
    group = host.golden.groups[0]
    host.set_tier(3, regmap.Tier.MIN_ROWS, 200)
    for tier in (3, 0):
        host.admit(PageSchedAttr(automatic=1, tier=tier, rows=3000))
        host.lockstep.rest()
    assert [[entry.rows for entry in run.entries] for run in group.alive.values()] == [[256], [256]]


@pytest.mark.parametrize("what", ["cost", "kept rows", "credit"])
def test_what_changes_while_a_pass_is_formed_counts_until_a_tiers_turn_is_over(what: str) -> None:
    """Wherever the write falls, the golden model allows what the device does, and no more."""
    entries = set()
    for cycles in range(60):
        host = Host(Params(slots=64, seats=16, lanes=2, stages=8))
        group, lane = host.golden.groups[0], host.golden.lanes[0]
        if what == "kept rows":
            host.set_tier(3, regmap.Tier.MIN_ROWS, 512)
        else:
            host.set_group(group, regmap.Group.COST, 100)
            host.set_group(group, regmap.Group.COST_CHUNK, regmap.GroupCostChunk(c1=50).pack())
        host.admit(PageSchedAttr(automatic=1, rows=1))
        parked = host.admit(PageSchedAttr(automatic=1, rows=20))
        if what == "credit":
            host.park(parked)
        host.admit(PageSchedAttr(automatic=1, rows=20, start=4096))
        host.admit(PageSchedAttr(automatic=1, rows=20, tier=3, start=4096))
        while not lane.dispatches[0].leg.last:
            host.complete(lane)
        sequence = lane.dispatches[0].sequence
        entry = regmap.COMPLETION + sequence % 16 * regmap.COMPLETION_ENTRY_STRIDE
        host.write32(entry + regmap.Completion.BATCH_DONE, sequence)
        host.lockstep.run(cycles)
        if what == "cost":
            host.set_group(group, regmap.Group.COST_CHUNK, 0)
        elif what == "kept rows":
            host.set_tier(3, regmap.Tier.MIN_ROWS, 0)
        else:
            host.credit(parked)
        host.lockstep.rest()
        entries.add(len(group.alive[0].entries))
    assert len(entries) > 1
