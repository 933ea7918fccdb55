"""A bench on PCI Express: what a root complex asks, beside the golden model, which follows what reaches the bus."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Any

from cocotb.triggers import FallingEdge, RisingEdge, Timer

from cuelight import regmap
from cuelight_sim.lockstep import Reading

from ..bench import Bench, scripts_of
from ..device import BlockingDevice
from .board import Board
from .bus import PcieBus
from .spy import Spy, Transaction

__all__ = ["PcieBench", "bench"]

_LAGGING = range(regmap.FIFO, regmap.COUNTERS)
"""Heads of FIFOs may lag behind commits; they are compared when the device rests."""
_INPUTS = (
    *("pcie_cq_np_req_count", "cfg_flr_in_process", "cfg_local_error_valid"),
    *("m_axis_cq_tvalid", "s_axis_cc_tready", "s_axis_rq_tready", "m_axis_rc_tvalid"),
)


class PcieBench(Bench):
    """The device just after enumeration.

    Writes are over when they were sent; reads push them. The golden model is told of whatever the scheduler's bus
    accepts, so scripts can have as many packets under way as they like.

    Parameters
    ----------
    dut
        The simulated `PcieBenchTop`.
    random
        Makes every choice.
    """

    ns_per_cycle = 4
    pauses = 0.3
    """Share of its cycles in which a stream is paused."""

    def __init__(self, dut: Any, random: Random) -> None:
        super().__init__(dut, random)
        self.board: Board
        self.spy: Spy

    @property
    def resets(self) -> int:
        """Resets so far, the first one included."""
        return self._resets

    @property
    def clk(self) -> Any:
        """The device's clock."""
        return self._dut.clk

    async def begin(self) -> None:
        """Reset the device, and enumerate."""
        # The hard block's model looks at what the device shows before it resets it.
        for name in _INPUTS:
            getattr(self._dut, name).value = 0
        self._dut.user_reset.value = 1
        for level in (1, 0, 1, 0):
            self._dut.clk.value = level
            await Timer(self.ns_per_cycle, unit="ns")
        self.board = Board(self._dut, self.random)
        await self.board.until_reset()
        self._unfollow()
        self._follow()
        await self.board.enumerate()
        if self.pauses:
            self.board.pause(self.pauses)

    def _unfollow(self) -> None:
        """What has not had its effect yet may not have it any more."""
        self._stop_watching()
        if self._resets:
            self.spy.stop()

    def _follow(self) -> None:
        """The reset has just been released."""
        self._resets += 1
        self.bus: Any = PcieBus(self.board, self._dut)
        self.nonce = int(self._dut.boot_nonce.value)
        self._watch(BlockingDevice(self.bus, self._monitor), self.nonce)
        self.spy = Spy(self._dut, self._monitor, accepted=self._accepted, answered=self._answered)
        self._readings: deque[Reading] = deque()

    def _accepted(self, transaction: Transaction) -> None:
        self.bus.accepted_at = transaction.cycle
        if transaction.write:
            self.lockstep.wrote(transaction.offset, transaction.data, transaction.strobe)
        elif transaction.offset not in _LAGGING:
            self._readings.append(self.lockstep.asked(transaction.offset, 2))

    def _answered(self, transaction: Transaction) -> None:
        if transaction.offset not in _LAGGING:
            data = transaction.data
            self.lockstep.answered(self._readings.popleft(), data & 0xFFFF_FFFF, data >> 32)

    async def write(self, offset: int, data: int, strobe: int = 0xFF) -> None:
        """Send one packet that writes the strobed bytes of ``data`` to the eight bytes at ``offset``."""
        await self.bus.write(offset, data, strobe)

    async def read32(self, offset: int) -> int:
        """Read 32 bits with one packet."""
        return (await self.board.read(offset, 1))[0]

    async def read64(self, offset: int) -> int:
        """Read 64 bits with one packet."""
        data: int = await self.bus.read(offset)
        return data

    async def peek64(self, offset: int) -> int:
        """As `read64`."""
        return await self.read64(offset)

    async def writes(self) -> list[Transaction]:
        """Takes away all transactions so far, and gives the writes."""
        await self.settle()
        seen, self.spy.transactions = self.spy.transactions, []
        return [transaction for transaction in seen if transaction.write]

    async def run(self, cycles: int) -> None:
        """Let some cycles pass."""
        await self.bus.wait(cycles)

    async def settle(self) -> None:
        """Wait until every write has had its whole effect."""
        await self.bus.until_ready()
        self.lockstep.follow()

    async def rest(self) -> None:
        """Wait until nothing will change without a request."""
        await self.bus.until_idle()
        self.lockstep.rested()

    async def compare(self) -> None:
        """Rest, and compare every register that can be read."""
        await self.rest()
        for offset in self.lockstep.registers:
            self.lockstep.compare(offset, await self.bus.read(offset))

    async def reset_function(self) -> None:
        """Reset the device as a host does, in whatever state it is; the link stays up."""
        self._dut.cfg_flr_in_process.value = 1
        self.board.device.terminate_requests()
        await RisingEdge(self._dut.function_reset_done)
        self._unfollow()
        self._follow()
        self._dut.cfg_flr_in_process.value = 0
        await FallingEdge(self._dut.function_reset_done)

    async def reset_link(self, cycles: int = 100) -> None:
        """Reset the device in the middle of whatever there is, as a link does that was down, or a hot reset."""
        self.board.faults.down = True
        self._unfollow()
        await self.board.device.reset_link(cycles)
        await FallingEdge(self._dut.user_reset)
        self._follow()
        self.board.faults.down = False
        await self.board.restore()


bench = scripts_of(PcieBench)
"""Makes a cocotb test of a protocol script; see `benches.bench.bench`."""
