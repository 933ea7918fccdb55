"""What happens at loop points (docs/device.md §6, step 2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cuelight.regmap import CommitKind, RetireReason

from ..golden import Golden
from ..steps import Event
from .family import Family

__all__ = ["LoopPoints"]


class LoopPoints(Family):
    """Loop points by who leaves and who advances."""

    title = "loop points"
    bins = (
        "nobody leaves, nobody advances",
        "several leave",
        "finished and cancelled ones leave",
        "one is finished and was cancelled",
        "one leaves who is not in the pass",
        "one in the midst of its prompt leaves, and its entry is passed over",
        "several advance",
        "cancelled while others advance",
        "cancelled before its entry, and advances all the same",
        "after a last layer, without output decode",
        "after output decode",
        "several are due at once",
        "one cancelled stays, for it is in another pass",
    )

    def __init__(self, golden: Golden) -> None:
        super().__init__(golden)
        self._reasons: dict[int, list[int]] = {}
        """For each group, why requests left since its latest LOOP_POINT."""
        self._advances: dict[int, int] = {}

    def before(self, event: Event) -> Iterable[str]:
        match event.kind:
            case CommitKind.RETIRE:
                yield from self._retired(event)
            case CommitKind.CANCEL if event.stage == 2:
                request = self.golden.slots.request[event.id & 0xFFFF]
                assert request is not None
                loop = self.golden.groups[request.group].loop
                if loop is not None and not loop.over and self._advances.get(request.group):
                    yield "cancelled while others advance"
            case CommitKind.ADVANCE:
                self._advances[event.lane] += 1
                if self._advances[event.lane] == 2:
                    yield "several advance"
                request = self.golden.groups[event.lane].seated[event.stage]
                if request.marked:
                    yield "cancelled before its entry, and advances all the same"
            case CommitKind.PLAN:
                if self._reasons.pop(event.lane, None) == [] and not self._advances[event.lane]:
                    yield "nobody leaves, nobody advances"
            case CommitKind.GROUP_RESET:
                self._reasons.pop(event.lane, None)
            case _:
                pass

    def after(self, event: Event) -> Iterable[str]:
        if event.kind != CommitKind.LOOP_POINT:
            return
        self._reasons[event.lane], self._advances[event.lane] = [], 0
        group = self.golden.groups[event.lane]
        assert group.loop is not None
        run = group.loop.run
        yield "after output decode" if run.samples else "after a last layer, without output decode"
        others = [other for other in group.alive.values() if other is not run]
        if any(other.due for other in others):
            yield "several are due at once"
        marked = sum(1 << seat for seat, request in group.seated.items() if request.marked)
        if any(other.members & marked for other in others):
            yield "one cancelled stays, for it is in another pass"

    def _retired(self, event: Event) -> Iterator[str]:
        loop, request = self.golden.groups[event.lane].loop, self.golden.slots.request[event.id & 0xFFFF]
        if loop is None or loop.over or request is None or request.seat is None:
            return
        reasons = self._reasons.setdefault(event.lane, [])
        reasons.append(event.stage)
        if len(reasons) == 2:
            yield "several leave"
        if {RetireReason.FINISHED, RetireReason.CANCELLED} <= set(reasons):
            yield "finished and cancelled ones leave"
        if event.stage == RetireReason.FINISHED and request.marked:
            yield "one is finished and was cancelled"
        if not loop.run.members >> request.seat & 1:
            yield "one leaves who is not in the pass"
        if any(entry.rows and entry.request is request for entry in loop.run.entries):
            yield "one in the midst of its prompt leaves, and its entry is passed over"
