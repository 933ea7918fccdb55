"""Whatever comes from outside, while a group is at each part of its work (docs/device.md §5, §6)."""

from __future__ import annotations

from cuelight import regmap
from cuelight.regmap import CommitKind, RejectReason, RetireReason
from cuelight_sim.situations import situation

from .bench import Bench, bench
from .crowd import Crowd, pop_retirements, to_the_last
from .host import Host, set_group, set_lane, set_tier
from .lane import Lane

GROUP_RESET = regmap.CONTROL + regmap.Control.GROUP_RESET


async def act(it: Bench, requests: list[int], offered: int) -> None:
    """What a host may do, on requests of group 0, one write right after the other."""
    host = Host(it)
    await host.park(requests[0])
    await host.credit(requests[1])
    await host.done(requests[2])
    await host.cancel(requests[3])
    await set_group(it, 0, regmap.Group.COST, 0xFFFF_FFFF)
    await set_tier(it, 3, regmap.Tier.MIN_ROWS, 0)
    await host.attributes(rows=1, tier=3)
    await host.command(offered)


async def expect_acts(it: Bench, requests: list[int], offered: int, was: str, *, resetting: bool = False) -> None:
    """The acts took place, and the group did nothing else before the last of them than what it was at."""
    await it.settle()
    assert situation(it.golden.groups[0]) == was
    parked, credited, _, cancelled = requests
    await it.expect(CommitKind.PARK, id=parked, stage=2)
    await it.expect(CommitKind.CREDIT, id=credited, stage=3)
    await it.expect(CommitKind.CANCEL, id=cancelled, stage=2)
    for _ in range(2):
        await it.expect(CommitKind.CONFIG)
    if resetting:
        await it.expect(CommitKind.REJECT, id=offered, stage=RejectReason.GROUP_RESETTING)
    else:
        await it.expect(CommitKind.ADMIT, id=offered)


async def reset(it: Bench) -> None:
    """GROUP_RESET, and all slots free again."""
    await it.write32(GROUP_RESET, 0)
    await it.expect(CommitKind.GROUP_RESET)
    it.bus.pause = (0, 0, 0, 1, 2, 7)
    await it.expect(CommitKind.GROUP_READY)
    await pop_retirements(it)


@bench
async def a_loop_point(it: Bench) -> None:
    crowd = Crowd(it, group=0)
    await set_group(it, 0, regmap.Group.SEATS, 15)
    await crowd.gather(15)
    offered = await Host(it).offer()
    await crowd.hold()
    # Prompts advance from the last one to the first.
    await act(it, crowd.requests[1:5], offered)
    await expect_acts(it, crowd.requests[1:5], offered, "loop point")
    await reset(it)


