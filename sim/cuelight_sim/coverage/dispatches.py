"""Dispatches, and what their completions end (docs/device.md §7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cuelight.regmap import LANE_COUNT, CommitKind

from ..decision import Decision
from ..golden import Golden
from ..steps import Event
from .family import Family

__all__ = ["Dispatches"]

_DEPTHS = (1, 2)
_STAGES = ("of stage 1", "of the first layer", "of a layer between", "of a last layer", "of output decode")
_ENDS = ("inside a pass", "before another lane's", "last of a pass")


class Dispatches(Family):
    """DISPATCH and COMPLETE at both depths."""

    title = "dispatches"
    bins = (
        *(f"{stage}, depth {depth}" for stage in _STAGES for depth in _DEPTHS),
        *(
            f"complete by {how}, {end}, depth {depth}"
            for how in ("BATCH_DONE", "STAGE_DONE")
            for end in _ENDS
            for depth in _DEPTHS
        ),
        *(f"complete {when} it was taken, depth {depth}" for when in ("before", "after") for depth in _DEPTHS),
        *(f"on lane {lane}" for lane in range(LANE_COUNT)),
        "two are outstanding",
        "the younger of two is taken, the older outstanding",
        "low half of the sequence wraps",
        "high half of the sequence wraps",
        "without decision cycles, ahead",
        "decision cycles saturated",
    )

    def __init__(self, golden: Golden) -> None:
        super().__init__(golden)
        self._reported = False
        """The commit before was a STAGE_DONE."""

    def before(self, event: Event) -> Iterable[str]:
        match event.kind:
            case CommitKind.COMPLETE:
                yield from self._complete(event)
            case CommitKind.TAKEN if len(self.golden.lanes[event.lane].dispatches) == 2:
                if event.id == self.golden.lanes[event.lane].dispatches[1].sequence:
                    yield "the younger of two is taken, the older outstanding"
            case _:
                pass
        if event.kind not in (CommitKind.DISPATCH, CommitKind.OFFER):
            # Those come by themselves, also between a last report and the COMPLETE that it makes.
            self._reported = event.kind == CommitKind.STAGE_DONE

    def _complete(self, event: Event) -> Iterator[str]:
        lane = self.golden.lanes[event.lane]
        oldest = lane.dispatches[0]
        run = oldest.run
        last = run.dispatched == len(run.legs) and run.outstanding == 1
        crosses = run.crosses and run.outstanding == 1
        end = _ENDS[2] if last else _ENDS[1] if crosses else _ENDS[0]
        yield f"complete by {'STAGE_DONE' if self._reported else 'BATCH_DONE'}, {end}, depth {lane.depth}"
        yield f"complete {'before' if oldest.offered else 'after'} it was taken, depth {lane.depth}"

    def after(self, event: Event) -> Iterable[str]:
        if event.kind != CommitKind.DISPATCH:
            return
        lane = self.golden.lanes[event.lane]
        run = lane.dispatches[-1].run
        yield f"on lane {event.lane}"
        yield f"{_stage(event.stage, run.samples, self.golden.control.stage_count)}, depth {lane.depth}"
        if len(lane.dispatches) == 2:
            yield "two are outstanding"
        if event.id & 0xFFFF == 0xFFFE:
            yield "low half of the sequence wraps"
            if event.id >> 16 == 0xFFFF:
                yield "high half of the sequence wraps"
        cycles = event.detail >> 16 & 0xFFF
        if cycles == 1 and len(lane.dispatches) == 2:
            yield "without decision cycles, ahead"
        if cycles == Decision.SATURATED:
            yield "decision cycles saturated"


def _stage(stage: int, samples: bool, stage_count: int) -> str:
    if stage == 1:
        return _STAGES[0]
    if stage == stage_count - 1:
        return _STAGES[4]
    if stage == stage_count - 2 and not samples:
        return _STAGES[3]
    return _STAGES[1] if stage == 2 else _STAGES[2]
