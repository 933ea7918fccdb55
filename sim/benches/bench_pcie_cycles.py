"""How many cycles the endpoint takes, exactly, where nothing pauses."""

from __future__ import annotations

from typing import Any

import cocotb
from cocotb.task import Task
from cocotb.triggers import ReadOnly, RisingEdge
from cocotbext.pcie.core.tlp import TlpType

from cuelight import regmap
from cuelight.regmap import CommitKind

from .bench import scripts_of
from .pcie.bench import PcieBench


class FastBench(PcieBench):
    """No stream pauses."""

    pauses = 0.0

    async def beat(self, stream: str) -> int:
        """Wait for a beat of a stream, and give the number of its cycle."""
        valid: Any = getattr(self._dut, f"{stream}_tvalid")
        ready: Any = getattr(self._dut, f"{stream}_tready")
        while True:
            await RisingEdge(self.clk)
            await ReadOnly()
            if int(valid.value) and int(ready.value):
                return self._monitor.cycle

    def latency(self) -> Task[int]:
        """Cycles from the next beat on CQ to the first one on CC behind it."""

        async def measure() -> int:
            asked = await self.beat("m_axis_cq")
            return await self.beat("s_axis_cc") - asked

        return cocotb.start_soon(measure())


bench = scripts_of(FastBench)


async def read_cycles(it: FastBench, offset: int, count: int) -> int:
    await it.run(100)
    measured = it.latency()
    await it.board.read(offset, count)
    return await measured


@bench
async def a_read_is_completed_in_five_cycles(it: FastBench) -> None:
    """One cycle to take it, three of the bus, one to put the completion together; one more for a second unit."""
    for offset in (regmap.IDENTITY, regmap.PAGE, regmap.POLL, regmap.COMPLETION):
        assert await read_cycles(it, offset, 1) == 5
        assert await read_cycles(it, offset, 2) == 5
        assert await read_cycles(it, offset + 4, 2) == 6


@bench
async def a_read_of_64_bytes_takes_a_cycle_for_each_unit_more(it: FastBench) -> None:
    assert await read_cycles(it, regmap.POLL, 16) == 12
    assert await read_cycles(it, regmap.POLL + 4, 16) == 13


@bench
async def req_status_shows_a_command_seven_cycles_after_it_came(it: FastBench) -> None:
    """Then a read right behind it is taken by the bus, which waits until the command has had its whole effect."""
    await it.rest()
    await it.run(100)
    it.spy.transactions.clear()
    came = cocotb.start_soon(it.beat("m_axis_cq"))
    command = [3, 1 << 16]
    it.board.put_on_cq(it.board.received(TlpType.MEM_WRITE, regmap.PAGE + regmap.Page.SCHED_CMD, command))
    answer = cocotb.start_soon(it.board.answer(it.board.received(TlpType.MEM_READ, regmap.PAGE, (), 1)))
    await it.expect(CommitKind.ADMIT, id=command[1], detail=command[0])
    await answer
    write, read = it.spy.transactions
    assert write.cycle == await came + 1
    assert read.data & 0xFFFF == 1
    assert read.cycle - await came == 7
