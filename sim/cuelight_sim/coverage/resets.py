"""GROUP_RESET, and the reset of the device (docs/device.md §5, §6)."""

from __future__ import annotations

from collections.abc import Iterable

from cuelight.regmap import CommitKind

from ..situations import SITUATIONS, situation
from ..steps import Event
from .family import Family

__all__ = ["Resets"]


class Resets(Family):
    """What a GROUP_RESET finds, and a reset of the whole device."""

    title = "resets"
    bins = (
        "of an empty group",
        "with requests queued",
        "with requests seated",
        "with requests parked without a seat, which stay",
        "with two passes alive",
        "with two dispatches outstanding on a lane",
        "with FINISHED words kept",
        "again, meanwhile",
        "of a pipeline",
        "beside the work of another group",
        "group ready, requests parked without a seat stay",
        *(f"of the device: {situation}" for situation in SITUATIONS),
    )

    def reset(self) -> Iterable[str]:
        for group in self.golden.groups:
            yield f"of the device: {situation(group)}"

    def before(self, event: Event) -> Iterable[str]:
        groups = self.golden.groups
        if event.kind == CommitKind.GROUP_READY and groups[event.lane].parked:
            yield "group ready, requests parked without a seat stay"
        if event.kind != CommitKind.GROUP_RESET:
            return
        group = groups[event.lane]
        if group.resetting:
            yield "again, meanwhile"
            return
        if group.empty:
            yield "of an empty group"
        if group.queued:
            yield "with requests queued"
        if group.seated:
            yield "with requests seated"
        if group.parked:
            yield "with requests parked without a seat, which stay"
        if len(group.alive) > 1:
            yield "with two passes alive"
        if any(len(lane.dispatches) > 1 for lane in group.lanes):
            yield "with two dispatches outstanding on a lane"
        if any(lane.outstanding is not None and lane.outstanding.kept for lane in group.lanes):
            yield "with FINISHED words kept"
        if group.pipeline:
            yield "of a pipeline"
        if any(other is not group and not other.empty for other in groups):
            yield "beside the work of another group"
