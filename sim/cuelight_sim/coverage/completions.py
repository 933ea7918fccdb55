"""Completions that are ignored, and FINISHED words (docs/device.md §7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cuelight import regmap
from cuelight.regmap import CommitKind

from ..golden import Golden
from ..lane import Lane
from ..lockstep import Write
from ..steps import Event
from .family import Family
from .moments import register_of

__all__ = ["Completions"]

_BATCH_DONE = regmap.Completion.BATCH_DONE


class Completions(Family):
    """What lanes write that is not a plain completion."""

    title = "completion entries"
    bins = (
        "ignored: nothing is outstanding",
        "ignored: completed before",
        "ignored: still to come",
        "ignored: the younger of two",
        "ignored: in another entry",
        "ignored: another number",
        "an ignored one keeps FINISHED words",
        "FINISHED in one write",
        "FINISHED in several writes",
        "FINISHED, two words in a write",
        "FINISHED of a seat outside the pass",
        "FINISHED in another entry",
        "FINISHED while nothing is outstanding",
        "FINISHED before the last dispatch of a pass",
        "FINISHED of a prefilling seat",
        "FINISHED of a decoding seat",
        "FINISHED, and completed by STAGE_DONE",
        "STAGE_DONE of a member a second time",
        "STAGE_DONE of a member of the next dispatch's pass",
    )

    def __init__(self, golden: Golden) -> None:
        super().__init__(golden)
        self._entry = 0
        self._writes: dict[int, int] = {}
        """For each lane, FINISHED writes kept since its oldest dispatch is the oldest."""

    def wrote(self, write: Write) -> Iterable[str]:
        if not regmap.COMPLETION <= write.offset < regmap.POLL:
            return
        number, place = divmod(write.offset - regmap.COMPLETION, regmap.COMPLETION_STRIDE)
        if number >= len(self.golden.lanes):
            return
        lane = self.golden.lanes[number]
        self._entry = place // regmap.COMPLETION_ENTRY_STRIDE
        words = {
            (offset - write.offset + place) % regmap.COMPLETION_ENTRY_STRIDE: value
            for offset, value in register_of(write).items()
        }
        seats = sum(value << 8 * register for register, value in words.items() if register < _BATCH_DONE)
        if seats:
            yield from self._finished(lane, seats)
            if len(words) == 2 and all(words.values()):
                yield "FINISHED, two words in a write"

    def _finished(self, lane: Lane, seats: int) -> Iterator[str]:
        oldest = lane.outstanding
        if oldest is None:
            yield "FINISHED while nothing is outstanding"
        elif oldest.sequence % 16 != self._entry:
            yield "FINISHED in another entry"
        else:
            self._writes[lane.index] = self._writes.get(lane.index, 0) + 1
            if seats & ~oldest.run.members:
                yield "FINISHED of a seat outside the pass"

    def before(self, event: Event) -> Iterable[str]:
        match event.kind:
            case CommitKind.COMPLETE:
                yield from self._complete(self.golden.lanes[event.lane])
            case CommitKind.COMPLETE_IGNORED:
                lane = self.golden.lanes[event.lane]
                yield f"ignored: {self._why_ignored(lane, event.id)}"
                if lane.outstanding is not None and lane.outstanding.kept:
                    yield "an ignored one keeps FINISHED words"
            case CommitKind.STAGE_DONE_IGNORED:
                yield from self._not_reported(event)
            case CommitKind.GROUP_RESET:
                for lane in self.golden.groups[event.lane].lanes:
                    self._writes.pop(lane.index, None)
            case _:
                pass

    def _complete(self, lane: Lane) -> Iterator[str]:
        oldest = lane.dispatches[0]
        writes, kept = self._writes.pop(lane.index, 0), oldest.kept & oldest.run.members
        if not kept:
            return
        yield "FINISHED in one write" if writes == 1 else "FINISHED in several writes"
        run = oldest.run
        if run.dispatched < len(run.legs) or run.outstanding > 1:
            yield "FINISHED before the last dispatch of a pass"
        if kept & ~run.decode:
            yield "FINISHED of a prefilling seat"
        if kept & run.decode:
            yield "FINISHED of a decoding seat"
        if oldest.reported == run.members:
            yield "FINISHED, and completed by STAGE_DONE"

    def _why_ignored(self, lane: Lane, sequence: int) -> str:
        if not lane.dispatches:
            return "nothing is outstanding"
        if sequence == lane.dispatches[0].sequence:
            return "in another entry"
        if any(dispatch.sequence == sequence for dispatch in lane.dispatches):
            return "the younger of two"
        if sequence == lane.sequence:
            return "still to come"
        ago = lane.dispatches[0].sequence - sequence & 0xFFFF_FFFF
        return "completed before" if 0 < ago < 16 else "another number"

    def _not_reported(self, event: Event) -> Iterator[str]:
        slots = self.golden.slots
        request = slots.request[event.id & 0xFFFF] if slots.holds(event.id) else None
        if request is None or request.seat is None:
            return
        for lane in self.golden.groups[request.group].lanes:
            oldest = lane.outstanding
            if oldest is not None and oldest.run.members & oldest.reported & 1 << request.seat:
                yield "STAGE_DONE of a member a second time"
            elif any(later.run.members >> request.seat & 1 for later in list(lane.dispatches)[1:]):
                yield "STAGE_DONE of a member of the next dispatch's pass"
