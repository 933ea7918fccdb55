"""What every way to a device offers."""

from __future__ import annotations

from typing import Protocol

from cuelight.segment import Segment

__all__ = ["Transport"]


class Transport(Protocol):
    """Registers of one device, and the memory its host and lanes share. Safe from several threads.

    Offsets are those of BAR0, aligned to the width. Every method raises `DeviceClosed` after `close`,
    `TransportError` where the way to the device failed and `DeviceLost` where the device no longer answers.
    """

    @property
    def segment(self) -> Segment:
        """Memory shared by host and lanes."""

    def read32(self, offset: int) -> int:
        """Read a 32-bit register."""

    def read64(self, offset: int) -> int:
        """Read a 64-bit register in one transaction."""

    def write32(self, offset: int, value: int) -> None:
        """Write a 32-bit register; its effect is complete on return."""

    def write64(self, offset: int, value: int) -> None:
        """Write a 64-bit register in one transaction; its effect is complete on return."""

    def wait(self, bell: int, timeout_s: float) -> int:
        """Wait until the host bell differs from `bell`, and return what it reads then.

        The bell rings after tokens, retirements and rejects. After `timeout_s` seconds the same value comes back.
        """

    def drain_trace(self) -> list[tuple[int, int, int, int, int, int]]:
        """Take the events traced so far: (time in ns, kind, lane, stage, id, detail), oldest first."""

    def close(self) -> None:
        """Give the device back; whoever waits is woken. A second call does nothing."""