@bench
async def the_forming_of_a_pass(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    await set_group(it, 0, regmap.Group.SEATS, 15)
    requests = [await host.join(rows=1) for _ in range(15)]
    head = await to_the_last(lane)
    offered = await host.offer()
    it.bus.pause = (0,)
    await lane.done(head.sequence)
    await it.expect(CommitKind.PLAN)
    await act(it, requests[-4:], offered)
    await expect_acts(it, requests[-4:], offered, "forming")
    await reset(it)


@bench
async def a_reset(it: Bench) -> None:
    host = Host(it)
    requests = [await host.join(rows=1) for _ in range(16)]
    offered = await host.offer()
    it.bus.pause = (0,)
    await it.write32(GROUP_RESET, 0)
    await act(it, requests[-4:], offered)
    await it.write32(GROUP_RESET, 0)
    await expect_acts(it, requests[-4:], offered, "resetting", resetting=True)
    await it.expect(CommitKind.GROUP_RESET)
    await it.expect(CommitKind.GROUP_READY)


@bench
async def a_pass_with_a_dispatch_out(it: Bench) -> None:
    host = Host(it)
    requests = [await host.join(rows=1) for _ in range(4)]
    await Lane(it).head()
    await it.rest()
    offered = await host.offer()
    await act(it, requests, offered)
    await expect_acts(it, requests, offered, "dispatch out")
    await reset(it)


@bench
async def no_pass(it: Bench) -> None:
    """Nobody is in a pass, for another group's loop point holds up the forming of the next one."""
    crowd, host, lane = Crowd(it), Host(it), Lane(it)
    await crowd.gather()
    requests = [await host.join(rows=1, stepped=1) for _ in range(4)]
    for _ in range(2):
        await lane.serve_pass()
    await it.rest()
    offered = await host.offer()
    await crowd.hold()
    for request in requests:
        await host.credit(request)
        await it.expect(CommitKind.CREDIT, id=request, stage=2)
    await act(it, requests, offered)
    await expect_acts(it, requests, offered, "no pass")
    await reset(it)


@bench
async def a_pass_between_its_last_dispatch_and_its_loop_point(it: Bench) -> None:
    crowd, host, lane = Crowd(it), Host(it), Lane(it)
    await set_lane(it, 0, regmap.Lane.DEPTH, 1)
    await crowd.gather()
    requests = [await host.join(rows=1) for _ in range(4)]
    await lane.serve_pass()
    last = await to_the_last(lane)
    offered = await host.offer()
    await crowd.hold()
    await lane.done(last.sequence)
    await act(it, requests, offered)
    await expect_acts(it, requests, offered, "between dispatches")
    await it.write32(GROUP_RESET, 0)
    await it.settle()
    assert crowd.holds
    await it.expect(CommitKind.GROUP_RESET)
    it.bus.pause = (0, 0, 0, 1, 2, 7)
    await it.expect(CommitKind.GROUP_READY)


@bench
async def a_lane_goes_on_beside_the_work_of_another_group(it: Bench) -> None:
    """Neither loop points nor forming nor resets of one group delay the dispatches of another one's pass."""
    crowd, host, lane = Crowd(it), Host(it), Lane(it)
    await set_lane(it, 0, regmap.Lane.DEPTH, 1)
    await crowd.gather()
    request = await host.join(rows=1)
    for work in ("loop point", "forming", "resetting"):
        head = await lane.take()
        assert not head.last
        if work == "loop point":
            await crowd.hold()
        elif work == "forming":
            await it.rest()
            await it.write32(GROUP_RESET, 1)
            await it.expect(CommitKind.GROUP_READY, lane=1)
            await pop_retirements(it)
            crowd.requests = [await host.join(rows=1, group=1) for _ in range(16)]
            it.bus.pause = (0,)
            await crowd.lane.done((await to_the_last(crowd.lane)).sequence)
            await it.expect(CommitKind.PLAN, lane=1)
        else:
            await it.rest()
            it.seen()
            await it.write32(GROUP_RESET, 1)
        await lane.done(head.sequence)
        await it.expect(CommitKind.DISPATCH, lane=0, stage=head.stage + 1)
        assert situation(it.golden.groups[1]) == work
    assert it.golden.slots.holds(request)


@bench
async def a_last_report_and_a_cancel_at_once(it: Bench) -> None:
    """One who was cancelled in no pass leaves in the loop point that has begun in the meantime."""
    crowd, host, lane = Crowd(it), Host(it), Lane(it)
    await set_lane(it, 0, regmap.Lane.DEPTH, 1)
    await crowd.gather()
    await host.join(rows=1)
    waits = await host.join(rows=1)
    last = await to_the_last(lane)
    await crowd.hold()
    await lane.done(last.sequence)
    await host.cancel(waits)
    await it.settle()
    assert crowd.holds
    await it.expect(CommitKind.LOOP_POINT, lane=0)
    await it.expect(CommitKind.RETIRE, id=waits, stage=RetireReason.CANCELLED, detail=1)
    it.bus.pause = (0, 0, 0, 1, 2, 7)


@bench
async def the_reset_line_in_each_of_them(it: Bench) -> None:
    for wait_for in (CommitKind.PLAN, CommitKind.LOOP_POINT, CommitKind.GROUP_RESET, CommitKind.PARKED):
        host, lane = Host(it), Lane(it)
        for _ in range(16):
            await host.join(rows=1, stepped=1)
        last = await to_the_last(lane)
        if wait_for == CommitKind.PLAN:
            it.bus.pause = (0,)
            await lane.done(last.sequence)
        elif wait_for == CommitKind.LOOP_POINT:
            await lane.done(last.sequence)
            last = await to_the_last(lane)
            it.bus.pause = (0,)
            await lane.done(last.sequence)
        elif wait_for == CommitKind.GROUP_RESET:
            await it.write32(GROUP_RESET, 0)
        else:
            await lane.done(last.sequence)
            await lane.serve_pass()
        await it.expect(wait_for)
        await it.reset()
    crowd, host, lane = Crowd(it), Host(it), Lane(it)
    await crowd.gather()
    await host.join(rows=1)
    last = await to_the_last(lane)
    await crowd.hold()
    await lane.done(last.sequence)
    await it.expect(CommitKind.COMPLETE, lane=0, id=last.sequence)
    await it.reset()
    await Host(it).join(rows=1)
    await Lane(it).head()
    await it.reset()
