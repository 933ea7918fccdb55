"""The three registers, and the rules of the bus (docs/device.md §2) one by one."""

from __future__ import annotations

from cuelight import regmap
from cuelight.regmap import CommitKind, PageReqStatus

from .bench import Bench, bench
from .host import Host
from .lane import Lane

PAGE_ENABLE = regmap.CONTROL + regmap.Control.PAGE_ENABLE
STAGE_COUNT = regmap.CONTROL + regmap.Control.STAGE_COUNT
ALL_KINDS = tuple(CommitKind)


@bench
async def a_request_lives_with_three_registers(it: Bench) -> None:
    page = regmap.PAGE
    await it.rest()
    status = PageReqStatus.unpack(await it.read32(page + regmap.Page.REQ_STATUS))
    assert status == PageReqStatus(active=0, slot=0)
    request = 1 << 16 | status.slot
    await it.write64(page + regmap.Page.SCHED_CMD, request << 32 | 5)
    await it.expect(CommitKind.ADMIT, id=request, detail=5)
    await it.write32(page + regmap.Page.STAGE_DONE, request)
    await it.expect(CommitKind.STAGE_DONE, id=request)
    await it.write64(page + regmap.Page.SCHED_CMD, request << 32 | 6)
    await it.expect(CommitKind.RETARGET, id=request, stage=6)
    assert PageReqStatus.unpack(await it.read32(page + regmap.Page.REQ_STATUS)).active == 1
    await it.write64(page + regmap.Page.SCHED_CMD, request << 32 | 0xFFFF_FFFF)
    await it.expect(CommitKind.CANCEL, id=request, stage=0)
    assert PageReqStatus.unpack(await it.read32(page + regmap.Page.REQ_STATUS)).active == 0


@bench
async def a_read_sees_every_earlier_write(it: Bench) -> None:
    host = Host(it)
    it.bus.pause = (0,)
    for number in range(16):
        request = await host.offer()
        await host.command(request, number % 8)
        assert (await host.status()).active == number + 1
        await it.write32(PAGE_ENABLE, number << 1 | 1)
        assert await it.read32(PAGE_ENABLE) == number << 1 | 1


