"""pause.png: a request of a higher tier takes a seat of a full house, as the timeline picture shows it."""

from __future__ import annotations

from pathlib import Path

from cuelight import regmap
from cuelight_rtl.params import Params
from cuelight_sim.workload import Arrival, Pace, Workload

from .timelines import draw_workload

__all__ = ["draw_pause"]

PARAMS = Params(slots=64, seats=16, lanes=1, stages=8)
SETTINGS = {regmap.GROUP + regmap.Group.SEATS: 2, regmap.GROUP + regmap.Group.ROWS: 64}
ARRIVALS = (
    Arrival(0.0, 3, 20, 24),
    Arrival(20_000.0, 3, 40, 16),
    Arrival(60_000.0, 0, 180, 5),
)
LAYERS = 4
TITLES = ("batch 1 (tier 3)", "batch 2 (tier 3)", "chat (tier 0)")


def draw_pause() -> Path:
    return draw_workload(Workload(PARAMS, ARRIVALS, SETTINGS, Pace(), LAYERS), TITLES, "pause.png")
