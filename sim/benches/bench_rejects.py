"""Each reason to refuse a command, in the order in which they are judged, and the FIFO that shows them."""

from __future__ import annotations

from cuelight import regmap
from cuelight.regmap import CommitKind, FifoRejectHead, RejectReason
from cuelight_sim.commands import CANCEL
from cuelight_sim.situations import situation

from .bench import Bench, bench
from .crowd import to_the_last
from .host import Host, set_group, set_lane, set_tier
from .lane import Lane

PAGE_ENABLE = regmap.CONTROL + regmap.Control.PAGE_ENABLE
STAGE_COUNT = regmap.CONTROL + regmap.Control.STAGE_COUNT
REJECT_HEAD = regmap.FIFO + regmap.Fifo.REJECT_HEAD
REJECT_POP = regmap.FIFO + regmap.Fifo.REJECT_POP


async def refused(it: Bench, host: Host, request: int, stage: int, reason: RejectReason) -> None:
    """Give a command that must be refused, and find it in the reject FIFO."""
    before = await it.read32(regmap.COUNTERS + regmap.Counters.REJECTED)
    await host.command(request, stage)
    await it.expect(CommitKind.REJECT, id=request, stage=reason, detail=host.page | (stage & 0xFF_FFFF) << 8)
    assert await it.read32(regmap.COUNTERS + regmap.Counters.REJECTED) == before + 1
    await it.rest()
    head = FifoRejectHead.unpack(await it.read64(REJECT_HEAD))
    assert head == FifoRejectHead(id=request, reason=reason, page=host.page, index=before & 0xFFFF, valid=1)
    await it.write32(REJECT_POP, before)


@bench
async def page_disabled(it: Bench) -> None:
    for page in range(1, 8):
        await refused(it, Host(it, page), it.random.getrandbits(32), 0, RejectReason.PAGE_DISABLED)
        await refused(it, Host(it, page), 0, CANCEL, RejectReason.PAGE_DISABLED)


@bench
async def illegal_id(it: Bench) -> None:
    slots = it.params.slots
    for request in (0, 1, 0xFFFF, 0xFFFF_FFFF, 1 << 16 | slots, 1 << 16 | slots * 2, 1 << 16 | 0xFFFF, 0xFFFF_FFFE):
        for stage in (0, CANCEL, 1 << 31):
            await refused(it, Host(it), request, stage, RejectReason.ILLEGAL_ID)


@bench
async def stale_epoch_of_a_cancel(it: Bench) -> None:
    host = Host(it)
    await refused(it, host, 1 << 16 | 5, CANCEL, RejectReason.STALE_EPOCH)
    request = await host.admit()
    await refused(it, host, request + (1 << 16), CANCEL, RejectReason.STALE_EPOCH)
    await host.cancel(request)
    await refused(it, host, request, CANCEL, RejectReason.STALE_EPOCH)


@bench
async def stale_epoch_of_an_admission(it: Bench) -> None:
    host = Host(it)
    request = await host.admit()
    await host.cancel(request)
    for _ in range(1, it.params.slots):
        await host.admit()
    assert await host.offer() == request + (1 << 16)
    await refused(it, host, request, 0, RejectReason.STALE_EPOCH)


@bench
async def already_retired(it: Bench) -> None:
    host = Host(it)
    await set_group(it, 0, regmap.Group.SEATS, 1)
    await host.join(rows=1)
    waiting = await host.join(rows=1)
    await host.cancel(waiting)
    await it.expect(CommitKind.RETIRE, id=waiting)
    await refused(it, host, waiting, CANCEL, RejectReason.ALREADY_RETIRED)
    await refused(it, host, waiting, 0, RejectReason.ALREADY_RETIRED)


@bench
async def unknown_stage(it: Bench) -> None:
    host = Host(it)
    request = await host.offer()
    for stage in (it.params.stages, it.params.stages + 1, 0x100, 0x1_0000, 1 << 31, CANCEL - 1):
        await refused(it, host, request, stage, RejectReason.UNKNOWN_STAGE)
    await it.write32(STAGE_COUNT, 5)
    await refused(it, host, request, 5, RejectReason.UNKNOWN_STAGE)
    await host.attributes(rows=4)
    await refused(it, host, request, 1, RejectReason.UNKNOWN_STAGE)
    await it.write32(STAGE_COUNT, 3)
    await host.attributes(rows=4)
    await refused(it, host, request, 0, RejectReason.UNKNOWN_STAGE)


