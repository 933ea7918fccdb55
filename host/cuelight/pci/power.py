"""Power states of a function and of its link (7.5.2, 7.8.3)."""

from __future__ import annotations

import enum

from cuelight.pci.config import CapabilityId, ConfigSpace, ExtendedId

__all__ = ["L1Substates", "enabled_substates", "power_state"]


class L1Substates(enum.IntFlag):
    """States below L1 that are enabled (L1 PM Substates Control 1, 7.8.3.3)."""

    PCI_PM_L1_2 = 1 << 0
    PCI_PM_L1_1 = 1 << 1
    ASPM_L1_2 = 1 << 2
    ASPM_L1_1 = 1 << 3


def power_state(config: ConfigSpace) -> int | None:
    """Read n of Dn, 0 to 3 (7.5.2.2); None where that is not said. A function in D3cold says nothing at all."""
    offset = config.capabilities.find(CapabilityId.POWER_MANAGEMENT)
    if offset is None or not config.covers(offset, 6):
        return None
    return config.read(offset + 4, 2) & 0b11


def enabled_substates(config: ConfigSpace) -> L1Substates:
    """Read which are enabled; none where the function has none."""
    offset = config.extended.find(ExtendedId.L1_SUBSTATES)
    if offset is None or not config.covers(offset, 12):
        return L1Substates(0)
    return L1Substates(config.read(offset + 8, 4) & 0xF)
