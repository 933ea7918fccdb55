"""What the policy promises (design §5), on the RTL in lockstep with the golden model."""

from __future__ import annotations

from random import Random

import pytest

from cuelight import regmap
from cuelight.regmap import CommitKind, PageSchedAttr
from cuelight_rtl.params import Params
from cuelight_sim.group import Group
from cuelight_sim.slots import SlotState
from cuelight_sim.watch import Watch

from .host import KV_BLOCKS, Host

SMALL = Params(slots=64, seats=16, lanes=2, stages=8)
VIP, BEST_EFFORT = 0, 3


def watched(params: Params = SMALL, min_seats: tuple[int, int, int, int] = (0, 0, 0, 0)) -> tuple[Host, Watch]:
    """A host on a fresh device with these minimums, and the watch over it."""
    host = Host(params)
    for tier, seats in enumerate(min_seats):
        host.set_tier(tier, regmap.Tier.MIN_SEATS, seats)
    return host, next(observer for observer in host.lockstep.observers if isinstance(observer, Watch))


def fill(host: Host, group: Group, tier: int, waiting: int) -> list[int]:
    """A full house of a tier that decodes, and so many more of it that wait."""
    requests = [
        host.admit(PageSchedAttr(automatic=1, tier=tier, group=group.index, rows=8))
        for _ in range(group.seats + waiting)
    ]
    while group.decoding.bit_count() < group.seats:
        host.finish_pass(group)
    return requests


@pytest.mark.parametrize("vips", [1, 5, 16])
def test_vips_start_at_the_next_loop_point_under_a_backlog_of_best_effort(vips: int) -> None:
    host, watch = watched()
    group = host.golden.groups[0]
    fill(host, group, BEST_EFFORT, waiting=20)
    number = group.pass_number
    admitted = {host.admit(PageSchedAttr(automatic=1, tier=VIP, rows=8)) for _ in range(vips)}
    host.events.clear()
    host.finish_pass(group)
    assert group.pass_number == number + 1
    assert [event.kind for event in host.events].count(CommitKind.PAUSE) == vips
    assert {event.id for event in host.events if event.kind == CommitKind.CHUNK} == admitted
    assert watch.pauses == [(BEST_EFFORT, VIP)] * vips


def test_a_vip_starts_beside_a_pass_of_best_effort_and_the_pass_goes_on_between_its_chunks() -> None:
    host, _ = watched()
    group = host.golden.groups[0]
    host.set_lane(0, regmap.Lane.DEPTH, 1)
    fill(host, group, BEST_EFFORT, waiting=0)
    host.finish_pass(group, finished=1)
    vip = host.admit(PageSchedAttr(automatic=1, tier=VIP, rows=700))
    host.lockstep.rest()
    run = group.alive[0]
    assert group.alive[1].entries[0].request.id == vip
    host.events.clear()
    while 0 in group.alive and group.alive[0] is run:
        host.complete(host.golden.lanes[0])
        host.lockstep.rest()
    sent = "".join(str(event.detail >> 10 & 7) for event in host.events if event.kind == CommitKind.DISPATCH)
    chunks = sent.rstrip("0").split("0")
    # Stages 1 to 5 with the binding, then 2 to 5, and with the output stage at the end.
    assert chunks == ["11111", "1111", "11111"]


def test_paused_requests_go_on_where_they_were_once_vips_are_gone() -> None:
    host, _ = watched()
    group = host.golden.groups[0]
    first = fill(host, group, BEST_EFFORT, waiting=0)
    long = host.admit(PageSchedAttr(automatic=1, tier=VIP, rows=700))
    for _ in range(5):
        host.finish_pass(group)
    vip = next(seat for seat, request in group.seated.items() if request.id == long)
    host.finish_pass(group, finished=1 << vip)
    host.finish_pass(group)
    back = next(event for event in host.events if event.kind == CommitKind.SEAT and event.detail >> 8)
    assert back.id == first[vip]
    assert {request.id for request in group.seated.values() if request.bound} == set(first)
    assert group.alive[0].decode == (1 << group.seats) - 1


def test_a_lower_tier_gets_its_minimum_seats_before_a_backlog_of_vips_and_keeps_them() -> None:
    host, watch = watched(min_seats=(0, 0, 0, 3))
    group = host.golden.groups[0]
    fill(host, group, VIP, waiting=4)
    for _ in range(5):
        host.admit(PageSchedAttr(automatic=1, tier=BEST_EFFORT, rows=8))
    for gone in range(1, 5):
        seat = next(seat for seat, request in group.seated.items() if request.tier == VIP)
        host.finish_pass(group, finished=1 << seat)
        assert watch.taken(0, BEST_EFFORT) == min(gone, 3)
    for _ in range(4):
        host.finish_pass(group)
    assert watch.taken(0, BEST_EFFORT) == 3
    assert not watch.pauses


