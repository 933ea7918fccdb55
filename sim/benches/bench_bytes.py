"""Byte enables: every cut of a command and of attributes, in many orders, and what happens to halves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from cuelight import regmap
from cuelight.regmap import CommitKind, PageSchedAttr, PageSchedCmd, RejectReason
from cuelight_sim.commands import CANCEL

from .bench import Bench, bench
from .host import Host

HALVES = (0x0F, 0xF0)
PAIRS = (0x03, 0x0C, 0x30, 0xC0)
BYTES = tuple(1 << byte for byte in range(8))
JUDGED = (CommitKind.ADMIT, CommitKind.RETARGET, CommitKind.CANCEL, CommitKind.REJECT)


async def write_parts(it: Bench, offset: int, value: int, strobes: Sequence[int]) -> None:
    """Write the bytes of a value part by part, with junk on the lines that are not strobed."""
    for strobe in strobes:
        mask = sum(0xFF << 8 * byte for byte in range(8) if strobe >> byte & 1)
        await it.write(offset, value & mask | it.random.getrandbits(64) & ~mask, strobe)


async def admit_in_parts(it: Bench, host: Host, strobes: Sequence[int]) -> None:
    """A manual admission and the cancel of it, both cut in the same way."""
    request = await host.offer()
    stage = it.random.randrange(8)
    command = host.at(regmap.Page.SCHED_CMD)
    it.seen()
    await write_parts(it, command, PageSchedCmd(id=request, stage=stage).pack(), strobes)
    await it.expect(CommitKind.ADMIT, id=request, detail=stage, stage=host.page)
    await write_parts(it, command, PageSchedCmd(id=request, stage=CANCEL).pack(), strobes)
    await it.expect(CommitKind.CANCEL, id=request, stage=0)
    assert not it.seen(*JUDGED), "a command counted twice"


@bench
async def a_command_in_two_halves_in_either_order(it: Bench) -> None:
    for order in permutations(HALVES):
        await admit_in_parts(it, Host(it), order)


@bench
async def a_command_in_four_pairs_in_all_24_orders(it: Bench) -> None:
    for order in permutations(PAIRS):
        await admit_in_parts(it, Host(it), order)


@bench
async def a_command_in_bytes_in_random_orders(it: Bench) -> None:
    for _ in range(24):
        await admit_in_parts(it, Host(it), it.random.sample(BYTES, 8))


@bench
async def a_command_under_every_byte_enable_and_its_complement(it: Bench) -> None:
    host = Host(it)
    command = host.at(regmap.Page.SCHED_CMD)
    request = await host.admit()
    for strobe in range(1, 255):
        value = PageSchedCmd(id=request, stage=5).pack()
        await write_parts(it, command, value, (strobe,))
        await it.settle()
        assert not it.seen(*JUDGED), f"the bytes {strobe:#04x} are no command"
        await write_parts(it, command, value, (0xFF & ~strobe,))
        await it.expect(CommitKind.REJECT, id=request, stage=RejectReason.REQUEST_RUNNING)


@bench
async def the_latest_of_each_byte_counts(it: Bench) -> None:
    host = Host(it)
    request = await host.offer()
    value = PageSchedCmd(id=request, stage=3).pack()
    command = host.at(regmap.Page.SCHED_CMD)
    await it.write(command, it.random.getrandbits(64), 0x7F)
    await write_parts(it, command, value, (0x1B, 0x64))
    assert not it.seen(*JUDGED)
    await write_parts(it, command, value, (0x80,))
    await it.expect(CommitKind.ADMIT, id=request, detail=3)


@bench
async def an_attribute_write_discards_the_half_command(it: Bench) -> None:
    host = Host(it)
    command, attributes = host.at(regmap.Page.SCHED_CMD), host.at(regmap.Page.SCHED_ATTR)
    request = await host.offer()
    value = PageSchedCmd(id=request, stage=2).pack()
    it.seen()
    for strobe in (*BYTES, *HALVES, 0x7F, 0xFE):
        await write_parts(it, command, value, (strobe,))
        await it.write64(attributes, PageSchedAttr().pack())
        await write_parts(it, command, value, (0xFF & ~strobe,))
        await it.settle()
        assert not it.seen(*JUDGED), f"{strobe:#04x} came back"
        await it.write64(attributes, PageSchedAttr().pack())
    # One byte of attributes is enough.
    await write_parts(it, command, value, (0x0F,))
    await it.write8(attributes + 6, 0)
    await write_parts(it, command, value, (0xF0,))
    await it.settle()
    assert not it.seen(*JUDGED)


@bench
async def every_page_keeps_a_half_of_its_own(it: Bench) -> None:
    await it.write32(regmap.CONTROL + regmap.Control.PAGE_ENABLE, 0xFF)
    hosts = [Host(it, page) for page in range(8)]
    requests = [await host.offer() for host in hosts]
    values = [PageSchedCmd(id=request, stage=page).pack() for page, request in enumerate(requests)]
    parts = [(host, value, strobe) for host, value in zip(hosts, values, strict=True) for strobe in BYTES]
    it.random.shuffle(parts)
    for host, value, strobe in parts:
        await write_parts(it, host.at(regmap.Page.SCHED_CMD), value, (strobe,))
    await it.rest()
    admitted = {event.stage: event.id for event in it.seen(CommitKind.ADMIT)}
    assert admitted == dict(enumerate(requests))


@bench
async def bytes_of_one_page_complete_no_command_of_another(it: Bench) -> None:
    await it.write32(regmap.CONTROL + regmap.Control.PAGE_ENABLE, 0x03)
    first, second = Host(it, 0), Host(it, 1)
    value = PageSchedCmd(id=await first.offer(), stage=0).pack()
    await write_parts(it, first.at(regmap.Page.SCHED_CMD), value, (0x0F,))
    await write_parts(it, second.at(regmap.Page.SCHED_CMD), value, (0xF0,))
    await it.settle()
    assert not it.seen(*JUDGED)


@bench
async def attributes_come_in_any_order_too(it: Bench) -> None:
    host = Host(it)
    orders = [*permutations(HALVES), *(it.random.sample(PAIRS, 4) for _ in range(6)), it.random.sample(BYTES, 8)]
    for order in orders:
        request = await host.offer()
        value = PageSchedAttr(automatic=1, tier=it.random.randrange(4), group=1, rows=5).pack()
        await write_parts(it, host.at(regmap.Page.SCHED_ATTR), value, order)
        await host.command(request)
        await it.expect(CommitKind.ADMIT, id=request, lane=1, stage=1 << 3 | (value >> 2 & 3) << 4)


@bench
async def half_attributes_are_bad_and_are_forgotten_with_the_refusal(it: Bench) -> None:
    host = Host(it)
    attributes = host.at(regmap.Page.SCHED_ATTR)
    value = PageSchedAttr(automatic=1, rows=5).pack()
    for strobe in (*BYTES, *HALVES, 0x7F, 0xFE):
        request = await host.offer()
        await write_parts(it, attributes, value, (strobe,))
        await host.command(request)
        await it.expect(CommitKind.REJECT, id=request, stage=RejectReason.BAD_ATTRIBUTE)
        await write_parts(it, attributes, value, (0xFF & ~strobe,))
        await host.command(request)
        await it.expect(CommitKind.REJECT, id=request, stage=RejectReason.BAD_ATTRIBUTE)
    # Without any, the request is a manual one.
    await host.admit()


@bench
async def attributes_that_were_whole_begin_anew(it: Bench) -> None:
    host = Host(it)
    request = await host.offer()
    attributes = host.at(regmap.Page.SCHED_ATTR)
    await it.write64(attributes, PageSchedAttr(automatic=1, rows=5).pack())
    await write_parts(it, attributes, PageSchedAttr(automatic=1, rows=9).pack(), (0x0F,))
    await host.command(request)
    await it.expect(CommitKind.REJECT, id=request, stage=RejectReason.BAD_ATTRIBUTE)


@bench
async def a_command_uses_attributes_up_whether_it_is_accepted_or_not(it: Bench) -> None:
    host = Host(it)
    request = await host.offer()
    await host.attributes(rows=5)
    await host.command(request, stage=1)
    await it.expect(CommitKind.REJECT, id=request, stage=RejectReason.UNKNOWN_STAGE)
    await host.command(request, stage=1)
    await it.expect(CommitKind.ADMIT, id=request, stage=0, detail=1)
    await host.join(rows=5)
    await host.admit(stage=4)
