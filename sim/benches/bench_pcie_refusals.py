"""Packets that the endpoint does not carry out: what becomes of them, and that nothing else does."""

from __future__ import annotations

from typing import Any

from cocotb.triggers import with_timeout
from cocotbext.pcie.core.tlp import CplStatus, TlpType
from cocotbext.pcie.xilinx.us.interface import UsPcieFrame

from cuelight import regmap

from .pcie.bench import PcieBench, bench

COMMAND = regmap.PAGE + regmap.Page.SCHED_CMD
_ATOMICS = {TlpType.FETCH_ADD: 1, TlpType.SWAP: 1, TlpType.CAS: 2}
"""Dwords of the smallest one of each."""
_MESSAGES = (12, 13, 14, 15)
"""Request types on CQ that the hard block's model does not know, one that does not exist among them."""
_BAD_LENGTHS = (3, 4, 5, 12, 13, 16, 17, 32, 64)
_TOO_LONG = (17, 18, 28, 29, 36, 64)


async def counts(it: PcieBench) -> tuple[int, int, int]:
    """Packets spoilt, dropped and refused so far."""
    endpoint = regmap.Endpoint
    words = [
        await it.read32(regmap.ENDPOINT + offset) for offset in (endpoint.SPOILT, endpoint.DROPPED, endpoint.REFUSED)
    ]
    return words[0], words[1], words[2]


async def refused(it: PcieBench, tlp: Any, status: CplStatus) -> None:
    """A non-posted request is completed with this status, and reaches no bus."""
    it.spy.transactions.clear()
    completion = await it.board.ask(tlp)
    assert completion.status == status, completion
    assert completion.fmt_type == TlpType.CPL
    assert not it.spy.transactions


def on_cq(it: PcieBench, kind: TlpType, offset: int, count: int, **place: int) -> Any:
    """A received request with any payload that it has to have."""
    words = [it.random.getrandbits(32) for _ in range(count)]
    has_data = kind in (*_ATOMICS, TlpType.MEM_WRITE, TlpType.IO_WRITE)
    return it.board.received(kind, offset, words if has_data else (), count, **place)


@bench
async def reads_of_a_length_that_their_place_does_not_take_are_aborted(it: PcieBench) -> None:
    for count in _BAD_LENGTHS:
        await refused(it, it.board.packet(TlpType.MEM_READ, regmap.IDENTITY, count, 0xE, 0x3), CplStatus.CA)
    for count in _TOO_LONG:
        await refused(it, it.board.packet(TlpType.MEM_READ, regmap.POLL, count, 0xF, 0xF), CplStatus.CA)
    assert await counts(it) == (0, 0, len(_BAD_LENGTHS) + len(_TOO_LONG))


@bench
async def writes_of_a_length_that_their_place_does_not_take_are_dropped(it: PcieBench) -> None:
    places = [(COMMAND, count) for count in _BAD_LENGTHS] + [(regmap.COMPLETION, count) for count in _TOO_LONG]
    for offset, count in places:
        await it.board.write(offset, [it.random.getrandbits(32) for _ in range(count)])
    assert not await it.writes()
    assert await counts(it) == (0, len(places), 0)


@bench
async def requests_of_other_types_are_unsupported(it: PcieBench) -> None:
    kinds: dict[TlpType, int] = {
        **_ATOMICS,
        TlpType.IO_READ: 1,
        TlpType.IO_WRITE: 1,
        TlpType.MEM_READ_LOCKED: 2,
    }
    for kind, count in kinds.items():
        tlp = on_cq(it, kind, COMMAND, count)
        completion = await it.board.answer(tlp)
        assert completion.status == CplStatus.UR
        locked = kind == TlpType.MEM_READ_LOCKED
        assert completion.fmt_type == (TlpType.CPL_LOCKED if locked else TlpType.CPL)
        assert (completion.requester_id, completion.tag) == (tlp.requester_id, tlp.tag)
        assert completion.lower_address == (COMMAND if locked else 0)
        assert completion.byte_count == (8 if locked else 4)
    assert not await it.writes()
    assert await counts(it) == (0, 0, len(kinds))


