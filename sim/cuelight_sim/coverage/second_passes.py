"""Second passes (docs/device.md §6, step 8, and §7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cuelight.regmap import CommitKind, RetireReason

from ..golden import Golden
from ..group import Group
from ..passes import Pass
from ..steps import Event
from .family import Family

__all__ = ["SecondPasses"]

_STEPS = ("RETIRE", "PARKED", "PAUSE", "SEAT")


class SecondPasses(Family):
    """What passes 0 and 1 of a group do side by side."""

    title = "second passes"
    bins = (
        *(f"beside members of tier {tier} and below" for tier in (1, 2, 3)),
        "of several chunks",
        "of several tiers",
        "beside decode rows",
        "beside chunks only",
        "samples",
        "does not sample",
        "goes first",
        "leaves pass 0 a dispatch before the next",
        "at depth 1",
        "at depth 2",
        "dispatches of both are outstanding",
        "decodes in pass 0 afterwards",
        "its loop point while pass 0 lives",
        "loop point of pass 0 while it lives",
        "both loop points are due, and its own comes first",
        "pass 0 is formed beside it",
        "not formed: parked",
        "not formed: of equal or lower tiers",
        *(f"{step} beside a pass" for step in _STEPS),
    )

    def __init__(self, golden: Golden) -> None:
        super().__init__(golden)
        self._overtook: set[int] = set()
        """Ids whose prompt ended in a second pass."""
        self._ended: dict[int, bool] = {}
        """For each lane, that a second pass had its last dispatch, and pass 0 none since."""

    def before(self, event: Event) -> Iterable[str]:
        if event.kind == CommitKind.COMPLETE and not self._group(event).pipeline:
            yield from _not_formed(self._group(event))
        elif event.kind.name in _STEPS and not self._group(event).pipeline:
            group = self._group(event)
            seated = event.kind != CommitKind.RETIRE or (
                event.stage == RetireReason.CANCELLED and event.detail < 1 << 8
            )
            if seated and group.alive and group.loop is None:
                yield f"{event.kind.name} beside a pass"

    def after(self, event: Event) -> Iterable[str]:
        match event.kind:
            case CommitKind.FORM if not self._group(event).pipeline:
                yield from self._formed(event, self._group(event))
            case CommitKind.LOOP_POINT if not self._group(event).pipeline:
                yield from _loop_point(self._group(event))
            case CommitKind.ADVANCE:
                loop = self._group(event).loop
                if event.detail >> 31 and loop is not None and loop.run.k == 1:
                    self._overtook.add(event.id)
            case CommitKind.DISPATCH if not self._group(event).pipeline:
                yield from self._dispatched(event)
            case _:
                pass

    def _group(self, event: Event) -> Group:
        if event.kind in (CommitKind.COMPLETE, CommitKind.DISPATCH):
            return self.golden.group_of(self.golden.lanes[event.lane])
        return self.golden.groups[event.lane]

    def _formed(self, event: Event, group: Group) -> Iterator[str]:
        run = next(run for run in group.alive.values() if run.number == event.id)
        if run.k == 1:
            yield from _second(group, run)
            return
        if 1 in group.alive:
            yield "pass 0 is formed beside it"
        decoding = {request.id for seat, request in group.seated.items() if run.decode >> seat & 1}
        if decoding & self._overtook:
            yield "decodes in pass 0 afterwards"
        self._overtook -= decoding

    def _dispatched(self, event: Event) -> Iterator[str]:
        lane, group = self.golden.lanes[event.lane], self._group(event)
        run, leg = lane.dispatches[-1].run, lane.dispatches[-1].leg
        if len({dispatch.run.k for dispatch in lane.dispatches}) == 2:
            yield "dispatches of both are outstanding"
        if run.k == 0:
            if self._ended.pop(event.lane, False):
                yield "leaves pass 0 a dispatch before the next"
            return
        yield f"at depth {lane.depth}"
        if 0 in group.alive and group.alive[0].next_leg is not None:
            yield "goes first"
            self._ended[event.lane] = leg.last


def _second(group: Group, run: Pass) -> Iterator[str]:
    below = group.alive.get(0)
    if below is not None:
        yield f"beside members of tier {below.top} and below"
        yield "beside decode rows" if below.decode else "beside chunks only"
    if len(run.entries) > 1:
        yield "of several chunks"
    if len({entry.request.tier for entry in run.entries}) > 1:
        yield "of several tiers"
    yield "samples" if run.samples else "does not sample"


def _loop_point(group: Group) -> Iterator[str]:
    assert group.loop is not None
    run = group.loop.run
    other = next((other for other in group.alive.values() if other is not run), None)
    if other is None:
        return
    yield "its loop point while pass 0 lives" if run.k else "loop point of pass 0 while it lives"
    if run.k and other.due:
        yield "both loop points are due, and its own comes first"


def _not_formed(group: Group) -> Iterator[str]:
    """Why no second pass stands beside pass 0, though prompts wait in seats of no pass."""
    if set(group.alive) != {0} or group.loop is not None or group.forming is not None or group.resetting:
        return
    run = group.alive[0]
    for seat, request in group.seated.items():
        if request.rows_left and not run.members >> seat & 1 and not request.marked and not request.parking:
            if request.tier >= run.top:
                yield "not formed: of equal or lower tiers"
            elif request.parked:
                yield "not formed: parked"
