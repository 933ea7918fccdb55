"""The scheduler's bus as a host has it: a packet for each transaction."""

from __future__ import annotations

from typing import Any

from cocotb.triggers import ClockCycles, RisingEdge

from cuelight import regmap

from .board import Board

__all__ = ["PcieBus"]


class PcieBus:
    """One transaction of 64 bits after the other; every method may be called by several tasks.

    Parameters
    ----------
    board
        Sends the packets.
    dut
        The simulated `PcieBenchTop`.
    """

    def __init__(self, board: Board, dut: Any) -> None:
        self.accepted_at = 0
        """Cycle in which the latest transaction was accepted."""
        self._board = board
        self._dut = dut

    async def write(self, offset: int, data: int, strobe: int = 0xFF) -> None:
        """Write the strobed bytes of ``data`` to the eight bytes at ``offset``, a multiple of 8."""
        low, high = strobe & 0xF, strobe >> 4
        words = [data & 0xFFFF_FFFF, data >> 32]
        if low and high:
            await self._board.write(offset, words, low, high)
        else:
            half = int(bool(high))
            await self._board.write(offset + 4 * half, [words[half]], low | high)

    async def read(self, offset: int) -> int:
        """Read the eight bytes at ``offset``, a multiple of 8."""
        low, high = await self._board.read(offset, 2)
        return low | high << 32

    async def wait(self, cycles: int) -> None:
        """Let cycles pass."""
        if cycles:
            await ClockCycles(self._dut.clk, cycles)

    async def until_ready(self) -> None:
        """Wait until every transaction has had its whole effect."""
        await self._push()
        await self._until(self._dut.ready)

    async def until_idle(self) -> None:
        """Wait until nothing will change without a request."""
        await self._push()
        await self._until(self._dut.resting)

    async def _push(self) -> None:
        """A read without bytes comes behind all writes."""
        await self._board.read(regmap.IDENTITY, 1, 0)

    async def _until(self, strobe: Any) -> None:
        await RisingEdge(strobe)
        await RisingEdge(self._dut.clk)
