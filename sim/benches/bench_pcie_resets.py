"""Function-level resets, in whatever the device is doing; the hard block and the link go on."""

from __future__ import annotations

import cocotb
from cocotbext.pcie.core.tlp import TlpType

from cuelight import regmap
from cuelight.regmap import PageReqStatus, PageSchedCmd

from .host import Host
from .lane import Lane
from .pcie.bench import PcieBench, bench

NONCE = regmap.IDENTITY + regmap.Identity.BOOT_NONCE
DROPPED = regmap.ENDPOINT + regmap.Endpoint.DROPPED


@bench
async def a_reset_begins_anew_with_another_nonce(it: PcieBench) -> None:
    host, lane = Host(it), Lane(it)
    nonces = {await it.read64(NONCE)}
    for _ in range(3):
        await host.join(rows=3)
        await lane.head()
        await it.board.write(regmap.PAGE, [0] * 3)
        assert await it.read32(DROPPED) == 1
        await it.reset_function()
        assert await it.read32(DROPPED) == 0
        assert PageReqStatus.unpack(await it.read32(regmap.PAGE)).active == 0
        assert not (await lane.look()).sequence
        nonces.add(await it.read64(NONCE))
    assert len(nonces) == 4


@bench
async def a_half_command_does_not_outlive_a_reset(it: PcieBench) -> None:
    host = Host(it)
    command = host.at(regmap.Page.SCHED_CMD)
    await it.write(command, 0x0001_0000_0000_0003, 0x0F)
    await it.settle()
    await it.reset_function()
    await it.write(command, 0x0001_0000_0000_0003, 0xF0)
    await it.rest()
    assert PageReqStatus.unpack(await it.read32(regmap.PAGE)).active == 0


@bench
async def what_waits_in_the_hard_block_is_carried_out_after_a_reset(it: PcieBench) -> None:
    """Unless a read behind it was answered before."""
    host = Host(it)
    for waits in (False, True):
        command = PageSchedCmd(id=await host.offer(), stage=0).pack()
        words = [command & 0xFFFF_FFFF, command >> 32]
        it.board.put_on_cq(it.board.received(TlpType.MEM_WRITE, host.at(regmap.Page.SCHED_CMD), words))
        if not waits:
            await it.settle()
        await it.reset_function()
        await it.settle()
        assert PageReqStatus.unpack(await it.read32(regmap.PAGE)).active == waits


@bench
async def a_reset_in_the_middle_of_traffic_breaks_no_packet_off(it: PcieBench) -> None:
    """Every read is answered, by the device before the reset or by the one after it."""
    for _ in range(12):
        reads = []
        for _ in range(6):
            await it.board.write(
                regmap.COMPLETION, [it.random.getrandbits(32) for _ in range(it.random.randint(1, 16))]
            )
            count = it.random.choice((1, 2, 16))
            reads.append(cocotb.start_soon(it.board.read(regmap.POLL, count)))
        await it.run(it.random.randrange(120))
        await it.reset_function()
        for read in reads:
            await read
