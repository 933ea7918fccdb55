"""Registers of the real RTL and nothing else: no thread steps it, and nobody but its host serves its lanes."""

from __future__ import annotations

import threading

from cuelight.errors import DeviceClosed
from cuelight.transports.registers import call_back
from cuelight_rtl.model import Model
from cuelight_rtl.params import Params

__all__ = ["ModelRegisters"]

CYCLES_PER_ACCESS = 40
"""How far the device's clock goes on while the host turns from one access to the next."""


class ModelRegisters:
    """A device that was just reset.

    Attributes
    ----------
    model : Model
        The RTL.
    """

    def __init__(self, *, lanes: int = 2, slots: int = 64, seats: int = 16, nonce: int = 1) -> None:
        self.model = Model(Params(slots=slots, seats=seats, lanes=lanes), nonce=nonce)
        self.lock = threading.Lock()
        self.closed = False
        self._failure: Exception | None = None
        self.access = call_back(self)
        self.model.run_until_idle()

    def read32(self, offset: int) -> int:
        return self._read(offset, 4)

    def read64(self, offset: int) -> int:
        return self._read(offset, 8)

    def write32(self, offset: int, value: int) -> None:
        self._write(offset, value, 4)

    def write64(self, offset: int, value: int) -> None:
        self._write(offset, value, 8)

    def check(self) -> None:
        if self.closed:
            raise DeviceClosed("The model is closed; open another one.")
        if self._failure:
            raise self._failure

    def lose(self, error: Exception) -> None:
        """Let nothing get through any more."""
        self._failure = error

    def close(self) -> None:
        self.closed = True

    def _read(self, offset: int, width: int) -> int:
        with self.lock:
            self.check()
            value = self.model.read(offset, width)
            self._go_on()
            return value

    def _write(self, offset: int, value: int, width: int) -> None:
        with self.lock:
            self.check()
            self.model.write(offset, value, width)
            self._go_on()

    def _go_on(self) -> None:
        self.model.step(CYCLES_PER_ACCESS)
        self.model.commits.clear()
