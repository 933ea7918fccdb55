"""What a latency class is promised (docs/device.md §5)."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TIERS", "Tier"]

TIERS = 4


@dataclass(slots=True)
class Tier:
    """Settings of a tier, the same in every group."""

    min_seats: int = 0
    min_rows: int = 0
    kv_floor: int = 0
    seat_floor: int = 0