@bench
async def a_register_of_32_bits_takes_whole_writes_only(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    request = await host.admit()
    head = await lane_with_work(it)
    targets = {
        PAGE_ENABLE: 0xFF,
        STAGE_COUNT: 4,
        regmap.CONTROL + regmap.Control.GROUP_RESET: 1,
        host.at(regmap.Page.STAGE_DONE): request,
        host.at(regmap.Page.PARK): request,
        host.at(regmap.Page.CREDIT): request,
        regmap.FIFO + regmap.Fifo.RETIRE_POP: 0,
        lane.poll(regmap.Poll.POP): head,
        lane.poll(regmap.Poll.REOFFER): head,
        lane.entry(head, regmap.Completion.BATCH_DONE): head,
        regmap.GROUP + regmap.Group.COST: 77,
        regmap.TIER + regmap.Tier.MIN_SEATS: 1,
    }
    await it.rest()
    it.seen()
    for offset, value in targets.items():
        shift = offset % 8
        for strobe in range(15):
            await it.write(offset - shift, value << 32 | value, strobe << shift)
        await it.write16(offset, value)
        await it.write16(offset + 2, value >> 16)
        for byte in range(4):
            await it.write8(offset + byte, value >> 8 * byte)
    await it.rest()
    assert not it.seen(*ALL_KINDS)


async def lane_with_work(it: Bench) -> int:
    """Sequence of a dispatch that waits for lane 0."""
    await Host(it).join(rows=4)
    return (await Lane(it).head()).sequence


@bench
async def a_write_without_strobes_does_nothing(it: Bench) -> None:
    await it.rest()
    it.seen()
    for offset in (*range(0, 0x38, 8), *range(0x8100, 0x8118, 8), *range(0x8200, 0x8240, 8), 0xA020, 0xC020):
        await it.write(offset, 0x0001_0000_0001_0000, 0)
    await it.rest()
    assert not it.seen(*ALL_KINDS)


@bench
async def offsets_that_are_not_in_the_map_ignore_writes_and_read_zero(it: Bench) -> None:
    await Host(it).join(rows=4)
    await it.rest()
    it.seen()
    readable = set(it.golden.readable)
    writable = {0x8100, 0x8108, 0x8110, *range(0x8200, 0x8700, 8), *range(0x8800, 0x8840, 8)}
    places = list(range(0x38, 0x1000, 0x1B8))
    places += [offset for offset in range(0x8000, 0xA000, 8) if offset not in writable]
    places += [offset for offset in range(0xC000, 0x1_0000, 0x88) if offset & 0x3FF != 0x20]
    for offset in places:
        await it.write64(offset, it.random.getrandbits(64))
        if not readable & {offset, offset + 4}:
            assert await it.read64(offset) == 0, f"{offset:#x}"
    await it.rest()
    assert not it.seen(*ALL_KINDS)


@bench
async def lanes_and_groups_beyond_the_device_ignore_writes(it: Bench) -> None:
    await it.rest()
    it.seen()
    for number in range(it.params.lanes, 8):
        lane = Lane(it, number)
        for register in (regmap.Lane.SEQUENCE, regmap.Lane.DEPTH):
            await it.write32(regmap.LANE + number * regmap.LANE_STRIDE + register, 1)
        for register in (regmap.Group.SEATS, regmap.Group.ROWS, regmap.Group.KV_BLOCKS, regmap.Group.COST):
            await it.write32(regmap.GROUP + number * regmap.GROUP_STRIDE + register, 8)
            assert await it.read32(regmap.GROUP + number * regmap.GROUP_STRIDE + register) == 0
        await lane.pop(1)
        await lane.finish(1, 0xFF)
        await lane.done(1)
    await it.rest()
    assert not it.seen(*ALL_KINDS)


@bench
async def registers_that_can_only_be_written_read_zero(it: Bench) -> None:
    host, lane = Host(it), Lane(it)
    await it.write32(host.at(regmap.Page.SCHED_CMD), 0x1234_5678)
    await it.write32(host.at(regmap.Page.SCHED_ATTR), 0x1234_5678)
    for register in ("SCHED_CMD", "STAGE_DONE", "SCHED_ATTR", "PARK", "CREDIT"):
        assert await it.read64(host.at(getattr(regmap.Page, register))) == 0
    for offset in (
        regmap.CONTROL + regmap.Control.GROUP_RESET,
        regmap.FIFO + regmap.Fifo.REJECT_POP,
        regmap.FIFO + regmap.Fifo.RETIRE_POP,
        regmap.FIFO + regmap.Fifo.TRACE_POP,
        lane.poll(regmap.Poll.POP),
        lane.poll(regmap.Poll.REOFFER),
        lane.entry(3),
        lane.entry(3, regmap.Completion.BATCH_DONE),
    ):
        assert await it.read64(offset) == 0


@bench
async def one_write_reaches_both_registers_that_it_covers(it: Bench) -> None:
    """FINISHED[0] and [1] share eight bytes; seats 32 and up do not exist here, so the low half must count."""
    lane = Lane(it)
    request = await Host(it).join(rows=1)
    await lane.serve_pass()
    for _ in range(it.golden.control.stage_count - 3):
        await lane.serve()
    head = await lane.take()
    assert head.last
    await it.write64(lane.entry(head.sequence), 0xFFFF_FFFF_0000_0001)
    await lane.done(head.sequence)
    await it.expect(CommitKind.RETIRE, id=request, stage=regmap.RetireReason.FINISHED)


@bench
async def reads_change_nothing(it: Bench) -> None:
    host = Host(it)
    await host.join(rows=1)
    await host.command(1 << 16, 999)
    await it.rest()
    it.seen()
    first = [await it.read64(offset) for offset in it.lockstep.registers]
    again = [await it.read64(offset) for offset in it.lockstep.registers]
    clocks = {regmap.IDENTITY + regmap.Identity.TIME_NS, regmap.IDENTITY + regmap.Identity.CYCLES}
    for offset, before, after in zip(it.lockstep.registers, first, again, strict=True):
        assert before == after or offset in clocks, f"{offset:#x}"
    assert not it.seen(*ALL_KINDS)


@bench
async def time_and_cycles_count_from_the_reset(it: Bench) -> None:
    await it.run(100)
    for _ in range(10):
        cycles = await it.read64(regmap.IDENTITY + regmap.Identity.CYCLES)
        assert it.bus.accepted_at <= cycles <= it.bus.accepted_at + 4
        time_ns = await it.read64(regmap.IDENTITY + regmap.Identity.TIME_NS)
        assert it.bus.accepted_at <= time_ns // 10 <= it.bus.accepted_at + 4
