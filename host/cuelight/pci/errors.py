"""Advanced Error Reporting (7.8.4)."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import ClassVar, Self

from cuelight.pci.config import ConfigSpace, ExtendedId

__all__ = ["Correctable", "ErrorReporting", "Uncorrectable"]


class Uncorrectable(enum.IntFlag):
    """Bits of Uncorrectable Error Status, Mask and Severity (7.8.4.2)."""

    DATA_LINK = 1 << 4
    SURPRISE_DOWN = 1 << 5
    POISONED = 1 << 12
    FLOW_CONTROL = 1 << 13
    COMPLETION_TIMEOUT = 1 << 14
    COMPLETER_ABORT = 1 << 15
    UNEXPECTED_COMPLETION = 1 << 16
    RECEIVER_OVERFLOW = 1 << 17
    MALFORMED = 1 << 18
    ECRC = 1 << 19
    UNSUPPORTED_REQUEST = 1 << 20
    ACCESS_CONTROL = 1 << 21
    INTERNAL = 1 << 22
    MULTICAST_BLOCKED = 1 << 23
    ATOMIC_BLOCKED = 1 << 24
    PREFIX_BLOCKED = 1 << 25
    POISON_BLOCKED = 1 << 26


class Correctable(enum.IntFlag):
    """Bits of Correctable Error Status and Mask (7.8.4.5)."""

    RECEIVER = 1 << 0
    BAD_TLP = 1 << 6
    BAD_DLLP = 1 << 7
    REPLAY_ROLLOVER = 1 << 8
    REPLAY_TIMEOUT = 1 << 12
    ADVISORY = 1 << 13
    INTERNAL = 1 << 14
    LOG_OVERFLOW = 1 << 15


@dataclass(frozen=True, slots=True)
class ErrorReporting:
    """The capability's registers; bits that do not exist are left out."""

    UNCORRECTABLE_MASK: ClassVar[int] = 0x08
    """Offset of that register in the capability."""

    offset: int
    status: Uncorrectable
    mask: Uncorrectable
    fatal: Uncorrectable
    """Severity: errors that are reported as fatal."""
    correctable_status: Correctable
    correctable_mask: Correctable

    @classmethod
    def of(cls, config: ConfigSpace) -> Self | None:
        """Decode; None where the function has no such capability, or it was not read whole."""
        offset = config.extended.find(ExtendedId.ERROR_REPORTING)
        if offset is None or not config.covers(offset, 0x18):
            return None
        known, known_correctable = sum(Uncorrectable), sum(Correctable)
        status, mask, fatal = (Uncorrectable(config.read(offset + at, 4) & known) for at in (0x04, 0x08, 0x0C))
        correctable = [Correctable(config.read(offset + at, 4) & known_correctable) for at in (0x10, 0x14)]
        return cls(offset, status, mask, fatal, *correctable)