def test_a_lower_tier_gets_its_minimum_rows_beside_long_prompts_of_vips() -> None:
    host, _ = watched()
    group = host.golden.groups[0]
    host.set_tier(BEST_EFFORT, regmap.Tier.MIN_ROWS, 64)
    for tier in (VIP, VIP, 1, BEST_EFFORT):
        host.admit(PageSchedAttr(automatic=1, tier=tier, rows=3000))
    low = next(request for request in group.queues[BEST_EFFORT] or group.seated.values() if request.tier == BEST_EFFORT)
    host.finish_pass(group)
    host.events.clear()
    passes = 0
    while low.rows_left > 300:
        host.finish_pass(group)
        passes += 1
    rows = [
        event.detail >> 20 & 0x3FF for event in host.events if event.kind == CommitKind.CHUNK and event.id == low.id
    ]
    assert passes > 10
    assert len(rows) == passes
    assert min(rows) >= 64


@pytest.mark.parametrize("tier", range(4))
def test_equal_and_lower_tiers_never_displace_anybody(tier: int) -> None:
    host, watch = watched()
    group = host.golden.groups[0]
    fill(host, group, tier, waiting=6)
    for lower in range(tier, 4):
        host.admit(PageSchedAttr(automatic=1, tier=lower, rows=8))
    seated = dict(watch.seats[0])
    for _ in range(6):
        host.finish_pass(group)
    assert watch.seats[0] == seated
    assert not watch.pauses


def test_a_kv_floor_leaves_credit_to_other_tiers() -> None:
    host, watch = watched()
    host.set_tier(BEST_EFFORT, regmap.Tier.KV_FLOOR, 1000)
    low = host.admit(PageSchedAttr(automatic=1, tier=BEST_EFFORT, kv_blocks=KV_BLOCKS - 999, rows=8))
    assert low not in watch.tier
    host.admit(PageSchedAttr(automatic=1, tier=BEST_EFFORT, kv_blocks=KV_BLOCKS - 1000, rows=8))
    host.admit(PageSchedAttr(automatic=1, tier=VIP, kv_blocks=1000, rows=8))
    host.lockstep.rest()
    assert sorted(watch.tier.values()) == [VIP, BEST_EFFORT]
    assert host.golden.groups[0].kv_free == 0


def test_a_stepped_request_decodes_once_for_each_credit() -> None:
    host, _ = watched()
    group = host.golden.groups[0]
    request = host.admit(PageSchedAttr(automatic=1, stepped=1, rows=8))
    host.lockstep.rest()
    host.finish_pass(group)
    assert group.pass_number == 1
    host.credit(request)
    host.credit(request)
    host.lockstep.rest()
    host.finish_pass(group)
    assert group.pass_number == 3
    host.finish_pass(group)
    host.finish_pass(group)
    assert group.pass_number == 3
    assert group.seated[0].parked


@pytest.mark.parametrize("seed", range(12))
def test_random_crowds_are_served_by_the_rules_and_leave_nothing_behind(seed: int) -> None:
    """Nobody is in two passes or seats; minimums hold (all by `Watch`); credit, slots and seats return."""
    random = Random(seed)
    host, watch = watched(min_seats=random.choice(((0, 0, 0, 0), (0, 2, 1, 3), (4, 4, 4, 4))))
    groups, slots = host.golden.groups, host.golden.slots
    if seed % 2:
        host.set_lane(1, regmap.Lane.FIRST_STAGE, 4)
        host.set_lane(0, regmap.Lane.PIPELINE, 2)
    for group in groups:
        host.set_group(group, regmap.Group.SEATS, random.choice((4, 16)))
        host.set_lane(group.index, regmap.Lane.DEPTH, random.choice((1, 2)))
        host.set_group(group, regmap.Group.COST, random.choice((0xFFFF_FFFF, 300)))
        host.set_group(group, regmap.Group.COST_CHUNK, 1)
    admitted = 0
    while admitted < 150 or any(not group.empty for group in groups):
        if admitted < 150 and host.golden.pages[0].offer is not None and random.random() < 0.6:
            host.admit(
                PageSchedAttr(
                    automatic=1,
                    tier=random.randrange(4),
                    group=random.choice([group.index for group in groups if not group.absorbed]),
                    kv_blocks=random.randrange(50),
                    rows=random.choice((1, 9, 40, 300)),
                    stepped=random.random() < 0.2,
                )
            )
            admitted += 1
        living = [request.id for request in slots.request if request is not None]
        if living and random.random() < 0.15:
            host.park(random.choice(living))
        for request_id in random.sample(living, min(len(living), 3)):
            host.credit(request_id)
        for lane in host.golden.lanes:
            if lane.outstanding is not None:
                finished = sum(1 << seat for seat in range(64) if random.random() < 0.05)
                host.complete(lane, finished & lane.outstanding.run.decode)
        if random.random() < 0.3:
            host.pop_retirements()
    host.pop_retirements()
    host.lockstep.rest()
    assert slots.state.count(SlotState.FREE) == SMALL.slots
    assert not any(watch.waiting.values())
    assert not any(watch.seats.values())
    assert not any(watch.passes.values())
    device = host.lockstep.device
    for group in groups:
        base = regmap.GROUP + group.index * regmap.GROUP_STRIDE
        assert device.read(base + regmap.Group.KV_FREE) == KV_BLOCKS
        assert device.read(base + regmap.Group.OCCUPANCY, 8) == 0
