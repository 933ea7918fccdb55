"""BAR0 of a board, mapped into this process."""

from __future__ import annotations

import contextlib
import ctypes
import os
import weakref
from collections.abc import Callable
from typing import NoReturn

from cuelight.errors import DeviceClosed, DeviceLost, TransportError
from cuelight.native.bar import bar_library
from cuelight.transports.registers import Access

__all__ = ["BAR_SIZE", "Bar"]

BAR_SIZE = 0x10000
"""Bytes of BAR0."""

_CLOSED = -1
_LOST = {
    -2: "it was removed, or its memory decode was switched off",
    -3: "it reads all ones, so its link is down or it lost its configuration",
    -4: "it was reset",
}


class Bar:
    """`Registers` in a mapping: one load reads one, one store writes one.

    What becomes of the device is latched: once it was lost, this mapping reaches it no more, whatever it answers later.

    Parameters
    ----------
    descriptor : int
        Open file that can be mapped; may be closed afterwards.
    offset : int
        Where BAR0 begins in it.
    name : str
        The device, for messages.
    still_there : callable
        Raises if the device that was opened is not there any more.
    held : ExitStack, optional
        Undone at `close`, after the mapping is gone.

    Raises
    ------
    TransportError
        It can't be mapped.
    """

    def __init__(
        self,
        descriptor: int,
        offset: int = 0,
        *,
        name: str,
        still_there: Callable[[], None] = lambda: None,
        held: contextlib.ExitStack | None = None,
    ) -> None:
        self._library = bar_library()
        self._name = name
        self._still_there = still_there
        self._held = held or contextlib.ExitStack()
        ctypes.set_errno(0)
        handle = self._library.cuelight_bar_open(descriptor, offset, BAR_SIZE)
        if not handle:
            reason = os.strerror(ctypes.get_errno())
            raise TransportError(f"BAR0 of {name} can't be mapped ({reason}); rescan the bus, then open it again.")
        self._handle = handle
        self.access = Access(handle, self._library.cuelight_bar_read, self._library.cuelight_bar_write, self._fail)
        # Not in `close`: a call of another thread may still be in there.
        weakref.finalize(self, self._library.cuelight_bar_free, handle)

    def read32(self, offset: int) -> int:
        """Read a 32-bit register."""
        return self._read(offset, 4)

    def read64(self, offset: int) -> int:
        """Read a 64-bit register in one transaction."""
        return self._read(offset, 8)

    def write32(self, offset: int, value: int) -> None:
        """Write a 32-bit register."""
        self._write(offset, 4, value)

    def write64(self, offset: int, value: int) -> None:
        """Write a 64-bit register in one transaction."""
        self._write(offset, 8, value)

    def check(self) -> None:
        """Raise if the device that was opened is not there any more."""
        self._still_there()

    def close(self) -> None:
        """Reach the device no more; a second call does nothing."""
        self._library.cuelight_bar_close(self._handle)
        self._held.close()

    def _read(self, offset: int, width: int) -> int:
        value = ctypes.c_uint64()
        if status := self._library.cuelight_bar_read(self._handle, offset, width, ctypes.byref(value)):
            self._fail(status)
        return value.value

    def _write(self, offset: int, width: int, value: int) -> None:
        if status := self._library.cuelight_bar_write(self._handle, offset, width, value):
            self._fail(status)

    def _fail(self, status: int) -> NoReturn:
        if status == _CLOSED:
            raise DeviceClosed(f"{self._name} is closed; open the device again.")
        raise DeviceLost(f"{self._name} is lost, as {_LOST[status]}; check it with lspci, then open it again.")
