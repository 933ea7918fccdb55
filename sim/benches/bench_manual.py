"""The life of a manual request, transition by transition."""

from __future__ import annotations

from cuelight import regmap
from cuelight.regmap import CommitKind, RejectReason

from .bench import Bench, bench
from .host import Host


@bench
async def free_to_running_to_waiting_to_running_to_free(it: Bench) -> None:
    host = Host(it)
    request = await host.admit(stage=0)
    for stage in range(1, it.params.stages):
        await host.done(request)
        await it.expect(CommitKind.STAGE_DONE, id=request)
        await host.command(request, stage)
        await it.expect(CommitKind.RETARGET, id=request, stage=stage, detail=0)
    await host.cancel(request)
    await it.expect(CommitKind.CANCEL, id=request, stage=0)
    assert (await host.status()).active == 0


@bench
async def a_running_request_takes_no_new_target(it: Bench) -> None:
    host = Host(it)
    request = await host.admit(stage=2)
    await host.command(request, 3)
    await it.expect(CommitKind.REJECT, id=request, stage=RejectReason.REQUEST_RUNNING, detail=3 << 8)


@bench
async def stage_done_twice_is_as_once(it: Bench) -> None:
    host = Host(it)
    request = await host.admit()
    await host.done(request)
    await it.expect(CommitKind.STAGE_DONE, id=request)
    await host.done(request)
    await it.expect(CommitKind.STAGE_DONE_IGNORED, id=request)
    await host.command(request, 1)
    await it.expect(CommitKind.RETARGET, id=request, stage=1)


@bench
async def a_waiting_request_can_be_cancelled(it: Bench) -> None:
    host = Host(it)
    request = await host.admit()
    await host.done(request)
    await host.cancel(request)
    await it.expect(CommitKind.CANCEL, id=request, stage=0)
    await host.cancel(request)
    await it.expect(CommitKind.REJECT, id=request, stage=RejectReason.STALE_EPOCH)


@bench
async def any_page_may_speak_for_any_request(it: Bench) -> None:
    await it.write32(regmap.CONTROL + regmap.Control.PAGE_ENABLE, 0x81)
    first, second = Host(it, 0), Host(it, 7)
    request = await first.admit()
    await second.done(request)
    await it.expect(CommitKind.STAGE_DONE, id=request)
    await second.command(request, 4)
    await it.expect(CommitKind.RETARGET, id=request, stage=4, detail=7)
    await second.cancel(request)
    await it.expect(CommitKind.CANCEL, id=request, stage=0, detail=7)


@bench
async def stage_done_of_strangers_is_counted_and_ignored(it: Bench) -> None:
    host = Host(it)
    request = await host.admit()
    strangers = (0, 0xFFFF_FFFF, request ^ 1 << 16, request + 1, request | 1 << 15, 1 << 16 | it.params.slots)
    for stranger in strangers:
        await host.done(stranger)
        await it.expect(CommitKind.STAGE_DONE_IGNORED, id=stranger)
    assert await it.read32(regmap.COUNTERS + regmap.Counters.STAGE_DONE_IGNORED) == len(strangers)
    await host.done(request)
    await it.expect(CommitKind.STAGE_DONE, id=request)


@bench
async def stage_done_from_a_disabled_page_is_ignored(it: Bench) -> None:
    request = await Host(it).admit()
    await Host(it, 3).done(request)
    await it.expect(CommitKind.STAGE_DONE_IGNORED, id=request)


@bench
async def park_and_credit_mean_nothing_to_a_manual_request(it: Bench) -> None:
    host = Host(it)
    request = await host.admit()
    await host.park(request)
    await it.expect(CommitKind.PARK, id=request, stage=0)
    await host.credit(request)
    await it.expect(CommitKind.CREDIT, id=request, stage=0)


@bench
async def manual_requests_use_no_queue_seat_lane_or_credit(it: Bench) -> None:
    host = Host(it)
    for _ in range(20):
        await host.admit()
    await it.rest()
    assert not it.seen(CommitKind.SEAT, CommitKind.PLAN, CommitKind.DISPATCH)
    for group in range(it.params.lanes):
        base = regmap.GROUP + group * regmap.GROUP_STRIDE
        assert await it.read64(base + regmap.Group.OCCUPANCY) == 0


@bench
async def attributes_that_are_not_automatic_do_not_matter(it: Bench) -> None:
    host = Host(it)
    for _ in range(8):
        request = await host.offer()
        await it.write64(host.at(regmap.Page.SCHED_ATTR), it.random.getrandbits(64) & ~1)
        await host.command(request, 6)
        await it.expect(CommitKind.ADMIT, id=request, lane=0, stage=0, detail=6)
