"""MSI-X (7.7.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from cuelight.pci.config import CapabilityId, ConfigSpace

__all__ = ["MsiX"]


@dataclass(frozen=True, slots=True)
class MsiX:
    """Vector table and pending bits, and whether they are used."""

    offset: int
    vectors: int
    enabled: bool
    masked: bool
    """All vectors are."""
    table_bar: int
    table_offset: int
    pending_bar: int
    pending_offset: int

    @classmethod
    def of(cls, config: ConfigSpace) -> Self | None:
        """Decode; None where the function has no such capability, or it was not read whole."""
        offset = config.capabilities.find(CapabilityId.MSIX)
        if offset is None or not config.covers(offset, 12):
            return None
        control, table, pending = (config.read(offset + at, width) for at, width in ((2, 2), (4, 4), (8, 4)))
        return cls(
            offset,
            (control & 0x7FF) + 1,
            bool(control & 1 << 15),
            bool(control & 1 << 14),
            table & 0x7,
            table & ~0x7,
            pending & 0x7,
            pending & ~0x7,
        )
