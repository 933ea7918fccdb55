"""A mixed crowd to compare policies with: chats, agents with long prompts, and a batch."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from cuelight import regmap
from cuelight_rtl.params import Params

from .workload import Arrival, Workload

__all__ = ["NAMES", "PARAMS", "SETTINGS", "arrivals", "simulate"]

PARAMS = Params(slots=256, seats=16, lanes=1, stages=8)
NAMES = ("chat", "agents", "", "batch")
"""Of the tiers."""
SETTINGS: dict[str, dict[int, int]] = {
    "as after reset": {},
    "batch keeps 4 seats": {regmap.TIER + 3 * regmap.TIER_STRIDE + regmap.Tier.MIN_SEATS: 4},
    "batch keeps 4 seats, 64 rows": {
        regmap.TIER + 3 * regmap.TIER_STRIDE + regmap.Tier.MIN_SEATS: 4,
        regmap.TIER + 3 * regmap.TIER_STRIDE + regmap.Tier.MIN_ROWS: 64,
    },
    "ROWS 64": {regmap.GROUP + regmap.Group.ROWS: 64},
}


def arrivals(seed: int = 1) -> list[Arrival]:
    """Chats (tier 0) all along, agents (1) with long prompts, and a batch (3) that is there from the start."""
    random = Random(seed)
    batch = [Arrival(0.0, 3, random.randrange(100, 400), random.randrange(60, 120)) for _ in range(40)]
    chats = [
        Arrival(random.uniform(0, 12e6), 0, random.randrange(20, 200), random.randrange(20, 80)) for _ in range(100)
    ]
    agents = [
        Arrival(random.uniform(0, 12e6), 1, random.randrange(1000, 6000), random.randrange(20, 60)) for _ in range(50)
    ]
    return sorted([*batch, *chats, *agents], key=lambda arrival: arrival.at_us)


def simulate(settings: Mapping[int, int]) -> Workload:
    """Run the arrivals under these settings."""
    workload = Workload(PARAMS, arrivals(), settings)
    workload.run()
    return workload
