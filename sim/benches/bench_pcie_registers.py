"""Accesses of every shape through the PCI Express endpoint: what reaches the bus, and what the completion says."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import cocotb

from cuelight import regmap
from cuelight.regmap import CommitKind, PageReqStatus, PageSchedCmd

from .bench_bytes import JUDGED
from .host import Host
from .lane import Lane
from .pcie.bench import PcieBench, bench
from .pcie.spy import Transaction

COMMAND = regmap.PAGE + regmap.Page.SCHED_CMD
NOT_EMPTY = range(1, 16)
LONGEST = 16
"""Dwords."""
WINDOWS = (regmap.COMPLETION, regmap.POLL)


def units(offset: int, words: Sequence[int], first_be: int, last_be: int) -> list[tuple[int, int, int]]:
    """Offset, strobe and strobed bytes of the transactions that a write should become."""
    enables = [first_be] + [0xF] * (len(words) - 2) + [last_be] * (len(words) > 1)
    found: dict[int, tuple[int, int]] = {}
    for index, (word, enable) in enumerate(zip(words, enables, strict=True)):
        unit, half = divmod(offset + 4 * index, 8)
        strobe, data = found.get(8 * unit, (0, 0))
        found[8 * unit] = strobe | enable << half, data | (word & mask(enable)) << 8 * half
    return [(unit, strobe, data) for unit, (strobe, data) in found.items()]


def mask(strobe: int) -> int:
    return sum(0xFF << 8 * byte for byte in range(8) if strobe >> byte & 1)


def seen(transactions: Sequence[Transaction]) -> list[tuple[int, int, int]]:
    return [(each.offset, each.strobe, each.data & mask(each.strobe)) for each in transactions]


async def check_write(it: PcieBench, offset: int, count: int, first_be: int, last_be: int) -> None:
    """Any values, written with one packet."""
    words = [it.random.getrandbits(32) for _ in range(count)]
    it.spy.transactions.clear()
    await it.board.write(offset, words, first_be, last_be)
    assert seen(await it.writes()) == units(offset, words, first_be, last_be), f"{offset:#x} {count}"


async def check_read(it: PcieBench, offset: int, count: int, first_be: int, last_be: int) -> None:
    """One packet reads each unit once, in the order of addresses, and gives what they answer."""
    it.spy.transactions.clear()
    words = await it.board.read(offset, count, first_be, last_be)
    asked = it.spy.transactions
    assert [(each.write, each.offset) for each in asked] == [
        (False, unit) for unit in range(offset & ~7, offset + 4 * count, 8)
    ]
    answered = [half for each in asked for half in (each.data & 0xFFFF_FFFF, each.data >> 32)]
    start = offset >> 2 & 1
    assert words == answered[start : start + count]


@bench
async def a_request_lives_with_three_registers(it: PcieBench) -> None:
    page = regmap.PAGE
    await it.rest()
    status = PageReqStatus.unpack(await it.read32(page + regmap.Page.REQ_STATUS))
    assert status == PageReqStatus(active=0, slot=0)
    request = 1 << 16 | status.slot
    await it.write64(COMMAND, request << 32 | 5)
    await it.expect(CommitKind.ADMIT, id=request, detail=5)
    await it.write32(page + regmap.Page.STAGE_DONE, request)
    await it.expect(CommitKind.STAGE_DONE, id=request)
    await it.write64(COMMAND, request << 32 | 6)
    await it.expect(CommitKind.RETARGET, id=request, stage=6)
    assert PageReqStatus.unpack(await it.read32(page + regmap.Page.REQ_STATUS)).active == 1
    await it.write64(COMMAND, request << 32 | 0xFFFF_FFFF)
    await it.expect(CommitKind.CANCEL, id=request, stage=0)
    assert PageReqStatus.unpack(await it.read32(page + regmap.Page.REQ_STATUS)).active == 0


@bench
async def a_write_of_one_dword_is_one_transaction_under_every_byte_enable(it: PcieBench) -> None:
    for half, enable in product((0, 4), range(16)):
        await check_write(it, COMMAND + half, 1, enable, 0)


@bench
async def an_aligned_write_of_two_dwords_is_one_transaction_under_every_byte_enable(it: PcieBench) -> None:
    for first_be, last_be in product(NOT_EMPTY, NOT_EMPTY):
        await check_write(it, COMMAND, 2, first_be, last_be)


@bench
async def a_write_across_eight_bytes_is_two_transactions_in_the_order_of_addresses(it: PcieBench) -> None:
    for first_be, last_be in product((1, 6, 8, 15), (1, 9, 12, 15)):
        await check_write(it, COMMAND + 4, 2, first_be, last_be)


@bench
async def a_read_tells_the_bytes_that_it_was_asked_for(it: PcieBench) -> None:
    for half, enable in product((0, 4), range(16)):
        await check_read(it, regmap.IDENTITY + half, 1, enable, 0)
    for first_be, last_be in product(NOT_EMPTY, NOT_EMPTY):
        await check_read(it, regmap.IDENTITY, 2, first_be, last_be)
    for first_be, last_be in product((1, 6, 8, 15), (1, 9, 12, 15)):
        await check_read(it, regmap.IDENTITY + 4, 2, first_be, last_be)


@bench
async def long_accesses_reach_every_unit_of_a_lanes_windows(it: PcieBench) -> None:
    await Host(it).join(rows=40)
    await Lane(it).head()
    for count in range(1, LONGEST + 1):
        for window in WINDOWS:
            offset = window + 4 * it.random.randrange(0x100)
            first_be, last_be = it.random.choice((1, 3, 8, 15)), it.random.choice((1, 7, 8, 15)) * (count > 1)
            await check_write(it, offset, count, first_be, last_be)
            await check_read(it, offset & ~0x40, count, first_be, last_be)


@bench
async def a_whole_completion_entry_comes_in_one_packet(it: PcieBench) -> None:
    """FINISHED takes effect before BATCH_DONE, which stands behind it."""
    host, lane = Host(it), Lane(it)
    request = await host.join(rows=1)
    while not (head := await lane.take()).last:
        await lane.done(head.sequence)
    await it.board.write(lane.entry(head.sequence), [1, 0, 0, 0, 0, 0, 0, 0, head.sequence])
    await it.expect(CommitKind.RETIRE, id=request, stage=regmap.RetireReason.FINISHED)


@bench
async def a_record_is_read_in_packets_of_64_bytes(it: PcieBench) -> None:
    lane = Lane(it)
    requests = [await Host(it).join(rows=3) for _ in range(4)]
    head = await lane.head()
    base = lane.poll(regmap.Poll.RECORD) + regmap.Record.ENTRY
    words = await it.board.read(base, LONGEST)
    assert words[::4][: len(requests)] == requests[:1] + words[4::4][: len(requests) - 1]
    assert all(word >> 16 == head.sequence & 0xFFFF for word in words[3::4] if word)


@bench
async def a_command_in_every_cut_counts_once(it: PcieBench) -> None:
    host = Host(it)
    request = await host.admit()
    value = PageSchedCmd(id=request, stage=5).pack()
    for strobe in it.random.sample(range(1, 255), 60):
        await it.write(COMMAND, value, strobe)
        await it.settle()
        assert not it.seen(*JUDGED), f"the bytes {strobe:#04x} are no command"
        await it.write(COMMAND, value, 0xFF & ~strobe)
        await it.expect(CommitKind.REJECT, id=request)


@bench
async def completions_echo_traffic_class_and_attributes(it: PcieBench) -> None:
    for tc, attr in product(range(8), range(8)):
        await it.board.read(regmap.IDENTITY, 1 + (tc ^ attr) % 2, tc=tc, attr=attr)


@bench
async def requests_under_way_at_once_are_answered_in_their_order(it: PcieBench) -> None:
    """A read behind a write sees it, although neither was waited for."""
    register = regmap.GROUP + regmap.Group.COST

    async def read() -> int:
        value = (await it.board.read(register, 1))[0]
        finished.append(value)
        return value

    finished: list[int] = []
    reads = []
    for number in range(60):
        await it.board.write(register, [number])
        reads.append(cocotb.start_soon(read()))
        await it.run(it.random.choice((0, 0, 1, 40)))
    for task in reads:
        await task
    assert finished == sorted(finished)
    assert finished[-1] == 59


@bench
async def writes_go_on_while_a_completion_waits(it: PcieBench) -> None:
    """Else a host that takes no completion before its writes are gone would hang."""
    register = regmap.GROUP + regmap.Group.COST
    it.board.device.cc_sink.clear_pause_generator()
    for round_ in range(8):
        it.board.device.cc_sink.pause = True
        reads = [cocotb.start_soon(it.board.read(regmap.IDENTITY, 2)) for _ in range(4)]
        await it.run(100)
        it.spy.transactions.clear()
        for number in range(20):
            await it.board.write(register, [20 * round_ + number])
        await it.run(400)
        values = [each.data & 0xFFFF_FFFF for each in it.spy.transactions if each.write]
        assert values == [20 * round_ + number for number in range(20)]
        assert not any(task.done() for task in reads)
        it.board.device.cc_sink.pause = False
        for task in reads:
            await task


@bench
async def a_lane_serves_passes_over_the_link(it: PcieBench) -> None:
    host, lane = Host(it), Lane(it)
    requests = [await host.join(rows=rows) for rows in (1, 20, 200)]
    for _ in range(3):
        await lane.serve_pass()
    await lane.serve_pass(finished=0b111)
    for request in requests:
        await it.expect(CommitKind.RETIRE, id=request)
