"""Pictures of a workload as ``cuelight trace --png`` draws one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cuelight.picture import draw_timeline
from cuelight.regmap import CommitKind
from cuelight.timeline import build_timeline
from cuelight.trace import Event
from cuelight_sim.workload import Workload

from .style import PICTURES

__all__ = ["draw_workload"]


def draw_workload(workload: Workload, titles: Sequence[str], name: str) -> Path:
    """Runs the workload and draws it; ``titles`` are those of its arrivals."""
    workload.run()
    events = [
        Event(round(time_us * 1000), CommitKind(commit.kind), commit.lane, commit.id, commit.stage, commit.detail)
        for time_us, commit in workload.commits
    ]
    admitted = [event.id for event in events if event.kind == CommitKind.ADMIT]
    path = PICTURES / name
    draw_timeline(build_timeline(events, workload.stage_count), path, dict(zip(admitted, titles, strict=True)))
    return path
