"""Links that go down, hot resets, resets of the function while it pushes, and memory that goes away."""

from __future__ import annotations

from typing import Any

import cocotb
from cocotb.triggers import Timer
from cocotbext.pcie.core.tlp import CplStatus, TlpType

from cuelight import regmap
from cuelight.regmap import CommitKind, FallCause, PageReqStatus, Push, PushMode

from .host import Host, set_lane
from .lane import Lane
from .pcie.bench import PcieBench, bench
from .pcie.faults import WELL, late
from .pcie.port import LanePort, pushed

NONCE = regmap.IDENTITY + regmap.Identity.BOOT_NONCE
_ALL_ONES = 0xFFFF_FFFF
_SENT = (TlpType.MEM_READ, TlpType.MEM_READ_64, TlpType.MEM_WRITE, TlpType.MEM_WRITE_64)


async def is_fresh(it: PcieBench, nonces: set[int]) -> None:
    """Nothing of what was before the reset is left, and the nonce tells so."""
    nonce = await it.read64(NONCE)
    assert nonce not in nonces
    nonces.add(nonce)
    assert PageReqStatus.unpack(await it.read32(regmap.PAGE)).active == 0
    for lane in range(it.params.lanes):
        assert await it.read32(regmap.PUSH + regmap.PUSH_STRIDE * lane + Push.STATUS) == 0
        assert not (await Lane(it, lane).look()).sequence


async def serves_again(it: PcieBench, port: LanePort) -> None:
    """What a host does after a loss: it replays, with sequences beyond all that may have been pushed."""
    start = 100 + 100 * it.resets
    await set_lane(it, port.lane, regmap.Lane.SEQUENCE, start)
    await Host(it).join(rows=3)
    await port.push()
    head = await port.arrives(start)
    await Lane(it).done(start)
    await it.expect(CommitKind.COMPLETE, id=start, stage=head.stage)


def masters(it: PcieBench) -> list[Any]:
    """Everything that the device sends from now on but completions."""
    seen: list[Any] = []
    send = it.board.device.send

    async def note(packet: Any) -> None:
        if packet.fmt_type in _SENT:
            seen.append(packet)
        await send(packet)

    it.board.device.send = note
    return seen


@bench
async def a_link_that_was_down_brings_a_fresh_device(it: PcieBench) -> None:
    """In the middle of pushing; it masters nothing until it is asked to, and then serves as before."""
    port, nonces = await pushed(it), {await it.read64(NONCE)}
    await Host(it).join(rows=20)
    await port.arrives(1)
    for _ in range(2):
        await it.run(it.random.randrange(600))
        await it.reset_link()
        sent = masters(it)
        await is_fresh(it, nonces)
        await it.run(1500)
        assert not sent
        await serves_again(it, port)


@bench
async def a_hot_reset_breaks_packets_off_anywhere(it: PcieBench) -> None:
    """Whatever was on the four streams, the next packets are taken and answered as if nothing had been."""
    port, nonces = LanePort(it), {await it.read64(NONCE)}
    it.board.pause(0.6)
    for _ in range(10):
        await Host(it).join(rows=20)
        await port.push()
        await port.arrives(1)
        for _ in range(4):
            await it.board.write(regmap.COMPLETION, [it.random.getrandbits(32) for _ in range(16)])
            cocotb.start_soon(it.board.load(regmap.POLL, 16))
        await it.run(it.random.randrange(100))
        await it.reset_link(cycles=it.random.choice((2, 20, 200)))
        await is_fresh(it, nonces)
        port.clear()


@bench
async def a_link_that_is_down_reads_all_ones(it: PcieBench) -> None:
    await Host(it).join(rows=3)
    it.board.faults.down = True
    assert await it.board.load(regmap.PAGE) == [_ALL_ONES]
    assert await it.board.load(NONCE, 2) == [_ALL_ONES] * 2
    it.board.faults.down = False
    await it.reset_link()
    assert await it.board.load(regmap.PAGE) == [await it.read32(regmap.PAGE)]


