"""FIFOs: pops that hit and that are stale, and what is lost (docs/device.md §3, §4, §8)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cuelight import regmap
from cuelight.regmap import CommitKind

from ..golden import Golden
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


class Fifos(Family):
    """Pops by what they met, and entries that found no room."""

    title = "FIFOs"
    bins = (
        *(f"{fifo} pop: {what}" for fifo in _FIFOS for what in ("the head", "stale", "empty")),
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
            elif offset >= regmap.POLL and (offset - regmap.POLL) % regmap.POLL_STRIDE == regmap.Poll.POP:
                number = (offset - regmap.POLL) // regmap.POLL_STRIDE
                if number < len(self.golden.lanes) and self.golden.lanes[number].offered is None:
                    yield "poll pop: empty"
                elif number < len(self.golden.lanes):
                    head = self.golden.lanes[number].offered
                    assert head is not None
                    if value != head.sequence:
                        yield "poll pop: stale"

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
