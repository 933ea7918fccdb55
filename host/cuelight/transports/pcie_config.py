"""Configuration space that can be written, and what is written there while a board masters the bus."""

from __future__ import annotations

import contextlib
import os
import time

from cuelight.errors import TransportError
from cuelight.pci.config import EXTENDED_SIZE, Command, ConfigSpace
from cuelight.pci.errors import ErrorReporting, Uncorrectable
from cuelight.pci.express import Express

__all__ = ["ConfigFile", "Mastering"]

_COMMAND = 0x04
_PENDING = 1 << 5
_QUIET_S = 0.1


class ConfigFile:
    """A function's configuration space in an open file: sysfs's `config`, or a region of a VFIO device.

    Parameters
    ----------
    descriptor : int
        The file, open for reading and writing.
    base : int
        Where the space begins in it.
    """

    def __init__(self, descriptor: int, base: int = 0) -> None:
        self._descriptor = descriptor
        self._base = base

    def read_all(self) -> ConfigSpace:
        """Read as much as there is, 4096 bytes at most."""
        return ConfigSpace(os.pread(self._descriptor, EXTENDED_SIZE, self._base))

    def read(self, offset: int, width: int) -> int:
        """Read one register of `width` bytes."""
        return int.from_bytes(os.pread(self._descriptor, width, self._base + offset), "little")

    def write(self, offset: int, width: int, value: int) -> None:
        """Write one register of `width` bytes, in one transaction."""
        os.pwrite(self._descriptor, value.to_bytes(width, "little"), self._base + offset)

    def change(self, offset: int, width: int, *, set_: int = 0, clear: int = 0) -> int:
        """Set and clear bits of a register; return what it was."""
        before = self.read(offset, width)
        self.write(offset, width, before & ~clear | set_)
        return before


class Mastering:
    """The board may write and read the host's memory, from now until `close`.

    Meanwhile a completion that does not come in time is the scheduler's own to handle (design: PUSH falls back to
    POLL), so it must not be reported as a fatal error, upon which systems reset the link or stop. The endpoint's mask
    of that error is put back at the end.

    Parameters
    ----------
    config : ConfigFile
        Of the board.
    name : str
        The device, for messages.

    Raises
    ------
    TransportError
        The board does not become bus master.
    """

    def __init__(self, config: ConfigFile, name: str) -> None:
        self._config = config
        seen = config.read_all()
        errors = ErrorReporting.of(seen)
        express = Express.of(seen)
        self._status = None if express is None else express.offset + 0x0A
        self._mask = None if errors is None else errors.offset + ErrorReporting.UNCORRECTABLE_MASK
        self._masked = errors is not None and bool(errors.mask & Uncorrectable.COMPLETION_TIMEOUT)
        if self._mask is not None:
            config.change(self._mask, 4, set_=Uncorrectable.COMPLETION_TIMEOUT)
        config.change(_COMMAND, 2, set_=Command.BUS_MASTER)
        if not config.read(_COMMAND, 2) & Command.BUS_MASTER:
            self.close()
            raise TransportError(f"{name} can't be made bus master; open it without PUSH.")

    def close(self) -> None:
        """Stop it, wait a moment for what it has under way, and put the mask back."""
        # A function that is gone masters nothing.
        with contextlib.suppress(OSError):
            self._config.change(_COMMAND, 2, clear=Command.BUS_MASTER)
            deadline = time.monotonic() + _QUIET_S
            while self._pending() and time.monotonic() < deadline:
                time.sleep(0.001)
            if self._mask is not None and not self._masked:
                self._config.change(self._mask, 4, clear=Uncorrectable.COMPLETION_TIMEOUT)

    def _pending(self) -> bool:
        if self._status is None:
            return False
        status = self._config.read(self._status, 2)
        # All ones is a function that is gone.
        return bool(status & _PENDING) and status != 0xFFFF