@bench
async def a_completion_that_is_lost_reads_all_ones_once(it: PcieBench) -> None:
    """The device has answered, and goes on; the next read tells."""
    (status,) = await it.board.load(regmap.PAGE)
    lost: list[Any] = []

    def loses(packet: Any) -> bool:
        if packet.fmt_type == TlpType.CPL_DATA and not lost:
            lost.append(packet)
            return True
        return False

    it.board.faults.loses = loses
    assert await it.board.load(regmap.PAGE) == [_ALL_ONES]
    assert await it.board.load(regmap.PAGE) == [status]


@bench
async def posted_writes_are_lost_at_a_reset(it: PcieBench) -> None:
    """Those behind it begin anew: the half of a command that was lost is no part of a later one."""
    host = Host(it)
    for _ in range(6):
        await it.write(host.at(regmap.Page.SCHED_CMD), 1 << 48 | 5, 0x0F)
        await it.run(it.random.randrange(40))
        await it.reset_link()
        await it.write(host.at(regmap.Page.SCHED_CMD), 1 << 48 | 5, 0xF0)
        await it.rest()
        assert not it.seen(CommitKind.ADMIT, CommitKind.REJECT)
        assert (await host.status()).active == 0
        request = await host.admit(stage=1)
        await it.reset_link()
        await host.done(request)
        await it.expect(CommitKind.STAGE_DONE_IGNORED, id=request)


@bench
async def a_function_that_is_reset_while_it_pushes_ends_its_packet(it: PcieBench) -> None:
    """None is broken off, none comes behind it, and the lane is in POLL. Reads that were under way are terminated."""
    port, nonces = LanePort(it), {await it.read64(NONCE)}
    for _ in range(8):
        await port.push()
        await Host(it).join(rows=20)
        it.board.device.rq_sink.pause = True
        await it.run(it.random.randrange(60))
        it.board.device.rq_sink.pause = False
        await it.run(it.random.randrange(30))
        await it.reset_function()
        sent = masters(it)
        await is_fresh(it, nonces)
        await it.run(300)
        assert not sent
        assert await port.count(Push.FALLS) == 0
        port.clear()
    await serves_again(it, port)


@bench
async def completions_of_reads_from_before_a_reset_are_counted(it: PcieBench) -> None:
    """Of the function, and of the link: the fresh device knows nothing of them, and what it reads since is its own."""
    port, resets = LanePort(it), (it.reset_function, it.reset_link)
    for reset in resets:
        await port.push()
        it.board.faults.completions = late(4_000)
        await Timer(1_500, unit="ns")
        it.board.faults.completions = lambda completion: WELL
        await reset()
        await port.push()
        await Timer(2_000, unit="ns")
        assert await port.count(Push.LATE) == 1
        assert await port.count(Push.FALLS) == 0
        if reset is not resets[-1]:
            await reset()


@bench
async def memory_that_goes_away_takes_nothing_and_its_lane_is_polled(it: PcieBench) -> None:
    """A GPU that is reset, an IOMMU that refuses: for each way in which reads end then. Writes just get lost."""
    port, other, lane = await pushed(it), await pushed(it, 1), Lane(it)
    await Host(it).join(rows=20)
    expected = (await port.arrives(1)).sequence
    ways = {CplStatus.UR: FallCause.UNSUPPORTED, CplStatus.CA: FallCause.ABORTED, None: FallCause.TIMEOUT}
    for generation, (way, cause) in enumerate(ways.items(), 2):
        it.board.faults.gone = {port.area: way}
        port.clear()
        await lane.done(expected)
        await it.expect(CommitKind.COMPLETE, lane=0, id=expected)
        assert (await port.reach(PushMode.POLL)).cause == cause
        assert not any(port.words(regmap.LanePort.RING, 16 * 8))
        it.board.faults.gone = {}
        await it.expect(CommitKind.REOFFERED, lane=0, id=expected + 1)
        assert (await lane.serve()).sequence == expected + 1
        await port.push(generation)
        expected = (await port.arrives(expected + 2)).sequence
    assert (await other.status()).mode == PushMode.PUSH
    assert await other.count(Push.FALLS) == 0
