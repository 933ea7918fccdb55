"""BAR0 of a device, and nothing else: what a way to a device must offer where the host itself serves its lanes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, c_int, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from cuelight.errors import CuelightError, InvalidArgument, TransportError

__all__ = ["Access", "Read", "Registers", "Write", "call_back", "check_offset", "check_value"]

Read = CFUNCTYPE(c_int, c_void_p, c_uint32, c_uint32, POINTER(c_uint64))
"""Reads so many bytes, 4 or 8, at an offset; 0 if it could."""
Write = CFUNCTYPE(c_int, c_void_p, c_uint32, c_uint32, c_uint64)
_FAILED = -9


class Registers(Protocol):
    """Registers of one device. Safe from several threads.

    Offsets are those of BAR0, aligned to the width. A read that gives all ones was confirmed (see `confirm_present`).
    Writes of one thread arrive in order, and before a read that begins later. Every method raises `DeviceClosed` after
    `close`, `TransportError` where the way to the device failed, `DeviceLost` where the device no longer answers or is
    not the one that was opened.
    """

    @property
    def access(self) -> Access:
        """The same for native code."""

    def read32(self, offset: int) -> int:
        """Read a 32-bit register."""

    def read64(self, offset: int) -> int:
        """Read a 64-bit register in one transaction."""

    def write32(self, offset: int, value: int) -> None:
        """Write a 32-bit register."""

    def write64(self, offset: int, value: int) -> None:
        """Write a 64-bit register in one transaction."""

    def check(self) -> None:
        """Look for what registers don't tell: whether this is still the device that was opened."""

    def close(self) -> None:
        """Give the device back. A second call does nothing."""


@dataclass(frozen=True, slots=True)
class Access:
    """Registers as functions for native code, which hold for as long as this is kept.

    Parameters
    ----------
    context : int or None
        First argument of both functions.
    read, write : function pointer
        Prototypes `Read` and `Write`; a status other than 0 is a failure.
    fail : callable
        Raises what a status means, in the thread that got it.
    """

    context: int | None
    read: Any
    write: Any
    fail: Callable[[int], NoReturn]


def call_back(registers: Registers) -> Access:
    """Access to registers that are read and written in Python; native code may call it from threads of Python only."""
    raised = threading.local()

    def attempt(act: Callable[[], object]) -> int:
        try:
            act()
        except Exception as error:
            raised.error = error
            return _FAILED
        return 0

    def read(_: object, offset: int, width: int, value: Any) -> int:
        def act() -> None:
            value[0] = registers.read64(offset) if width == 8 else registers.read32(offset)

        return attempt(act)

    def write(_: object, offset: int, width: int, value: int) -> int:
        return attempt(lambda: registers.write64(offset, value) if width == 8 else registers.write32(offset, value))

    def fail(status: int) -> NoReturn:
        error = raised.error
        if isinstance(error, CuelightError):
            raise error
        raise TransportError(f"The way to the device failed ({error!r}); open the device again and report this.")

    return Access(None, Read(read), Write(write), fail)


def check_offset(offset: int, width: int) -> None:
    """Refuse what is no offset of a register of `width` bytes."""
    if not 0 <= offset <= 0x10000 - width or offset % width:
        raise InvalidArgument(f"{offset:#x} is no offset of a {8 * width}-bit register; see docs/registers.md.")


def check_value(value: int, bits: int) -> None:
    """Refuse what does not fit a register of `bits` bits."""
    if not 0 <= value < 1 << bits:
        raise InvalidArgument(f"{value:#x} does not fit a {bits}-bit register.")
