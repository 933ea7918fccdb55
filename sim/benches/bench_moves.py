"""What the device does to a request by itself, in every state in which it does (docs/device.md §4, §6)."""

from __future__ import annotations

from cuelight import regmap
from cuelight.regmap import CommitKind, RetireReason
from cuelight_sim.situations import situation

from .bench import Bench, bench
from .crowd import Crowd, pop_retirements, to_the_last
from .details import chunk, plan
from .host import Host, set_group, set_lane, set_tier
from .lane import Lane

SEATS, ROWS = regmap.Group.SEATS, regmap.Group.ROWS
GROUP_RESET = regmap.CONTROL + regmap.Control.GROUP_RESET
VIP, LOW = 0, 3


async def three_stages_of_life(it: Bench) -> tuple[Lane, list[int]]:
    """A house of three that decodes, is in the middle of its prompt, and has yet to begin it, for want of rows."""
    host, lane = Host(it), Lane(it)
    await set_group(it, 0, SEATS, 3)
    await set_group(it, 0, ROWS, 19)
    await set_lane(it, 0, regmap.Lane.DEPTH, 1)
    decodes = await host.join(rows=1, tier=LOW)
    middle, new = await host.join(rows=40, tier=LOW), await host.join(rows=9, tier=LOW)
    await lane.serve_pass()
    await it.expect(CommitKind.CHUNK, id=middle, stage=1, detail=chunk(0, 16, first=True))
    await it.expect(CommitKind.FORM, detail=17)
    return lane, [decodes, middle, new]


async def displace(it: Bench, crowd: Crowd, lane: Lane, requests: list[int]) -> None:
    """Three of a higher tier come at the end of a pass, and all of the house are paused; then those finish."""
    host = Host(it)
    last = await to_the_last(lane)
    await crowd.hold()
    await lane.done(last.sequence)
    for _ in requests:
        await host.join(rows=1, tier=VIP)
    assert crowd.holds
    it.bus.pause = (0, 1)
    for seat, request in enumerate(requests):
        await it.expect(CommitKind.PAUSE, id=request, stage=seat, detail=LOW)
        await it.expect(CommitKind.SEAT, stage=seat, detail=VIP)
    await lane.serve_pass(finished=0b111)


async def resume(it: Bench, requests: list[int]) -> None:
    """They are seated again, and go on where they were."""
    decodes, middle, new = requests
    for request, detail in ((new, LOW), (middle, LOW), (decodes, LOW | 1 << 8)):
        await it.expect(CommitKind.SEAT, id=request, detail=detail)
    await it.expect(CommitKind.CHUNK, id=decodes, detail=chunk(1, 0))


@bench
async def a_pause_at_each_stage_of_life(it: Bench) -> None:
    crowd = Crowd(it)
    await crowd.gather()
    lane, requests = await three_stages_of_life(it)
    await displace(it, crowd, lane, requests)
    await resume(it, requests)
    await it.expect(CommitKind.CHUNK, id=requests[2], detail=chunk(0, 9, first=True, last=True))


@bench
async def a_pause_keeps_a_credit(it: Bench) -> None:
    host, crowd = Host(it), Crowd(it)
    await crowd.gather()
    lane, requests = await three_stages_of_life(it)
    for request in requests:
        await host.credit(request)
        await it.expect(CommitKind.CREDIT, id=request, stage=3)
    await displace(it, crowd, lane, requests)
    await resume(it, requests)
    for request in requests:
        await host.credit(request)
        await it.expect(CommitKind.CREDIT, id=request, stage=4)


@bench
async def a_pause_of_those_who_are_parked(it: Bench) -> None:
    host = Host(it)
    lane, requests = await three_stages_of_life(it)
    for request in requests:
        await host.park(request)
        await it.expect(CommitKind.PARK, id=request, stage=2)
    # The one in no pass parks at once, the others at the loop point.
    await it.expect(CommitKind.PARKED, stage=2, detail=0)
    await lane.serve_pass()
    for seat in (0, 1):
        await it.expect(CommitKind.PARKED, stage=seat, detail=0)
    for seat, request in enumerate(requests):
        await host.join(rows=1, tier=VIP)
        await it.expect(CommitKind.PAUSE, id=request, stage=seat, detail=LOW | 1 << 8)
        await it.expect(CommitKind.SEAT, stage=seat, detail=VIP)
    for request in requests:
        await host.credit(request)
        await it.expect(CommitKind.CREDIT, id=request, stage=1)
    await lane.serve_pass()
    await lane.serve_pass(finished=0b111)
    await resume(it, requests)


