"""Sizes of a scheduler."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ENTRIES", "PAGES", "TIERS", "Params"]

TIERS = 4
PAGES = 8
ENTRIES = 16
"""Entries of a pass record: chunks and newly seated requests a scheduling decision can take in."""


def _log2(value: int) -> int:
    return value.bit_length() - 1


@dataclass(frozen=True)
class Params:
    """Sizes of a scheduler (docs/device.md §1).

    Parameters
    ----------
    slots
        Requests the device can hold: a power of two, 64 to 4096.
    seats
        Running set of a lane group: a power of two, 16 to 256.
    lanes
        Lanes, and lane groups, 1 to 8.
    stages
        Upper bound of STAGE_COUNT, 4 to 128.

    Raises
    ------
    ValueError
        A size is out of its range.
    """

    slots: int = 1024
    seats: int = 64
    lanes: int = 2
    stages: int = 128

    def __post_init__(self) -> None:
        for name, low, high, power in (
            ("slots", 64, 4096, True),
            ("seats", 16, 256, True),
            ("lanes", 1, 8, False),
            ("stages", 4, 128, False),
        ):
            value = getattr(self, name)
            if not low <= value <= high or (power and value & (value - 1)):
                kind = "a power of two" if power else "a number"
                raise ValueError(f"{name} must be {kind} from {low} to {high}, not {value}")

    @property
    def slot_bits(self) -> int:
        return _log2(self.slots)

    @property
    def seat_bits(self) -> int:
        return _log2(self.seats)

    @property
    def entries(self) -> int:
        """Entries of a pass."""
        return ENTRIES

    @property
    def default_rows(self) -> int:
        """Reset value of a group's row budget."""
        return max(256, self.seats + 16)

    @property
    def tag(self) -> str:
        """Short name for files, such as ``s1024-k64-l2-n128``."""
        return f"s{self.slots}-k{self.seats}-l{self.lanes}-n{self.stages}"
