"""What the device does to a request by itself, in every state in which it does (docs/device.md §4, §6)."""

from __future__ import annotations

from collections.abc import Iterable

from cuelight.regmap import CommitKind, RetireReason

from ..golden import Golden
from ..slots import Request
from ..steps import Event
from .family import Family
from .moments import PHASES, POSTURES, phase, posture

__all__ = ["Moves"]

_PROGRESS = ("at its start", "in the middle of its prompt", "decoding")
_CREDIT = ("plain", "with a credit")
_CAUSES = ("asked to", "stepped", "asked to and stepped")


class Moves(Family):
    """Steps of the device, and the requests they move."""

    title = "the device's steps in each state of a request"
    bins = (
        *(f"SEAT: {progress}, {credit}" for progress in _PROGRESS for credit in _CREDIT),
        *(f"PAUSE: {progress}, {posture}" for progress in _PROGRESS for posture in (*_CREDIT, "parked")),
        *(f"PARKED: {phase}, asked to, {how}" for phase in PHASES for how in ("parked", "credit used up")),
        *(f"PARKED: decoding, {cause}, {how}" for cause in _CAUSES[1:] for how in ("parked", "credit used up")),
        *(f"RETIRE finished: {phase}, {posture}" for phase in PHASES for posture in POSTURES if posture != "parked"),
        *(f"RETIRE cancelled: {phase}, {place}" for phase in PHASES for place in ("loop point", "in no pass")),
        *(f"RETIRE cancelled: {state}" for state in ("queued", "parked without a seat")),
        *(f"RETIRE lost: {phase}, {posture}" for phase in PHASES for posture in POSTURES),
        *(f"RETIRE lost: queued, {credit}" for credit in _CREDIT),
        *(
            f"CHUNK: {progress}, {bound}, {end}"
            for progress, bound in (
                (_PROGRESS[0], "binds"),
                (_PROGRESS[1], "binds"),
                (_PROGRESS[1], "bound"),
            )
            for end in ("goes on", "ends")
        ),
        *(f"CHUNK: binds a decoding seat, {posture}" for posture in POSTURES if posture != "parked"),
        *(f"CHUNK: {posture}" for posture in POSTURES if posture != "parked"),
        *(f"ADVANCE: {end}, {posture}" for end in ("goes on", "ends") for posture in POSTURES if posture != "parked"),
    )

    def __init__(self, golden: Golden) -> None:
        super().__init__(golden)
        self._asked: set[int] = set()
        """Ids that a PARK told to park."""

    def before(self, event: Event) -> Iterable[str]:
        slots = self.golden.slots
        match event.kind:
            case CommitKind.PARK if event.stage in (2, 3):
                request = slots.request[event.id & 0xFFFF]
                if request is not None and not request.parked:
                    self._asked.add(event.id)
            case CommitKind.SEAT:
                request = slots.request[event.id & 0xFFFF]
                assert request is not None
                self._asked.discard(event.id)
                yield f"SEAT: {_progress(request)}, {_CREDIT[request.credit]}"
            case CommitKind.PAUSE:
                request = slots.request[event.id & 0xFFFF]
                assert request is not None
                yield f"PAUSE: {_progress(request)}, {posture(request)}"
            case CommitKind.RETIRE:
                yield self._retired(event)
            case CommitKind.PARKED:
                yield self._parked(event)
            case CommitKind.CHUNK:
                request = slots.request[event.id & 0xFFFF]
                assert request is not None
                yield from _chunk(event, request)
            case CommitKind.ADVANCE:
                request = slots.request[event.id & 0xFFFF]
                assert request is not None
                yield f"ADVANCE: {_end(event.detail >> 31)}, {posture(request)}"
            case _:
                pass

    def _retired(self, event: Event) -> str:
        request = self.golden.slots.request[event.id & 0xFFFF]
        assert request is not None
        reason = {1: "finished", 2: "cancelled", 3: "lost"}[event.stage]
        if request.seat is None:
            where = "parked without a seat" if request.parked else "queued"
            return f"RETIRE {reason}: {where}" + (f", {_CREDIT[request.credit]}" if reason == "lost" else "")
        if event.stage == RetireReason.CANCELLED:
            loop = self.golden.groups[event.lane].loop
            member = loop is not None and bool(loop.run.members >> request.seat & 1)
            return f"RETIRE cancelled: {phase(request)}, {'loop point' if member else 'in no pass'}"
        return f"RETIRE {reason}: {phase(request)}, {posture(request)}"

    def _parked(self, event: Event) -> str:
        group = self.golden.groups[event.lane]
        request = group.seated[event.stage]
        asked = request.id in self._asked
        self._asked.discard(request.id)
        cause = "asked to and stepped" if asked and request.stepped else "asked to" if asked else "stepped"
        if request.rows_left:
            # It has sampled nothing yet.
            cause = "asked to"
        return f"PARKED: {phase(request)}, {cause}, {'credit used up' if event.detail else 'parked'}"


def _progress(request: Request) -> str:
    if not request.rows_left:
        return _PROGRESS[2]
    return _PROGRESS[request.start != request.began]


def _end(last: int) -> str:
    return "ends" if last else "goes on"


def _chunk(event: Event, request: Request) -> Iterable[str]:
    rows, last = event.detail >> 20 & 0x3FF, event.detail >> 30 & 1
    if not rows:
        yield f"CHUNK: binds a decoding seat, {posture(request)}"
        return
    yield f"CHUNK: {_progress(request)}, {'bound' if request.bound else 'binds'}, {_end(last)}"
    yield f"CHUNK: {posture(request)}"
