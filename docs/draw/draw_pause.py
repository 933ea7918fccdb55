"""pause.png: a request of a higher tier takes a seat of a full house, as the timeline picture shows it."""

from __future__ import annotations

from pathlib import Path

from cuelight import regmap
from cuelight.picture import draw_timeline
from cuelight.regmap import CommitKind
from cuelight.timeline import build_timeline
from cuelight.trace import Event
from cuelight_rtl.params import Params
from cuelight_sim.workload import STAGES, Arrival, Workload

from .style import PICTURES

__all__ = ["draw_pause"]

PARAMS = Params(slots=64, seats=16, lanes=1, stages=8)
SETTINGS = {regmap.GROUP + regmap.Group.SEATS: 2, regmap.GROUP + regmap.Group.ROWS: 64}
ARRIVALS = (
    Arrival(0.0, 3, 20, 24),
    Arrival(20_000.0, 3, 40, 16),
    Arrival(60_000.0, 0, 180, 5),
)
TITLES = ("batch 1 (tier 3)", "batch 2 (tier 3)", "chat (tier 0)")


def draw_pause() -> Path:
    workload = Workload(PARAMS, ARRIVALS, SETTINGS)
    workload.run()
    events = [
        Event(round(time_us * 1000), CommitKind(commit.kind), commit.lane, commit.id, commit.stage, commit.detail)
        for time_us, commit in workload.commits
    ]
    admitted = [event.id for event in events if event.kind == CommitKind.ADMIT]
    path = PICTURES / "pause.png"
    draw_timeline(build_timeline(events, STAGES), path, dict(zip(admitted, TITLES, strict=True)))
    return path
