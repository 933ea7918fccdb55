"""A function's configuration space: its header, and the two lists of capabilities."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

__all__ = [
    "CONVENTIONAL_SIZE",
    "EXTENDED_SIZE",
    "HEADER_SIZE",
    "Capability",
    "CapabilityId",
    "CapabilityList",
    "Command",
    "ConfigSpace",
    "ExtendedId",
    "MemoryBar",
]

HEADER_SIZE = 0x40
"""What a reader without privileges gets from Linux."""

CONVENTIONAL_SIZE = 0x100
"""Header and capabilities (7.2.1)."""

EXTENDED_SIZE = 0x1000
"""All that a PCI Express function has (7.2.2)."""


class CapabilityId(enum.IntEnum):
    """Capabilities in the first 256 bytes (PCI Code and ID Assignment Specification, section 2)."""

    POWER_MANAGEMENT = 0x01
    MSI = 0x05
    EXPRESS = 0x10
    MSIX = 0x11


class ExtendedId(enum.IntEnum):
    """Capabilities behind them (PCI Code and ID Assignment Specification, section 3)."""

    ERROR_REPORTING = 0x0001
    ACCESS_CONTROL = 0x000D
    RESIZABLE_BAR = 0x0015
    L1_SUBSTATES = 0x001E


class Command(enum.IntFlag):
    """Bits of the Command register (7.5.1.1.3)."""

    MEMORY = 1 << 1
    """The function answers to reads and writes of its BARs."""
    BUS_MASTER = 1 << 2
    """It may read and write memory, and send MSI-X."""
    INTX_DISABLE = 1 << 10


@dataclass(frozen=True, slots=True)
class Capability:
    """Where a capability stands."""

    id: int
    offset: int
    version: int = 0
    """Of extended capabilities; 0 for others."""


@dataclass(frozen=True, slots=True)
class CapabilityList:
    """A walk along a list."""

    found: tuple[Capability, ...]
    broken: str | None = None
    """Why the walk stopped before the list's end; None if it did not."""

    def find(self, id: int) -> int | None:
        """Offset of the first capability with this id."""
        return next((capability.offset for capability in self.found if capability.id == id), None)


@dataclass(frozen=True, slots=True)
class MemoryBar:
    """A base address register that maps memory (7.5.1.2.1)."""

    address: int
    wide: bool
    """64 bits: it takes the next register too."""
    prefetchable: bool


@dataclass(frozen=True)
class ConfigSpace:
    """Registers of one function, little endian (7.5.1).

    Any bytes will do: all ones from a function that is gone, the first 64 from a reader without privileges, garbage.

    Parameters
    ----------
    data : bytes
        From offset 0 on, up to 4096.
    """

    data: bytes

    def covers(self, offset: int, size: int) -> bool:
        """Whether these bytes were read."""
        return 0 <= offset <= len(self.data) - size

    def read(self, offset: int, width: int) -> int:
        """Read a register of `width` bytes; one that was not read is all ones, as on the bus."""
        if not self.covers(offset, width):
            return (1 << 8 * width) - 1
        return int.from_bytes(self.data[offset : offset + width], "little")

    @property
    def absent(self) -> bool:
        """No function answers: a vendor id of all ones does not exist (7.5.1.1.1)."""
        return self.vendor_id == 0xFFFF

    @property
    def truncated(self) -> bool:
        """Capabilities exist and were not read, because Linux shows them to root only."""
        return HEADER_SIZE <= len(self.data) < CONVENTIONAL_SIZE and not self.absent and bool(self.status & 1 << 4)

    @property
    def vendor_id(self) -> int:
        """7.5.1.1.1."""
        return self.read(0x00, 2)

    @property
    def device_id(self) -> int:
        """7.5.1.1.2."""
        return self.read(0x02, 2)

    @property
    def command(self) -> int:
        """Bits of `Command`."""
        return self.read(0x04, 2)

    @property
    def status(self) -> int:
        """7.5.1.1.4; bit 4: there is a list of capabilities."""
        return self.read(0x06, 2)

    @property
    def class_code(self) -> int:
        """24 bits: base class, sub-class, programming interface (7.5.1.1.6)."""
        return self.read(0x09, 2) | self.read(0x0B, 1) << 16

    @property
    def bridge(self) -> bool:
        """It has a type 1 header (7.5.1.1.9)."""
        return not self.absent and self.read(0x0E, 1) & 0x7F == 1

    @property
    def buses(self) -> tuple[int, int] | None:
        """Bus behind a bridge, and the last one below it (7.5.1.3.3, 7.5.1.3.4)."""
        return (self.read(0x19, 1), self.read(0x1A, 1)) if self.bridge else None

    def memory_bar(self, index: int) -> MemoryBar | None:
        """Read BAR `index`; None where it maps no memory, or is not there at all."""
        offset = 0x10 + 4 * index
        low = self.read(offset, 4)
        if self.absent or not 0 <= index < (2 if self.bridge else 6) or not self.covers(offset, 4) or low & 1:
            return None
        wide = low >> 1 & 0b11 == 0b10
        high = self.read(offset + 4, 4) if wide else 0
        return MemoryBar(low & ~0xF | high << 32, wide, bool(low & 1 << 3))

    @cached_property
    def capabilities(self) -> CapabilityList:
        """Capabilities in the first 256 bytes (7.5.1.1.11)."""
        if self.absent or not self.status & 1 << 4:
            return CapabilityList(())
        return self._walk(self.read(0x34, 1), HEADER_SIZE, self._capability)

    @cached_property
    def extended(self) -> CapabilityList:
        """Capabilities from offset 256 on (7.6.3)."""
        if self.absent or not self.covers(CONVENTIONAL_SIZE, 4) or not self.read(CONVENTIONAL_SIZE, 4):
            return CapabilityList(())
        return self._walk(CONVENTIONAL_SIZE, CONVENTIONAL_SIZE, self._extended_capability)

    def _walk(self, first: int, low: int, entry: Callable[[int], tuple[Capability, int]]) -> CapabilityList:
        found: dict[int, Capability] = {}
        broken = None
        # The two lowest bits of a pointer are reserved.
        offset = first & ~0b11
        while offset and broken is None:
            if offset in found:
                broken = f"it turns back to {offset:#x}"
            elif offset < low:
                broken = f"it points to {offset:#x}, where no capability can be"
            elif not self.covers(offset, 4):
                broken = f"it goes on at {offset:#x}, which can't be read"
            elif self.read(offset, 4) == 0xFFFF_FFFF:
                broken = f"its entry at {offset:#x} reads all ones"
            else:
                found[offset], following = entry(offset)
                offset = following & ~0b11
        return CapabilityList((*found.values(),), broken)

    def _capability(self, offset: int) -> tuple[Capability, int]:
        return Capability(self.read(offset, 1), offset), self.read(offset + 1, 1)

    def _extended_capability(self, offset: int) -> tuple[Capability, int]:
        head = self.read(offset, 4)
        return Capability(head & 0xFFFF, offset, head >> 16 & 0xF), head >> 20