@bench
async def a_completion_without_success_tells_the_hard_block_of_its_request(it: PcieBench) -> None:
    """For the header log of AER: behind the descriptor come the byte enables, and the request's descriptor."""
    frames: list[UsPcieFrame] = []
    sink = it.board.device.cc_sink
    receive = sink._sink_frame

    def keep(frame: UsPcieFrame) -> None:
        frames.append(frame)
        receive(frame)

    sink._sink_frame = keep
    tlp = on_cq(it, TlpType.MEM_READ, regmap.IDENTITY, 3)
    tlp.first_be, tlp.last_be = 0xC, 0x7
    await it.board.answer(tlp)
    (frame,) = frames
    assert len(frame.data) == 8
    assert frame.data[1] & 0x7FF == 0
    assert frame.data[3:] == [0x7C, *tlp.pack_us_cq().data]


@bench
async def messages_are_dropped(it: PcieBench) -> None:
    for kind in _MESSAGES:
        for count in (0, 1, 8, 20):
            frame = UsPcieFrame()
            frame.data = [0, 0, count | kind << 11, it.random.getrandbits(32)]
            frame.data += [it.random.getrandbits(32) for _ in range(count)]
            frame.byte_en = [0] * 4 + [0xF] * count
            frame.first_be = frame.last_be = 0xF
            frame.update_parity()
            await it.board.device.cq_source.send(frame)
    assert not await it.writes()
    assert await counts(it) == (0, 4 * len(_MESSAGES), 0)


@bench
async def bars_that_do_not_exist_are_unsupported(it: PcieBench) -> None:
    """Nor is a BAR that was configured larger than the device: its upper part would show the lower one again."""
    places = [{"bar": bar} for bar in (1, 3, 4, 5, 6, 7)] + [{"aperture": size} for size in (17, 20, 63)]
    for place in places:
        completion = await it.board.answer(on_cq(it, TlpType.MEM_READ, regmap.IDENTITY, 1, **place))
        assert completion.status == CplStatus.UR
        it.board.put_on_cq(on_cq(it, TlpType.MEM_WRITE, COMMAND, 2, **place))
    assert not await it.writes()
    assert await counts(it) == (0, len(places), len(places))


@bench
async def poisoned_writes_are_counted(it: PcieBench) -> None:
    """The hard block drops them, and says so."""
    for _ in range(5):
        tlp = it.board.packet(TlpType.MEM_WRITE, COMMAND, 2, 0xF, 0xF)
        tlp.data = bytearray(it.random.randbytes(8))
        tlp.ep = True
        await it.board.rc.perform_posted_operation(tlp)
    assert not await it.writes()
    assert await it.read32(regmap.ENDPOINT + regmap.Endpoint.POISONED) == 5
    assert await counts(it) == (0, 0, 0)


@bench
async def a_packet_that_the_hard_block_takes_back_does_nothing(it: PcieBench) -> None:
    """For an error in its memory: no byte is written, however long the packet is."""
    sizes = (1, 2, 4, 5, 12, 13, 16)
    for count in sizes:
        tlp = on_cq(it, TlpType.MEM_WRITE, regmap.COMPLETION, count)
        tlp.discontinue = True
        it.board.put_on_cq(tlp)
        await it.board.write(COMMAND, [count, count])
    assert [each.offset for each in await it.writes()] == [COMMAND] * len(sizes)
    assert await counts(it) == (len(sizes), 0, 0)


@bench
async def a_packet_of_another_length_than_it_says_does_nothing(it: PcieBench) -> None:
    for said, sent in ((1, 5), (5, 1), (4, 6), (13, 4), (16, 12), (2, 40)):
        frame = on_cq(it, TlpType.MEM_WRITE, regmap.COMPLETION, said).pack_us_cq()
        frame.data = frame.data[:4] + [it.random.getrandbits(32) for _ in range(sent)]
        frame.byte_en = [0] * 4 + [0xF] * sent
        frame.update_parity()
        await it.board.device.cq_source.send(frame)
    assert not await it.writes()
    assert await counts(it) == (6, 0, 0)


@bench
async def what_is_refused_stands_in_nobodys_way(it: PcieBench) -> None:
    """Good and bad requests in any order; the good ones are carried out and answered as if they were alone."""
    register = regmap.GROUP + regmap.Group.COST
    for number in range(40):
        match it.random.randrange(4):
            case 0:
                await it.board.write(regmap.PAGE, [0] * 3)
            case 1:
                it.board.put_on_cq(on_cq(it, TlpType.MEM_WRITE, register, 1, bar=5))
            case 2:
                await refused(it, it.board.packet(TlpType.MEM_READ, register, 7, 0xF, 0xF), CplStatus.CA)
        await it.board.write(register, [number])
        assert await with_timeout(it.read32(register), 20, "us") == number
