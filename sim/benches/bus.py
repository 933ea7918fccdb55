"""Bus master and commit monitor of a bench."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import cocotb
from cocotb.simtime import get_sim_time
from cocotb.task import Task
from cocotb.triggers import Lock, RisingEdge, Timer

from cuelight_rtl.commit import FIELDS
from cuelight_rtl.model import NS_PER_CYCLE, Commit

__all__ = ["Bus", "CommitMonitor", "unpack"]


class CommitMonitor:
    """Collects what the commit ports show, and knows the cycle since reset.

    Parameters
    ----------
    dut
        The simulated socket.
    ns_per_cycle
        Period of its clock.
    """

    def __init__(self, dut: Any, ns_per_cycle: int = NS_PER_CYCLE) -> None:
        self.commits: list[Commit] = []
        """Commits in order; whoever has looked at them removes them."""
        self._dut = dut
        self._ns_per_cycle = ns_per_cycle
        self._ports = [getattr(dut, f"commit_{port}") for port in range(len(dut.commit_valid))]
        self._origin_ns = self._now_ns()
        self._task: Task[None] | None = None

    def start(self) -> None:
        """Begin in cycle 0, with the reset just released."""
        self._origin_ns = self._now_ns()
        self._task = cocotb.start_soon(self._watch())

    def stop(self) -> None:
        """See nothing more."""
        if self._task is not None:
            self._task.cancel()

    @property
    def cycle(self) -> int:
        """Number of the present clock cycle."""
        return (self._now_ns() - self._origin_ns) // self._ns_per_cycle

    @staticmethod
    def _now_ns() -> int:
        return int(get_sim_time("ns"))

    async def _watch(self) -> None:
        committed = RisingEdge(self._dut.committed)
        while True:
            await committed
            valid = int(self._dut.commit_valid.value)
            for port, packed in enumerate(self._ports):
                if valid >> port & 1:
                    self.commits.append(unpack(self.cycle, port, int(packed.value)))


def unpack(cycle: int, port: int, packed: int) -> Commit:
    """The commit that `benches.top` shows as a packed word on a port."""
    values = []
    for width in FIELDS.values():
        values.append(packed & (1 << width) - 1)
        packed >>= width
    return Commit(cycle, port, *values)


class Bus:
    """The master of the scheduler's bus: one transaction of 64 bits after the other.

    A write is over when it was accepted; as with posted writes its effect may come later, but comes before that of any
    later transaction. Every method returns just after a clock edge; tasks that share the master hold its `lock`.

    Parameters
    ----------
    dut
        The simulated `benches.top`.
    monitor
        Tells the cycle.
    random
        Chooses the pauses between transactions, and what the lines show that nobody should look at.
    """

    def __init__(self, dut: Any, monitor: CommitMonitor, random: Random) -> None:
        self.accepted_at = 0
        """Cycle in which the latest transaction was accepted."""
        self.pause: Sequence[int] = (0, 0, 0, 1, 2, 7)
        """Cycles without a request before each transaction; one is drawn."""
        self.lock = Lock()
        self._dut = dut
        self._monitor = monitor
        self._random = random

    async def reset(self, nonce: int, cycles: int = 3) -> None:
        """Hold the device in reset for a while; it then reads ``nonce`` as its boot nonce."""
        dut = self._dut
        self._hang_up()
        dut.boot_nonce.value = nonce
        dut.trace_take.value = 0
        dut.rst.value = 1
        await self.wait(cycles)
        dut.rst.value = 0

    async def write(self, offset: int, data: int, strobe: int = 0xFF) -> None:
        """Write the strobed bytes of ``data`` to the eight bytes at ``offset``, a multiple of 8."""
        await self._request(1, offset, data, strobe)

    async def read(self, offset: int) -> int:
        """Read the eight bytes at ``offset``, a multiple of 8."""
        await self._request(0, offset, self._random.getrandbits(64), self._random.getrandbits(8))
        await RisingEdge(self._dut.answered)
        # Memory that was never read is unknown to Icarus; what it shows must not matter.
        answer = int(self._dut.rsp_data.value.resolve("random"))
        await RisingEdge(self._dut.clk)
        return answer

    async def wait(self, cycles: int) -> None:
        """Let cycles pass."""
        if cycles > 1:
            await Timer((cycles - 1) * NS_PER_CYCLE + 1, unit="ns")
        if cycles:
            await RisingEdge(self._dut.clk)

    async def until_ready(self) -> None:
        """Wait until every transaction has had its whole effect."""
        await self._until(self._dut.ready)

    async def until_idle(self) -> None:
        """Wait until nothing will change without a request."""
        await self._until(self._dut.resting)

    async def _until(self, strobe: Any) -> None:
        await RisingEdge(strobe)
        await RisingEdge(self._dut.clk)

    async def _request(self, write: int, offset: int, data: int, strobe: int) -> None:
        dut = self._dut
        await self.wait(self._random.choice(self.pause))
        dut.req_valid.value = 1
        dut.req_write.value = write
        dut.req_addr.value = offset
        dut.req_data.value = data
        dut.req_strobe.value = strobe
        await RisingEdge(dut.accepted)
        self.accepted_at = self._monitor.cycle
        await RisingEdge(dut.clk)
        self._hang_up()

    def _hang_up(self) -> None:
        dut, random = self._dut, self._random
        dut.req_valid.value = 0
        dut.req_write.value = random.getrandbits(1)
        dut.req_addr.value = random.getrandbits(16)
        dut.req_data.value = random.getrandbits(64)
        dut.req_strobe.value = random.getrandbits(8)
