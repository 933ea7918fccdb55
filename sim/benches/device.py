"""The simulated device for code that blocks, such as the random actors of `cuelight_sim`."""

from __future__ import annotations

from typing import Protocol

from cocotb.task import resume

from cuelight_rtl.model import Commit

from .bus import CommitMonitor

__all__ = ["BlockingDevice", "Master"]


class Master(Protocol):
    """Reads and writes a device's registers, eight bytes at a time."""

    @property
    def accepted_at(self) -> int:
        """Cycle in which the device accepted the latest transaction."""

    async def write(self, offset: int, data: int, strobe: int = 0xFF) -> None:
        """Write the strobed bytes of ``data`` to the eight bytes at ``offset``, a multiple of 8."""

    async def read(self, offset: int) -> int:
        """Read the eight bytes at ``offset``, a multiple of 8."""

    async def wait(self, cycles: int) -> None:
        """Let cycles pass."""

    async def until_ready(self) -> None:
        """Wait until the next transaction would be accepted."""

    async def until_idle(self) -> None:
        """Wait until nothing will change without a request."""


class BlockingDevice:
    """What lockstep needs of a device; its methods can be called from threads that `cocotb.bridge` started.

    Parameters
    ----------
    bus
        Master of the device's bus.
    monitor
        Collects the device's commits.
    """

    def __init__(self, bus: Master, monitor: CommitMonitor) -> None:
        self._bus = bus
        self._monitor = monitor

    @property
    def commits(self) -> list[Commit]:
        """Commits that nobody has looked at yet."""
        return self._monitor.commits

    @property
    def accepted_at(self) -> int:
        """Cycle in which the latest transaction was accepted."""
        return self._bus.accepted_at

    def step(self, cycles: int) -> None:
        """Let cycles pass."""
        resume(self._bus.wait)(cycles)

    def write(self, offset: int, value: int, width: int = 4, strobe: int | None = None) -> None:
        """Write, and wait until the effect is complete."""

        async def write() -> None:
            shift = offset % 8
            strobes = (1 << width) - 1 << shift if strobe is None else strobe
            await self._bus.write(offset - shift, value << 8 * shift, strobes)
            await self._bus.until_ready()

        resume(write)()

    def read(self, offset: int, width: int = 4) -> int:
        """Read 4 or 8 bytes."""
        return resume(self._bus.read)(offset & ~7) >> 8 * (offset % 8) & (1 << 8 * width) - 1

    def run_until_idle(self, limit: int = 100_000) -> None:
        """Wait until nothing will change without a request."""
        resume(self._bus.until_idle)()
