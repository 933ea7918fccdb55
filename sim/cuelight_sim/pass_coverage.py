"""What a random run reached of second passes and pipelines."""

from __future__ import annotations

from collections.abc import Iterator

from cuelight.regmap import CommitKind, RetireReason

from .golden import Golden
from .group import Group
from .steps import Event

__all__ = ["PassCoverage"]


class PassCoverage:
    """Follows passes that live side by side."""

    def __init__(self) -> None:
        self._overtook: set[int] = set()
        """Ids whose prompt ended in a second pass."""

    def reached(self, event: Event, golden: Golden) -> Iterator[str]:
        """Goals that a commit shows, the golden model having followed it."""
        match event.kind:
            case CommitKind.FORM:
                yield from self._formed(event, golden.groups[event.lane])
            case CommitKind.LOOP_POINT:
                yield from _loop_point(golden.groups[event.lane])
            case CommitKind.ADVANCE:
                loop = golden.groups[event.lane].loop
                if event.detail >> 31 and loop is not None and loop.run.k == 1:
                    self._overtook.add(event.id)
            case CommitKind.DISPATCH:
                yield from _dispatched(event, golden)
            case CommitKind.RETIRE if event.stage == RetireReason.CANCELLED and not event.detail >> 8:
                yield from _beside(golden.groups[event.lane], "CANCELLED")
            case CommitKind.PARKED | CommitKind.PAUSE | CommitKind.SEAT:
                yield from _beside(golden.groups[event.lane], event.kind.name)
            case _:
                pass

    def _formed(self, event: Event, group: Group) -> Iterator[str]:
        run = next((run for run in group.alive.values() if run.number == event.id), None)
        if run is None:
            return
        if group.pipeline:
            lanes = len(group.lanes)
            if len(group.alive) > 1:
                yield f"pipeline of {lanes} with passes side by side"
            if len(group.alive) == lanes:
                yield f"pipeline of {lanes} with all its passes"
            if len({leg.lane for leg in run.legs}) == 1:
                yield "pass on a single lane of a pipeline"
        elif run.k == 1:
            yield "second pass formed"
            if len(run.entries) > 1:
                yield "second pass of several chunks"
            if not run.samples:
                yield "second pass that does not sample"
            if 0 in group.alive and group.alive[0].decode:
                yield "second pass beside decode rows"
        else:
            if 1 in group.alive:
                yield "pass 0 formed beside the second pass"
            decoding = {request.id for seat, request in group.seated.items() if run.decode >> seat & 1}
            if decoding & self._overtook:
                yield "seat of a second pass decodes in pass 0"
            self._overtook -= decoding


def _loop_point(group: Group) -> Iterator[str]:
    assert group.loop is not None
    run = group.loop.run
    others = [other for other in group.alive.values() if other is not run]
    if any(other.due for other in others):
        yield "loop points due at once"
    if any(request.marked and other.members >> seat & 1 for seat, request in group.seated.items() for other in others):
        yield "loop point beside a marked seat of another pass"
    if others and not group.pipeline:
        yield f"loop point of {('pass 0', 'the second pass')[run.k]} while {('the second pass', 'pass 0')[run.k]} lives"


def _dispatched(event: Event, golden: Golden) -> Iterator[str]:
    lane = golden.lanes[event.lane]
    group = golden.group_of(lane)
    sent = lane.dispatches[-1]
    run, leg = sent.run, sent.leg
    waiting = [other for other in group.alive.values() if other is not run and other.ready_for(lane)]
    if group.pipeline:
        if leg.first and leg.lane is not run.legs[0].lane:
            yield f"pass goes on to the next lane {'with' if leg.stage == 1 else 'without'} binding"
        if waiting and leg.first and len(group.lanes) > 2:
            yield "lane turns to another pass while one more waits"
        elif waiting and not leg.first:
            yield "lane stays with a pass while another waits"
    elif run.k == 1 and 0 in group.alive and group.alive[0].next_leg is not None:
        yield "second pass goes first"


def _beside(group: Group, what: str) -> Iterator[str]:
    if group.alive and group.loop is None:
        yield f"{what} beside a pass alive"
