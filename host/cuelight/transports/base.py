"""What every way to a device offers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from cuelight.errors import DeviceLost
from cuelight.regmap import IDENTITY, Identity
from cuelight.segment import Segment

__all__ = ["Transport", "confirm_present", "wait_for_bell"]

_LOOKS = 3
_SLICE_S = 1.0


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
        """Write a 32-bit register; whoever reads a register afterwards, in any thread, sees its effect."""

    def write64(self, offset: int, value: int) -> None:
        """Write a 64-bit register in one transaction; its effect is seen likewise."""

    def wait(self, bell: int, timeout_s: float) -> int:
        """Wait until the host bell differs from `bell`, and return what it reads then.

        The bell rings after tokens, retirements and rejects. After `timeout_s` seconds the same value comes back.
        """

    def moves(self, timeout_s: float) -> bool:
        """Whether the device, within `timeout_s` seconds, shows that it does its work and does not only answer.

        Nothing that is under way is disturbed.
        """

    def drain_trace(self) -> list[tuple[int, int, int, int, int, int]]:
        """Take the events traced so far: (time in ns, kind, lane, stage, id, detail), oldest first."""

    def close(self) -> None:
        """Give the device back; whoever waits is woken. A second call does nothing."""


def confirm_present(read32: Callable[[int], int]) -> None:
    """Tell a register that reads all ones from a device that is gone: its identity answers several times in a row.

    Every transport calls this after such a read, and reads again then.

    Raises
    ------
    DeviceLost
        It does not.
    """
    for _ in range(_LOOKS):
        if read32(IDENTITY + Identity.MAGIC) != Identity.MAGIC_RESET:
            raise DeviceLost("The device reads all ones; check that it is powered and programmed, then open it again.")


def wait_for_bell(segment: Segment, bell: int, timeout_s: float, check_open: Callable[[], None]) -> int:
    """As `Transport.wait`; `check_open` raises once the transport is closed."""
    deadline = time.monotonic() + timeout_s
    while True:
        left_s = max(0.0, deadline - time.monotonic())
        now = segment.wait_host(bell, min(left_s, _SLICE_S))
        check_open()
        if now != bell or not left_s:
            return now