@bench
async def slot_in_use(it: Bench) -> None:
    host = Host(it)
    manual, automatic = await host.admit(), await host.join(rows=3)
    for request in (manual, automatic):
        await refused(it, host, request + (1 << 16), 0, RejectReason.SLOT_IN_USE)
        await refused(it, host, request | 1 << 31, 0, RejectReason.SLOT_IN_USE)


@bench
async def request_running(it: Bench) -> None:
    host = Host(it)
    await set_group(it, 0, regmap.Group.SEATS, 1)
    manual, seated, queued = await host.admit(), await host.join(rows=3), await host.join(rows=3)
    for request in (manual, seated, queued):
        await refused(it, host, request, 0, RejectReason.REQUEST_RUNNING)
        await refused(it, host, request, 7, RejectReason.REQUEST_RUNNING)


@bench
async def device_full(it: Bench) -> None:
    host = Host(it)
    for _ in range(it.params.slots - 1):
        await host.admit()
    await it.write32(PAGE_ENABLE, 0x03)
    await it.rest()
    await refused(it, Host(it, 1), await host.offer(), 0, RejectReason.DEVICE_FULL)
    await host.admit()


@bench
async def slot_not_offered(it: Bench) -> None:
    host = Host(it)
    offered = await host.offer()
    for slot in range(1, 6):
        await refused(it, host, offered + slot, 0, RejectReason.SLOT_NOT_OFFERED)
    await it.write32(PAGE_ENABLE, 0x03)
    await refused(it, host, await Host(it, 1).offer(), 0, RejectReason.SLOT_NOT_OFFERED)


@bench
async def bad_attribute(it: Bench) -> None:
    host = Host(it)
    request = await host.offer()
    faults: tuple[dict[str, int], ...] = (
        {"group": it.params.lanes},
        {"group": 7},
        {"rows": 0},
        {"rows": 1, "start": (1 << 20) - 1},
        {"rows": (1 << 20) - 1, "start": 1},
        {"rows": (1 << 20) - 1, "start": (1 << 20) - 1},
    )
    for fault in faults:
        await host.attributes(**fault)
        await refused(it, host, request, 0, RejectReason.BAD_ATTRIBUTE)
    await host.join(rows=1, start=(1 << 20) - 2)
    await host.join(rows=(1 << 20) - 1)


@bench
async def group_resetting(it: Bench) -> None:
    host = Host(it)
    await set_group(it, 1, regmap.Group.SEATS, 1)
    for _ in range(12):
        await host.join(rows=3, group=1)
    request = await host.offer()
    await host.attributes(rows=3, group=1)
    it.bus.pause = (0,)
    await it.write32(regmap.CONTROL + regmap.Control.GROUP_RESET, 1)
    await host.command(request)
    await it.expect(CommitKind.GROUP_RESET, lane=1)
    await it.expect(CommitKind.REJECT, id=request, stage=RejectReason.GROUP_RESETTING)
    await it.expect(CommitKind.GROUP_READY, lane=1)
    await host.join(rows=3, group=1)


@bench
async def no_kv_credit(it: Bench) -> None:
    host = Host(it)
    request = await host.offer()
    await host.attributes(rows=3, kv_blocks=1)
    await refused(it, host, request, 0, RejectReason.NO_KV_CREDIT)
    await set_group(it, 0, regmap.Group.KV_BLOCKS, 100)
    await set_tier(it, 1, regmap.Tier.KV_FLOOR, 30)
    for tier, blocks in ((0, 101), (1, 71), (0, 0xFFFF)):
        await host.attributes(rows=3, tier=tier, kv_blocks=blocks)
        await refused(it, host, request, 0, RejectReason.NO_KV_CREDIT)
    await host.join(rows=3, tier=1, kv_blocks=70)
    assert await it.read32(regmap.GROUP + regmap.Group.KV_FREE) == 30
    request = await host.offer()
    await host.attributes(rows=3, tier=1, kv_blocks=1)
    await refused(it, host, request, 0, RejectReason.NO_KV_CREDIT)
    await host.join(rows=3, tier=0, kv_blocks=30)
    assert await it.read32(regmap.GROUP + regmap.Group.KV_FREE) == 0


