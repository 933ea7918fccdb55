"""second-pass.png: a VIP's prompt is read between the stages of a pass under way, as the timeline picture shows it."""

from __future__ import annotations

from pathlib import Path

from cuelight_rtl.params import Params
from cuelight_sim.workload import Arrival, Pace, Workload

from .timelines import draw_workload

__all__ = ["draw_second_pass"]

PARAMS = Params(slots=64, seats=16, lanes=1, stages=8)
PACE = Pace(base_us=5000.0, row_us=100.0)
LAYERS = 5
ARRIVALS = (
    Arrival(0.0, 3, 30, 7),
    Arrival(0.0, 3, 30, 6),
    Arrival(18_000.0, 3, 100, 3),
    Arrival(28_000.0, 0, 60, 3),
)
TITLES = ("batch 1 (tier 3)", "batch 2 (tier 3)", "batch 3 (tier 3)", "VIP (tier 0)")


def draw_second_pass() -> Path:
    return draw_workload(Workload(PARAMS, ARRIVALS, {}, PACE, LAYERS), TITLES, "second-pass.png")
