"""FIFOs: pops that hit and that are stale, and what is lost (docs/device.md §3, §4, §8)."""

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

__all__ = ["Fifos"]

_FIFOS = ("reject", "retirement", "trace", "poll")
_POPS = {
    regmap.FIFO + regmap.Fifo.REJECT_POP: "reject",
    regmap.FIFO + regmap.Fifo.RETIRE_POP: "retirement",
    regmap.FIFO + regmap.Fifo.TRACE_POP: "trace",
}


_REOFFERS = {
    (1, 0): "one, not taken",
    (1, 1): "one, taken",
    (2, 0): "two, none taken",
    (2, 1): "two, the older taken",
    (2, 2): "two, both taken",
}
"""By how many dispatches are outstanding, and how many of them were taken."""


class Fifos(Family):
    """Pops and REOFFER writes by what they met, and entries that found no room."""

    title = "FIFOs"
    bins = (
        *(f"{fifo} pop: {what}" for fifo in _FIFOS for what in ("the head", "stale", "empty")),
        *(f"reoffer: {what}" for what in (*_REOFFERS.values(), "the younger of two", "stale", "nothing outstanding")),
        "the last retirement",
        "reject FIFO full",
        "reject lost",
        "event trace full",
        "event lost",
    )

    def __init__(self, golden: Golden) -> None:
        super().__init__(golden)
        self._lost = (0, 0)

    def wrote(self, write: Write) -> Iterable[str]:
        for offset, value in register_of(write).items():
            if offset in _POPS:
                yield from self._pop(_POPS[offset], value)
            elif offset >= regmap.POLL:
                number, register = divmod(offset - regmap.POLL, regmap.POLL_STRIDE)
                if number < len(self.golden.lanes):
                    yield from self._poll(self.golden.lanes[number], register, value)

    def _poll(self, lane: Lane, register: int, value: int) -> Iterator[str]:
        head, sequences = lane.offered, [dispatch.sequence for dispatch in lane.dispatches]
        if register == regmap.Poll.POP and head is None:
            yield "poll pop: empty"
        elif register == regmap.Poll.POP and head is not None and value != head.sequence:
            yield "poll pop: stale"
        elif register == regmap.Poll.REOFFER and not sequences:
            yield "reoffer: nothing outstanding"
        elif register == regmap.Poll.REOFFER and value != sequences[0]:
            yield f"reoffer: {'the younger of two' if value in sequences else 'stale'}"

    def _pop(self, fifo: str, value: int) -> Iterator[str]:
        golden = self.golden
        held, index = {
            "reject": (len(golden.rejects.held), golden.rejects.index),
            "trace": (len(golden.trace.held), golden.trace.index),
            "retirement": (len(golden.slots.retirements), golden.slots.retire_index),
        }[fifo]
        if not held:
            yield f"{fifo} pop: empty"
        elif value != index:
            yield f"{fifo} pop: stale"
        elif fifo != "retirement":
            yield f"{fifo} pop: the head"

    def before(self, event: Event) -> Iterable[str]:
        if event.kind == CommitKind.FREE:
            yield "retirement pop: the head"
            if len(self.golden.slots.retirements) == 1:
                yield "the last retirement"
        elif event.kind == CommitKind.TAKEN:
            yield "poll pop: the head"
        elif event.kind == CommitKind.REOFFERED:
            dispatches = self.golden.lanes[event.lane].dispatches
            yield f"reoffer: {_REOFFERS[len(dispatches), sum(not dispatch.offered for dispatch in dispatches)]}"

    def after(self, event: Event) -> Iterable[str]:
        golden = self.golden
        if len(golden.rejects.held) == golden.rejects.CAPACITY and event.kind == CommitKind.REJECT:
            yield "reject FIFO full"
        if len(golden.trace.held) == golden.trace.CAPACITY:
            yield "event trace full"
        lost = golden.counters.rejects_lost, golden.counters.trace_lost
        if lost != self._lost:
            if lost[0] > self._lost[0]:
                yield "reject lost"
            if lost[1] > self._lost[1]:
                yield "event lost"
            self._lost = lost