@bench
async def the_first_reason_in_order_is_the_one_that_is_told(it: Bench) -> None:
    """Each command below has the fault before it in docs/device.md §3 mended, and all later ones left."""
    host = Host(it)
    used = await host.admit()
    await host.attributes(rows=0, group=7)
    await refused(it, Host(it, 1), 0, CANCEL, RejectReason.PAGE_DISABLED)
    await refused(it, host, it.params.slots, 1 << 30, RejectReason.ILLEGAL_ID)
    await refused(it, host, used + (1 << 16), 1 << 30, RejectReason.UNKNOWN_STAGE)
    await refused(it, host, used + (1 << 16), 0, RejectReason.SLOT_IN_USE)
    await it.write32(PAGE_ENABLE, 0x03)
    second = Host(it, 1)
    offered = await second.offer()
    await second.attributes(rows=0, group=7)
    await refused(it, second, offered + 9, 1, RejectReason.SLOT_NOT_OFFERED)
    await second.attributes(rows=0, group=7)
    await refused(it, second, offered, 1, RejectReason.UNKNOWN_STAGE)
    await second.attributes(rows=0, group=0, kv_blocks=1)
    await refused(it, second, offered, 0, RejectReason.BAD_ATTRIBUTE)
    await second.attributes(rows=1, group=0, kv_blocks=1)
    await refused(it, second, offered, 0, RejectReason.NO_KV_CREDIT)


@bench
async def a_full_fifo_loses_the_newest(it: Bench) -> None:
    host = Host(it)
    it.bus.pause = (0,)
    for number in range(70):
        await host.command(number + 1 << 16 | it.params.slots)
    await it.rest()
    assert await it.read32(regmap.COUNTERS + regmap.Counters.REJECTED) == 70
    assert await it.read32(regmap.COUNTERS + regmap.Counters.REJECTS_LOST) == 6
    for number in range(64):
        await it.rest()
        head = FifoRejectHead.unpack(await it.read64(REJECT_HEAD))
        assert (head.valid, head.index, head.id >> 16) == (1, number, number + 1)
        await it.write32(REJECT_POP, number)
    await it.rest()
    assert not FifoRejectHead.unpack(await it.read64(REJECT_HEAD)).valid
    await refused_after_loss(it, host)


async def refused_after_loss(it: Bench, host: Host) -> None:
    """Indices count what was held, not what was lost."""
    await host.command(0)
    await it.rest()
    head = FifoRejectHead.unpack(await it.read64(REJECT_HEAD))
    assert head == FifoRejectHead(id=0, reason=RejectReason.ILLEGAL_ID, page=0, index=64, valid=1)


@bench
async def control_registers_validate(it: Bench) -> None:
    seats = it.params.seats
    lane, group, tier, control = regmap.LANE, regmap.GROUP, regmap.TIER, regmap.CONTROL
    settings: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {
        control + regmap.Control.PAGE_ENABLE: ((0, 0xFF, 0x81, 1), (0x100, 0x1FF, 1 << 31)),
        control + regmap.Control.STAGE_COUNT: ((1, 2, it.params.stages), (0, it.params.stages + 1, 1 << 16 | 4)),
        control + regmap.Control.GROUP_RESET: ((), (it.params.lanes, 8, 0x100, 1 << 31)),
        lane + regmap.Lane.SEQUENCE: ((1, 0xFFFE, 0xFFFF_FFFE, 1), (0, 0xFFFF, 0x1_0000, 0x1_FFFF)),
        lane + regmap.Lane.DEPTH: ((1, 2), (0, 3, 1 << 16 | 1)),
        group + regmap.Group.SEATS: ((1, seats), (0, seats + 1, 1 << 16 | 1)),
        group + regmap.Group.ROWS: ((seats + 16, 512, 256), (seats + 15, 0, 513, 1 << 16 | 256)),
        group + regmap.Group.KV_BLOCKS: ((0, 0xFFFF, 5), (0x1_0000, 0xFFFF_FFFF)),
        group + regmap.Group.COST: ((0, 0xFFFF_FFFF), ()),
        group + regmap.Group.COST_DECODE: ((0, 0xFFFF), (0x1_0000, 1 << 31)),
        group + regmap.Group.COST_CHUNK: ((0, 0xFFFF_FFFF, 0), ()),
        tier + regmap.Tier.MIN_SEATS: ((0, seats, 0), (seats + 1, 1 << 16)),
        tier + regmap.Tier.MIN_ROWS: ((0, 512, 0), (513, 1 << 16)),
        tier + regmap.Tier.KV_FLOOR: ((0, 0xFFFF, 0), (0x1_0000, 1 << 31)),
        tier + regmap.Tier.SEAT_FLOOR: ((0, seats, 0), (seats + 1, 1 << 16)),
    }
    refusals = 0
    for offset, (good, bad) in settings.items():
        for value in good:
            await it.write32(offset, value)
            await it.expect(CommitKind.CONFIG, id=offset, detail=value)
            assert await it.read32(offset) == value
        for value in bad:
            before = await it.read32(offset)
            await it.write32(offset, value)
            await it.expect(CommitKind.CONFIG_IGNORED, id=offset, detail=value)
            assert await it.read32(offset) == before
            refusals += 1
    assert await it.read32(regmap.COUNTERS + regmap.Counters.CONFIG_IGNORED) == refusals


