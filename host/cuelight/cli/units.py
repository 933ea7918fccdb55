"""Numbers as people read them."""

from __future__ import annotations

__all__ = ["size"]


def size(count: int) -> str:
    """Bytes with a decimal unit."""
    for power, unit in ((9, "GB"), (6, "MB"), (3, "kB")):
        if count >= 10**power:
            return f"{count / 10**power:.1f} {unit}"
    return f"{count} B"
