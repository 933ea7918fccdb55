"""What the host's own driver needs of a simulated board that masters the bus: its memory, and its interrupts."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Awaitable, Callable
from typing import Any

from cocotbext.axi import Region

from .board import Board
from .registers import LinkRegisters

__all__ = ["LinkMaster"]


class _Memory(Region):  # type: ignore[misc]
    """Memory of this process, as the root complex reaches it: other threads see a packet's dwords in order."""

    def __init__(self, address: int, size: int) -> None:
        super().__init__(size=size)
        self._address = address

    async def _read(self, address: int, length: int, **_: Any) -> bytes:
        return ctypes.string_at(self._address + address, length)

    async def _write(self, address: int, data: bytes, **_: Any) -> None:
        assert not address % 4
        assert not len(data) % 4
        words = (ctypes.c_uint32 * (len(data) // 4)).from_address(self._address + address)
        for index in range(len(words)):
            words[index] = int.from_bytes(data[4 * index : 4 * index + 4], "little")


class LinkMaster:
    """`cuelight.transports.push.Master` over the simulated link.

    Parameters
    ----------
    registers
        Of the board; when they are closed, it masters the bus no more.
    board
        The board.
    """

    def __init__(self, registers: LinkRegisters, board: Board) -> None:
        self._registers = registers
        self._board = board

    def map_memory(self, address: int, size: int, bus_address: int) -> None:
        regions = self._board.rc.mem_address_space.regions
        memory = _Memory(address, size)

        async def give() -> None:
            self._board.rc.mem_address_space.register_region(memory, bus_address)

        async def take() -> None:
            regions[:] = [region for region in regions if region[3] is not memory]

        self._do(give, take)

    def open_interrupts(self, count: int) -> tuple[int, ...]:
        descriptors = tuple(os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK) for _ in range(count))
        function = self._board.function

        def listen(vector: int) -> None:
            async def handle() -> None:
                os.eventfd_write(descriptors[vector], 1)

            function.request_irq(vector, handle)

        async def give() -> None:
            assert await function.alloc_irq_vectors(count, count) == count
            for vector in range(count):
                listen(vector)

        async def take() -> None:
            await function.msix_set_enable(False)
            for descriptor in descriptors:
                os.close(descriptor)

        self._do(give, take)
        return descriptors

    def start_mastering(self) -> None:
        self._do(self._board.function.set_master, self._board.function.clear_master)

    def _do(self, give: Callable[[], Awaitable[None]], take: Callable[[], Awaitable[None]]) -> None:
        self._registers.call(give)
        self._registers.held.callback(self._registers.call, take)
