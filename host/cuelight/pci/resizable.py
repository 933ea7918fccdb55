"""Resizable BARs (7.8.6)."""

from __future__ import annotations

from dataclasses import dataclass

from cuelight.pci.config import ConfigSpace, ExtendedId

__all__ = ["ResizableBar", "resizable_bars"]

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class ResizableBar:
    """A BAR that can have several sizes, in bytes."""

    bar: int
    size: int
    sizes: tuple[int, ...]
    """Those it can have, ascending."""


def resizable_bars(config: ConfigSpace) -> tuple[ResizableBar, ...]:
    """Decode; empty where the function has no such capability, or it was not read whole."""
    offset = config.extended.find(ExtendedId.RESIZABLE_BAR)
    if offset is None or not config.covers(offset, 12):
        return ()
    # The count stands in the first Control register only, and can be no more than there are BARs.
    count = min(6, config.read(offset + 8, 4) >> 5 & 0x7)
    found = []
    for at in range(offset + 4, offset + 4 + 8 * count, 8):
        if not config.covers(at, 8):
            break
        able, control = config.read(at, 4), config.read(at + 4, 4)
        # Sizes from 2^0 to 2^27 MiB stand in Capability, those up to 2^43 MiB in Control.
        bits = able >> 4 | control >> 16 << 28
        sizes = tuple(MIB << power for power in range(44) if bits >> power & 1)
        found.append(ResizableBar(control & 0x7, MIB << (control >> 8 & 0x3F), sizes))
    return tuple(found)
