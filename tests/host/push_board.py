"""A board that may master the bus: the real endpoint, compiled. Time passes while somebody uses or watches it."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from cuelight.errors import DeviceClosed
from cuelight.regmap import PushMode
from cuelight.segment import Shape
from cuelight.transports.registers import call_back
from cuelight_push.board import PARAMS, Board
from cuelight_push.link import Packet
from cuelight_rtl.bus.pcie_usp.streams import RequestType

__all__ = ["SHAPE", "WAIT_S", "PushBoard", "Store"]

SHAPE = Shape(lanes=PARAMS.lanes, slots=PARAMS.slots, seats=PARAMS.seats, tokens=32, context=64, blocks=4)
"""Of the segment whose ports it reaches."""
WAIT_S = 30.0
"""For what must come; what does not, fails its test after that."""
_MESSAGES = 0xFEE0_0000
_TABLE_BAR = 2
_STEP = 50
"""Cycles that pass at a look."""


@dataclass(frozen=True)
class Store:
    """The host's to a register."""

    offset: int
    value: int
    modes: tuple[PushMode, ...]
    """Of all lanes just before."""
    bar: int = 0


class _Memory(dict[int, int]):
    """Dwords by bus address. Those of lane ports lie in this process, where other threads see them come in order."""

    def map(self, address: int, size: int, bus_address: int) -> None:
        self._bus = range(bus_address, bus_address + size)
        self._words = (ctypes.c_uint32 * (size // 4)).from_address(address)

    def get(self, address: int, default: int = 0) -> int:  # type: ignore[override]
        return self._words[(address - self._bus.start) // 4] if address in self._bus else super().get(address, default)

    def __setitem__(self, address: int, word: int) -> None:
        if address in self._bus:
            self._words[(address - self._bus.start) // 4] = word
        else:
            super().__setitem__(address, word)


class PushBoard(Board):
    """`Registers` and `Master` of a board that was just reset; both its groups have a model.

    Safe from several threads. The clock stands still between accesses, so a test that waits for the board steps it.

    Attributes
    ----------
    stores : list of Store
        What the host wrote to registers.
    pushed : list of Packet
        What the board wrote to lane ports.
    loses_store : callable
        Whether a write of the host's is lost on its way.
    before_store : callable
        Called before each of them.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.closed = False
        self.stores: list[Store] = []
        self.pushed: list[Packet] = []
        self.loses_store: Callable[[Store], bool] = lambda store: False
        self.before_store: Callable[[Store], None] = lambda store: None
        super().__init__(Random(1))
        self.memory = self._memory = _Memory()
        self.link.master(False)
        self.stores.clear()
        self.access = call_back(self)

    # ------------------------------------------------------------------------------------------- registers

    def read64(self, offset: int, bar: int = 0) -> int:
        with self.lock:
            self.check()
            return super().read64(offset, bar)

    def write32(self, offset: int, value: int, bar: int = 0) -> None:
        self._store(Store(offset, value, self._modes(), bar), [value])

    def write64(self, offset: int, value: int, bar: int = 0) -> None:
        self._store(Store(offset, value, self._modes(), bar), [value & 0xFFFF_FFFF, value >> 32])

    def check(self) -> None:
        if self.closed:
            raise DeviceClosed("The board is closed; open another one.")

    def close(self) -> None:
        with self.lock:
            if not self.closed:
                self.closed = True
                self.link.master(False)
                for descriptor in self._descriptors:
                    os.close(descriptor)

    def _store(self, store: Store, words: list[int]) -> None:
        with self.lock:
            self.check()
            self.stores.append(store)
            self.before_store(store)
            if not self.loses_store(store):
                self._write(store.offset, words, store.bar)

    def _modes(self) -> tuple[PushMode, ...]:
        return tuple(self.mode(lane) for lane in range(PARAMS.lanes))

    # ------------------------------------------------------------------------------------------- mastering

    _descriptors: tuple[int, ...] = ()

    def map_memory(self, address: int, size: int, bus_address: int) -> None:
        with self.lock:
            self._memory.map(address, size, bus_address)
            self._bus_address = bus_address

    def open_interrupts(self, count: int) -> tuple[int, ...]:
        with self.lock:
            self._descriptors = tuple(os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK) for _ in range(count))
            for vector in range(count):
                self.write64(16 * vector, _MESSAGES, _TABLE_BAR)
                self.write64(16 * vector + 8, vector, _TABLE_BAR)
            self.link.native.set("cfg_interrupt_msix_enable", 1)
            return self._descriptors

    def start_mastering(self) -> None:
        with self.lock:
            self.link.master(True)

    def port(self, lane: int) -> int:
        return self._bus_address + SHAPE.port_stride * lane

    def lane_of(self, packet: Packet) -> int | None:
        lane = (packet.address - self._bus_address) // SHAPE.port_stride
        return lane if lane in range(PARAMS.lanes) else None

    def _take(self, packet: Packet) -> None:
        super()._take(packet)
        if packet.address == _MESSAGES:
            os.eventfd_write(self._descriptors[packet.words[0]], 1)
        elif packet.kind is RequestType.MEMORY_WRITE:
            self.pushed.append(packet)

    # ------------------------------------------------------------------------------------------- tests

    def wait(self, what: Callable[[], bool], why: str) -> None:
        """Let the board and other threads go on until something is so."""
        deadline = time.monotonic() + WAIT_S
        while not what():
            assert time.monotonic() < deadline, why
            with self.lock:
                self.run(_STEP)
            # The lock is not fair.
            time.sleep(0.0001)
