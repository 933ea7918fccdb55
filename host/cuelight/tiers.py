"""Names of the latency tiers."""

from __future__ import annotations

__all__ = ["TIERS", "tier_name"]

TIERS = {"vip": 0, "standard": 1, "best-effort": 3}
"""Tier 2 has no name: it is between standard and best-effort."""


def tier_name(tier: int) -> str:
    """Name of a tier, or its number where it has none."""
    return next((name for name, number in TIERS.items() if number == tier), str(tier))
