"""Access Control Services: what a port does with requests from one of its peers to another (7.7.8)."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Self

from cuelight.pci.config import ConfigSpace, ExtendedId

__all__ = ["Access", "AccessControl"]


class Access(enum.IntFlag):
    """Bits of ACS Capability and ACS Control (7.7.8.2, 7.7.8.3)."""

    SOURCE_VALIDATION = 1 << 0
    TRANSLATION_BLOCKING = 1 << 1
    REQUEST_REDIRECT = 1 << 2
    COMPLETION_REDIRECT = 1 << 3
    UPSTREAM_FORWARDING = 1 << 4
    EGRESS_CONTROL = 1 << 5
    DIRECT_TRANSLATED = 1 << 6


@dataclass(frozen=True, slots=True)
class AccessControl:
    """What the port can do, and what of it is enabled."""

    offset: int
    possible: Access
    enabled: Access

    @classmethod
    def of(cls, config: ConfigSpace) -> Self | None:
        """Decode; None where the function has no such capability, or it was not read whole."""
        offset = config.extended.find(ExtendedId.ACCESS_CONTROL)
        if offset is None or not config.covers(offset, 8):
            return None
        possible, enabled = (Access(config.read(offset + at, 2) & 0x7F) for at in (4, 6))
        return cls(offset, possible, enabled)

    @property
    def redirects(self) -> bool:
        """Requests or completions between peers go up to the root complex."""
        return bool(self.enabled & (Access.REQUEST_REDIRECT | Access.COMPLETION_REDIRECT))
