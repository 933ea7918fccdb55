"""The PCI Express capability: link, payload sizes, completion timeout (7.5.3)."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Self

from cuelight.pci.config import CapabilityId, ConfigSpace

__all__ = ["SPEEDS_GTS", "TIMEOUT_RANGES", "TIMEOUT_VALUES", "Aspm", "Express", "Port"]

SPEEDS_GTS = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0}
"""GT/s of a lane by its code, which is the generation (7.5.3.6, 7.5.3.18)."""

TIMEOUT_VALUES = {
    0b0000: (50e-6, 50e-3),
    0b0001: (50e-6, 100e-6),
    0b0010: (1e-3, 10e-3),
    0b0101: (16e-3, 55e-3),
    0b0110: (65e-3, 210e-3),
    0b1001: (260e-3, 900e-3),
    0b1010: (1.0, 3.5),
    0b1101: (4.0, 13.0),
    0b1110: (17.0, 64.0),
}
"""Shortest and longest time in seconds by Completion Timeout Value (7.5.3.16); the first is the default."""

TIMEOUT_RANGES = {0: "A", 1: "B", 2: "C", 3: "D"}
"""Names by bit of Completion Timeout Ranges Supported: 50 µs–10 ms, –250 ms, –4 s, –64 s (7.5.3.15)."""


class Port(enum.IntEnum):
    """Device/Port Type (7.5.3.2)."""

    ENDPOINT = 0
    LEGACY_ENDPOINT = 1
    ROOT = 4
    UPSTREAM = 5
    DOWNSTREAM = 6
    EXPRESS_TO_PCI = 7
    PCI_TO_EXPRESS = 8
    INTEGRATED_ENDPOINT = 9
    EVENT_COLLECTOR = 10


class Aspm(enum.IntFlag):
    """Link states that ASPM enters by itself (7.5.3.6, 7.5.3.7)."""

    L0S = 1 << 0
    L1 = 1 << 1


@dataclass(frozen=True, slots=True)
class Express:
    """The capability's registers."""

    offset: int
    version: int
    port: int
    """One of `Port`, or a code that does not exist."""
    device_capabilities: int
    device_control: int
    device_status: int
    link_capabilities: int
    link_control: int
    link_status: int
    slot: bool
    """Slot registers exist (7.5.3.2)."""
    slot_status: int
    device_capabilities_2: int
    device_control_2: int
    link_capabilities_2: int
    link_control_2: int

    @classmethod
    def of(cls, config: ConfigSpace) -> Self | None:
        """Decode; None where the function has no such capability, or it was not read whole."""
        offset = config.capabilities.find(CapabilityId.EXPRESS)
        if offset is None or not config.covers(offset, 0x14):
            return None
        flags = config.read(offset + 0x02, 2)
        # Version 1 ends before Device Capabilities 2; what stands there belongs to others.
        second = flags & 0xF >= 2 and config.covers(offset, 0x34)
        slot = bool(flags & 1 << 8) and config.covers(offset, 0x1C)
        return cls(
            offset,
            flags & 0xF,
            flags >> 4 & 0xF,
            config.read(offset + 0x04, 4),
            config.read(offset + 0x08, 2),
            config.read(offset + 0x0A, 2),
            config.read(offset + 0x0C, 4),
            config.read(offset + 0x10, 2),
            config.read(offset + 0x12, 2),
            slot,
            config.read(offset + 0x1A, 2) if slot else 0,
            config.read(offset + 0x24, 4) if second else 0,
            config.read(offset + 0x28, 2) if second else 0,
            config.read(offset + 0x2C, 4) if second else 0,
            config.read(offset + 0x30, 2) if second else 0,
        )

    @property
    def has_link(self) -> bool:
        """Not integrated in the root complex, where Link registers are reserved."""
        return self.port not in (Port.INTEGRATED_ENDPOINT, Port.EVENT_COLLECTOR)

    @property
    def payload_most(self) -> int:
        """Max_Payload_Size Supported, bytes (7.5.3.3)."""
        return 128 << (self.device_capabilities & 0x7)

    @property
    def payload(self) -> int:
        """Max_Payload_Size that is set, bytes (7.5.3.4)."""
        return 128 << (self.device_control >> 5 & 0x7)

    @property
    def read_request(self) -> int:
        """Max_Read_Request_Size, bytes (7.5.3.4)."""
        return 128 << (self.device_control >> 12 & 0x7)

    @property
    def relaxed_ordering(self) -> bool:
        """The function may set the attribute (7.5.3.4)."""
        return bool(self.device_control & 1 << 4)

    @property
    def function_reset(self) -> bool:
        """Function-level reset can be asked for (7.5.3.3)."""
        return bool(self.device_capabilities & 1 << 28)

    @property
    def speed_most_gts(self) -> float | None:
        """GT/s of a lane at most; None for a code that does not exist (7.5.3.6)."""
        return SPEEDS_GTS.get(self.link_capabilities & 0xF)

    @property
    def width_most(self) -> int:
        """Lanes at most (7.5.3.6)."""
        return self.link_capabilities >> 4 & 0x3F

    @property
    def speed_gts(self) -> float | None:
        """GT/s of a lane now; None for a code that does not exist (7.5.3.8)."""
        return SPEEDS_GTS.get(self.link_status & 0xF)

    @property
    def width(self) -> int:
        """Lanes now; 0 while the link is down (7.5.3.8)."""
        return self.link_status >> 4 & 0x3F

    @property
    def training(self) -> bool:
        """The link is being trained; said by downstream ports only (7.5.3.8)."""
        return bool(self.link_status & 1 << 11)

    @property
    def down(self) -> bool:
        """The port tells whether its link is up, and it is not (7.5.3.6, 7.5.3.8)."""
        return bool(self.link_capabilities & 1 << 20) and not self.link_status & 1 << 13

    @property
    def disabled(self) -> bool:
        """Software has disabled the link (7.5.3.7)."""
        return bool(self.link_control & 1 << 4)

    @property
    def occupied(self) -> bool:
        """The slot has a card in it, as far as it can tell (7.5.3.11)."""
        return self.slot and bool(self.slot_status & 1 << 6)

    @property
    def target_speed_gts(self) -> float | None:
        """GT/s that software allows; None where that is not said (7.5.3.19)."""
        return SPEEDS_GTS.get(self.link_control_2 & 0xF)

    @property
    def speed_fixed(self) -> bool:
        """Hardware must not change the speed by itself (7.5.3.19)."""
        return bool(self.link_control_2 & 1 << 5)

    @property
    def aspm_possible(self) -> Aspm:
        """States the port knows (7.5.3.6)."""
        return Aspm(self.link_capabilities >> 10 & 0b11)

    @property
    def aspm(self) -> Aspm:
        """States that are enabled (7.5.3.7)."""
        return Aspm(self.link_control & 0b11)

    @property
    def clock_stops(self) -> bool:
        """The reference clock may stop in L1 (7.5.3.7)."""
        return bool(self.link_control & 1 << 8)

    @property
    def timeout_ranges(self) -> str:
        """Letters of the ranges that can be set; empty where the default is all there is (7.5.3.15)."""
        return "".join(name for bit, name in TIMEOUT_RANGES.items() if self.device_capabilities_2 >> bit & 1)

    @property
    def timeout_can_be_disabled(self) -> bool:
        """7.5.3.15."""
        return bool(self.device_capabilities_2 & 1 << 4)

    @property
    def timeout_disabled(self) -> bool:
        """The function waits for its completions forever (7.5.3.16)."""
        return bool(self.device_control_2 & 1 << 4)

    @property
    def timeout_s(self) -> tuple[float, float] | None:
        """Shortest and longest time it waits, seconds; None for a value that is reserved (7.5.3.16)."""
        return TIMEOUT_VALUES.get(self.device_control_2 & 0xF)
