"""Pipelines of two, four and eight lanes (docs/device.md §1, §6, §7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cuelight.regmap import CommitKind

from ..golden import Golden
from ..group import Group
from ..steps import Event
from .family import Family

__all__ = ["Pipelines"]

_LENGTHS = (2, 4, 8)
_EACH = (
    "two passes alive",
    "all its passes alive",
    "a pass formed while all others are alive",
    "decode rows in each pass",
    "pass on a single lane",
    "pass on all lanes",
    "goes on to the next lane with binding",
    "goes on to the next lane without binding",
    "lane stays with a pass while another waits",
    "lane turns to another pass",
    "depth 1",
    "depth 2",
    "a dispatch on every lane",
    "loop points due at once",
    "reset with several passes",
    "seated beside a pass",
    "paused beside a pass",
    "parked beside a pass",
    "cancelled beside a pass",
)
_LONGER = ("lane turns to another pass while one more waits", "a lane between has no stage")
_BESIDE = {
    CommitKind.SEAT: "seated beside a pass",
    CommitKind.PAUSE: "paused beside a pass",
    CommitKind.PARKED: "parked beside a pass",
    CommitKind.RETIRE: "cancelled beside a pass",
}


class Pipelines(Family):
    """What passes of a pipeline do, for each length that it can have."""

    title = "pipelines"
    bins = (
        *(f"{length} lanes: {what}" for length in _LENGTHS for what in _EACH),
        *(f"{length} lanes: {what}" for length in _LENGTHS[1:] for what in _LONGER),
        "a lane that two PIPELINE registers claim",
        "two pipelines at work",
        "a pipeline beside a group of one lane",
    )

    def __init__(self, golden: Golden) -> None:
        super().__init__(golden)
        self._decoded: dict[int, set[int]] = {}
        """For each group, passes that had decode rows."""

    def before(self, event: Event) -> Iterable[str]:
        group = self._group(event)
        if group is None or not group.pipeline:
            return
        name = f"{len(group.lanes)} lanes: "
        match event.kind:
            case CommitKind.GROUP_RESET if len(group.alive) > 1:
                yield name + "reset with several passes"
            case CommitKind.PLAN if len(group.alive) - (group.loop is not None) == len(group.lanes) - 1:
                yield name + "a pass formed while all others are alive"
            case kind if kind in _BESIDE and group.alive and group.loop is None and not group.resetting:
                if kind != CommitKind.RETIRE or event.detail < 1 << 8:
                    yield name + _BESIDE[kind]
            case _:
                pass

    def after(self, event: Event) -> Iterable[str]:
        group = self._group(event)
        if group is None:
            return
        if event.kind == CommitKind.DISPATCH:
            yield from self._several()
        if not group.pipeline:
            return
        name = f"{len(group.lanes)} lanes: "
        match event.kind:
            case CommitKind.FORM:
                yield from (name + what for what in self._formed(event, group))
            case CommitKind.DISPATCH:
                yield from (name + what for what in self._dispatched(event, group))
            case CommitKind.LOOP_POINT:
                assert group.loop is not None
                if any(run.due for run in group.alive.values() if run is not group.loop.run):
                    yield name + "loop points due at once"
            case _:
                pass

    def _group(self, event: Event) -> Group | None:
        if event.kind in (CommitKind.DISPATCH, CommitKind.COMPLETE):
            return self.golden.group_of(self.golden.lanes[event.lane])
        if event.kind in _BESIDE or event.kind in (
            CommitKind.GROUP_RESET,
            CommitKind.PLAN,
            CommitKind.FORM,
            CommitKind.LOOP_POINT,
        ):
            return self.golden.groups[event.lane]
        return None

    def _several(self) -> Iterator[str]:
        busy = [group for group in self.golden.groups if any(lane.dispatches for lane in group.lanes)]
        long = [group for group in busy if group.pipeline]
        if len(long) > 1:
            yield "two pipelines at work"
        if long and len(long) < len(busy):
            yield "a pipeline beside a group of one lane"
        if long and any(lane.pipeline > 1 and self.golden.groups[lane.index].absorbed for lane in self.golden.lanes):
            yield "a lane that two PIPELINE registers claim"

    def _formed(self, event: Event, group: Group) -> Iterator[str]:
        run = next(run for run in group.alive.values() if run.number == event.id)
        if len(group.alive) > 1:
            yield "two passes alive"
        if len(group.alive) == len(group.lanes):
            yield "all its passes alive"
        if run.decode:
            decoded = self._decoded.setdefault(group.index, set())
            decoded.add(run.k)
            if decoded == set(range(len(group.lanes))):
                yield "decode rows in each pass"
        lanes = {leg.lane.index for leg in run.legs}
        if len(lanes) == 1:
            yield "pass on a single lane"
        if len(lanes) == len(group.lanes):
            yield "pass on all lanes"

    def _dispatched(self, event: Event, group: Group) -> Iterator[str]:
        lane = self.golden.lanes[event.lane]
        sent = lane.dispatches[-1]
        run, leg = sent.run, sent.leg
        before = run.legs[run.dispatched - 2].lane.index if run.dispatched > 1 else lane.index
        if before != lane.index:
            yield f"goes on to the next lane {'with' if leg.stage == 1 else 'without'} binding"
            if lane.index > before + 1:
                yield "a lane between has no stage"
        yield f"depth {lane.depth}"
        waiting = [other for other in group.alive.values() if other is not run and other.ready_for(lane)]
        if leg.first and len(group.alive) > 1:
            yield "lane turns to another pass" + (" while one more waits" if waiting and len(group.lanes) > 2 else "")
        elif waiting and not leg.first:
            yield "lane stays with a pass while another waits"
        if all(other.dispatches for other in group.lanes):
            yield "a dispatch on every lane"