@bench
async def the_rest_of_a_prompt_after_a_pause(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    await set_group(it, 0, SEATS, 1)
    low = await host.join(rows=260, tier=LOW)
    await it.expect(CommitKind.CHUNK, id=low, detail=chunk(0, 256, first=True))
    await host.join(rows=1, tier=VIP)
    await lane.serve_pass()
    await it.expect(CommitKind.PAUSE, id=low)
    await lane.serve_pass(finished=1)
    await it.expect(CommitKind.CHUNK, id=low, detail=chunk(256, 4, last=True))


@bench
async def parking_that_a_credit_prevents(it: Bench) -> None:
    """A prompt, one that decodes, and stepped ones: each parks by itself, or uses its credit up."""
    host, lane = Host(it), Lane(it)
    for credits in (0, 1):
        asked, stepped, both = [await host.join(rows=1, stepped=step) for step in (0, 1, 1)]
        prompt = await host.join(rows=600, tier=1)
        await lane.serve_pass()
        await it.rest()
        for request in (prompt, asked, both):
            await host.park(request)
            await it.expect(CommitKind.PARK, id=request, stage=2)
        for request in (prompt, asked, stepped, both) if credits else ():
            await host.credit(request)
            await it.expect(CommitKind.CREDIT, id=request, stage=3)
        await lane.serve_pass()
        for seat in range(4):
            await it.expect(CommitKind.PARKED, stage=seat, detail=credits)
        await it.write32(GROUP_RESET, 0)
        await it.expect(CommitKind.GROUP_READY)
        await pop_retirements(it)


async def bring(host: Host, requests: list[int]) -> None:
    """One each to: plain, with a credit, parking, parking with a credit, cancelled."""
    _, credited, parking, both, cancelled = requests
    await host.credit(credited)
    await host.park(parking)
    await host.park(both)
    await host.credit(both)
    await host.cancel(cancelled)


@bench
async def all_are_lost_in_whatever_state(it: Bench) -> None:
    """A reset finds members of a pass, those who were parked, and a queue."""
    host, lane = Host(it), Lane(it)
    await set_group(it, 0, SEATS, 12)
    for passes in (1, 2):
        requests = [await host.join(rows=1) for _ in range(6)]
        await host.park(requests[0])
        for _ in range(passes):
            await lane.serve_pass()
            await it.rest()
        if passes == 1:
            # The first one decodes, and is parked; now one is parked before its prompt begins.
            late = await host.join(rows=1)
            await host.park(late)
            await it.expect(CommitKind.PARKED, stage=6)
        await bring(host, requests[1:])
        while len(it.golden.groups[0].seated) < 12:
            await host.join(rows=1)
            await it.rest()
        queued = [await host.join(rows=1) for _ in range(2)]
        await host.credit(queued[0])
        await it.write32(GROUP_RESET, 0)
        for seat in range(12):
            await it.expect(CommitKind.RETIRE, stage=RetireReason.LANE_LOST, detail=seat)
        for request in queued:
            await it.expect(CommitKind.RETIRE, id=request, stage=RetireReason.LANE_LOST, detail=1 << 8)
        await it.expect(CommitKind.GROUP_READY)
        await pop_retirements(it)


@bench
async def prompts_that_go_on_in_whatever_state(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    for way in ((), ("credit",), ("park",), ("park", "credit")):
        request = await host.join(rows=600)
        await lane.head()
        for name in way:
            await {"park": host.park, "credit": host.credit}[name](request)
        await lane.serve_pass()
        await it.expect(CommitKind.ADVANCE, id=request, detail=256)
        await it.write32(GROUP_RESET, 0)
        await it.expect(CommitKind.GROUP_READY)
        await pop_retirements(it)


@bench
async def one_is_cancelled_before_its_chunk_goes_on(it: Bench) -> None:
    """The highest tier's chunk is the first entry, and so the last to advance."""
    host, lane = Host(it), Lane(it)
    await set_tier(it, LOW, regmap.Tier.MIN_ROWS, 100)
    await host.join(rows=1)
    others = [await host.join(rows=1, tier=LOW) for _ in range(12)]
    goes_on, ends = await host.join(rows=600), await host.join(rows=9, tier=1)
    last = await to_the_last(lane)
    await lane.done(last.sequence)
    await it.expect(CommitKind.CHUNK, id=goes_on, detail=chunk(0, 128, first=True))
    last = await to_the_last(lane)
    it.bus.pause = (0,)
    await lane.done(last.sequence)
    await it.expect(CommitKind.ADVANCE, id=others[-1])
    for request in (goes_on, ends):
        await host.cancel(request)
    await it.rest()
    steps = it.seen(CommitKind.ADVANCE, CommitKind.RETIRE)
    assert [(event.kind, event.id) for event in steps[-4:]] == [
        (CommitKind.ADVANCE, ends),
        (CommitKind.ADVANCE, goes_on),
        (CommitKind.RETIRE, goes_on),
        (CommitKind.RETIRE, ends),
    ]


@bench
async def a_host_interferes_between_plan_and_entry(it: Bench) -> None:
    """Who is parking or cancelled when its turn comes goes along; it parks or leaves after the pass."""
    host, lane = Host(it), Lane(it)
    requests = [await host.join(rows=1) for _ in range(16)]
    last = await to_the_last(lane)
    it.bus.pause = (0,)
    await lane.done(last.sequence)
    await it.expect(CommitKind.PLAN, detail=plan(1))
    parking, both, cancelled = requests[7], requests[11], requests[15]
    await host.park(parking)
    await host.park(both)
    await host.credit(both)
    await host.cancel(cancelled)
    await it.rest()
    assert [event.id for event in it.seen(CommitKind.CHUNK)] == requests[1:]
    it.bus.pause = (0, 0, 0, 1, 2, 7)
    await lane.serve_pass()
    await it.expect(CommitKind.RETIRE, id=cancelled, stage=RetireReason.CANCELLED)


async def sixteen_to_bind(it: Bench) -> tuple[Lane, list[int]]:
    """A house that decodes and was paused for another one, which is about to leave."""
    host, lane = Host(it), Lane(it)
    low = [await host.join(rows=1, tier=LOW) for _ in range(16)]
    for _ in range(2):
        await lane.serve_pass()
    for _ in range(16):
        await host.join(rows=1, tier=VIP)
    for _ in range(2):
        await lane.serve_pass()
    last = await to_the_last(lane)
    await lane.finish(last.sequence, 0xFFFF)
    it.bus.pause = (0,)
    await lane.done(last.sequence)
    await it.expect(CommitKind.PLAN, detail=plan(16))
    # Who was paused last stood in front.
    return lane, low[::-1]


@bench
async def a_host_interferes_before_a_decoding_seat_is_bound(it: Bench) -> None:
    """They go along all the same."""
    host = Host(it)
    lane, requests = await sixteen_to_bind(it)
    parking, both, cancelled = requests[7], requests[11], requests[15]
    await host.park(parking)
    await host.park(both)
    await host.credit(both)
    await host.cancel(cancelled)
    await it.expect(CommitKind.CANCEL, id=cancelled, stage=2)
    await it.settle()
    assert situation(it.golden.groups[0]) == "forming"
    await it.expect(CommitKind.FORM, stage=16, detail=16)
    it.bus.pause = (0, 0, 0, 1, 2, 7)
    await lane.serve_pass()
    await it.expect(CommitKind.RETIRE, id=cancelled, stage=RetireReason.CANCELLED, detail=15)
    await it.expect(CommitKind.PARKED, stage=7, detail=0)
    await it.expect(CommitKind.PARKED, stage=11, detail=1)
