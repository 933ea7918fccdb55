"""Sizes that proofs run at."""

from __future__ import annotations

from dataclasses import dataclass

from cuelight_rtl.params import Params

__all__ = ["SmallParams"]


@dataclass(frozen=True)
class SmallParams(Params):
    """Sizes below those of a device.

    A proof goes through every state, so what a room does with thousands of slots it shows with a few: rooms use their
    sizes as widths and depths only.
    """

    slots: int = 8
    seats: int = 4
    lanes: int = 1
    stages: int = 8

    def __post_init__(self) -> None:
        """Takes any size."""

    @property
    def entries(self) -> int:
        """Few enough for a pass to be full soon."""
        return 2
