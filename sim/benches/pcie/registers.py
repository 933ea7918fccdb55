"""Registers of the simulated board for the host's own driver."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from cocotb.triggers import ClockCycles

from cuelight.errors import DeviceClosed, DeviceLost
from cuelight.transports.registers import Access, call_back

from .board import Board

__all__ = ["LinkRegisters"]

_T = TypeVar("_T")
_ANSWER_S = 120.0
"""Far longer than the simulation needs for a packet."""
_IDLE_CYCLES = 20


class LinkRegisters:
    """`cuelight.transports.registers.Registers` over the simulated link: a packet for each access.

    Drivers' threads can use it while `serve` runs.

    Parameters
    ----------
    board
        Sends the packets.
    clk
        The device's clock.
    """

    def __init__(self, board: Board, clk: Any) -> None:
        self._board = board
        self._clk = clk
        self._asked: queue.SimpleQueue[tuple[Callable[[], Awaitable[Any]], Future[Any]]] = queue.SimpleQueue()
        self._closed = False
        self.held = contextlib.ExitStack()
        """Undone when they are closed."""
        self.reads: Counter[int] = Counter()
        """By offset."""
        self.access: Access = call_back(self)

    def read32(self, offset: int) -> int:
        self.reads[offset] += 1

        async def read() -> int:
            return (await self._board.read(offset, 1))[0]

        return self.call(read)

    def read64(self, offset: int) -> int:
        self.reads[offset] += 1

        async def read() -> int:
            low, high = await self._board.read(offset, 2)
            return low | high << 32

        return self.call(read)

    def write32(self, offset: int, value: int) -> None:
        async def write() -> None:
            await self._board.write(offset, [value])

        self.call(write)

    def write64(self, offset: int, value: int) -> None:
        async def write() -> None:
            await self._board.write(offset, [value & 0xFFFF_FFFF, value >> 32])

        self.call(write)

    def check(self) -> None:
        """Nothing but its registers tells whether a simulated board is there."""

    def close(self) -> None:
        self.held.close()
        self._closed = True

    async def serve(self, drive: Callable[[LinkRegisters], _T]) -> _T:
        """Call ``drive`` in a thread, and let time pass, and packets through, until it returns."""
        done: Future[_T] = Future()

        def run() -> None:
            try:
                done.set_result(drive(self))
            except BaseException as error:
                done.set_exception(error)

        threading.Thread(target=run, name="driver", daemon=True).start()
        while not done.done():
            try:
                act, future = self._asked.get_nowait()
            except queue.Empty:
                await ClockCycles(self._clk, _IDLE_CYCLES)
            else:
                future.set_result(await act())
        return done.result()

    def call(self, act: Callable[[], Awaitable[_T]]) -> _T:
        """Have the simulation do something, and wait for it."""
        if self._closed:
            raise DeviceClosed("The simulated board is closed; open another one.")
        future: Future[_T] = Future()
        self._asked.put((act, future))
        try:
            return future.result(_ANSWER_S)
        except TimeoutError:
            raise DeviceLost("The simulation stands still; see its log.") from None
