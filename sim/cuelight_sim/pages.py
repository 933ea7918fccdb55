"""Producer pages: bytes on their way to a command, attributes, and the slot offered (docs/device.md §3)."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["ByteLatch", "ProducerPage"]


@dataclass(slots=True)
class ByteLatch:
    """Eight bytes that arrive in any order."""

    value: int = 0
    got: int = 0
    """One flag a byte."""

    def store(self, data: int, strobe: int) -> None:
        for byte in range(8):
            if strobe >> byte & 1:
                mask = 0xFF << 8 * byte
                self.value = self.value & ~mask | data & mask
        self.got |= strobe

    @property
    def whole(self) -> bool:
        return self.got == 0xFF

    @property
    def partial(self) -> bool:
        return self.got not in (0, 0xFF)

    def clear(self) -> None:
        self.got = 0


@dataclass(slots=True)
class ProducerPage:
    """State of one page."""

    command: ByteLatch = field(default_factory=ByteLatch)
    attributes: ByteLatch = field(default_factory=ByteLatch)
    offer: int | None = None
    """Slot offered to the page's next request."""
    bare_since: int = 0
    """Cycle of the commit since which the page could have an offer and has none."""

    def write_attributes(self, data: int, strobe: int) -> None:
        self.command.clear()
        if self.attributes.whole:
            self.attributes.clear()
        self.attributes.store(data, strobe)