@bench
async def settings_of_a_house_wait_until_it_is_empty(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    request = await host.join(rows=1)
    await lane.head()
    changes = (
        (STAGE_COUNT, 4),
        (regmap.GROUP + regmap.Group.SEATS, 3),
        (regmap.GROUP + regmap.Group.ROWS, 300),
        (regmap.GROUP + regmap.Group.KV_BLOCKS, 7),
        (regmap.LANE + regmap.Lane.SEQUENCE, 9),
        (regmap.LANE + regmap.Lane.DEPTH, 1),
    )
    for offset, value in changes:
        await it.write32(offset, value)
        await it.expect(CommitKind.CONFIG_IGNORED, id=offset, detail=value)
    # The other group is empty, but STAGE_COUNT is for both.
    await set_group(it, 1, regmap.Group.SEATS, 3)
    await it.expect(CommitKind.CONFIG)
    await set_lane(it, 1, regmap.Lane.DEPTH, 1)
    await it.expect(CommitKind.CONFIG)
    await host.cancel(request)
    await lane.serve_pass()
    await it.expect(CommitKind.RETIRE, id=request)
    for offset, value in changes:
        await it.write32(offset, value)
        await it.expect(CommitKind.CONFIG, id=offset, detail=value)


@bench
async def a_slot_in_use_in_each_state(it: Bench) -> None:
    host = Host(it)
    await set_group(it, 0, regmap.Group.SEATS, 1)
    running, waiting = await host.admit(), await host.admit()
    await host.done(waiting)
    seated, queued, parked = [await host.join(rows=1) for _ in range(3)]
    await host.park(parked)
    for request in (running, waiting, seated, queued, parked):
        await host.command(request ^ 1 << 31)
        await it.expect(CommitKind.REJECT, id=request ^ 1 << 31, stage=RejectReason.SLOT_IN_USE)
    for request in (running, seated, queued, parked):
        await host.command(request)
        await it.expect(CommitKind.REJECT, id=request, stage=RejectReason.REQUEST_RUNNING)


@bench
async def a_command_never_outruns_its_pages_offer(it: Bench) -> None:
    it.bus.pause = (0,)
    await it.write32(regmap.CONTROL + regmap.Control.PAGE_ENABLE, 0xFF)
    await Host(it, page=7).command(1 << 16 | 7)
    await it.expect(CommitKind.ADMIT, id=1 << 16 | 7, stage=7)


@bench
async def seats_and_rows_are_bounded_by_each_other(it: Bench) -> None:
    seats = it.params.seats
    await set_group(it, 0, regmap.Group.SEATS, 4)
    await set_group(it, 0, regmap.Group.ROWS, 20)
    for _ in range(2):
        await it.expect(CommitKind.CONFIG)
    for register, refused, accepted in (
        (regmap.Group.SEATS, seats, 4),
        (regmap.Group.ROWS, 19, seats + 16),
        (regmap.Group.SEATS, seats + 1, seats),
        (regmap.Group.ROWS, seats + 15, 256),
    ):
        await set_group(it, 0, register, refused)
        await it.expect(CommitKind.CONFIG_IGNORED, detail=refused)
        await set_group(it, 0, register, accepted)
        await it.expect(CommitKind.CONFIG, detail=accepted)


@bench
async def a_lanes_settings_wait_for_a_pass_that_is_formed(it: Bench) -> None:
    """Though no dispatch of the lane is outstanding any more."""
    host, lane = Host(it), Lane(it)
    for _ in range(12):
        await host.join(rows=1)
    last = await to_the_last(lane)
    it.bus.pause = (0,)
    await lane.done(last.sequence)
    await it.expect(CommitKind.PLAN)
    for register, value in ((regmap.Lane.SEQUENCE, 9), (regmap.Lane.DEPTH, 1)):
        await set_lane(it, 0, register, value)
        await it.expect(CommitKind.CONFIG_IGNORED, detail=value)
    assert situation(it.golden.groups[0]) == "forming"
