"""A lane that runs what comes into its ring, and keeps to docs/push.md."""

from __future__ import annotations

from dataclasses import dataclass, field

from cuelight import regmap
from cuelight.regmap import DispatchHead, EntryChunk

from ..lane import Lane
from .port import LanePort

__all__ = ["Request", "RingLane"]

_UNITS = 3
"""Of a record's bitmap, 16 bytes each; then come its entries, one in a unit."""
_SEATS_PER_UNIT = 96


@dataclass(eq=False)
class Request:
    """Something to be said, whatever becomes of the devices on the way."""

    rows: int
    left: int
    """Tokens that are not said yet."""
    group: int
    said: int = 0
    id: int = 0
    """On the present device; 0: it is not admitted."""


@dataclass
class _Pass:
    """What a record says."""

    seats: dict[int, int] = field(default_factory=dict)
    """Requests that join, by their seats."""
    sampling: set[int] = field(default_factory=set)


class RingLane:
    """Says a token of each request that a pass samples, and reports who is finished.

    Parameters
    ----------
    port
        Where dispatches come.
    requests
        Those that are admitted, by their ids.
    """

    def __init__(self, port: LanePort, requests: dict[int, Request]) -> None:
        self.port = port
        self.expected = 1
        self.reported: dict[int, int] = {}
        """Finished seats, by the sequences of dispatches that were executed."""
        self.executed: list[tuple[int, int]] = []
        """Sequences and stages."""
        self._requests = requests
        self._lane = Lane(port.it, port.lane)
        self._seats: dict[int, int] = {}
        self._passes: dict[int, _Pass] = {}

    def begin(self, expected: int) -> None:
        """As a new process, for a device whose next sequence this is."""
        self.expected = expected
        for kept in (self.reported, self.executed, self._seats, self._passes):
            kept.clear()
        self.port.clear()

    async def step(self) -> bool:
        """Execute the dispatch that is next and report it, if it is there."""
        head = self.port.dispatch(self.expected)
        if head is None:
            return False
        if head.first:
            record = self.port.whole_record(head)
            if record is None:
                return False
            self._passes[head.buffer] = self._read(record)
        self.expected += 1
        self.executed.append((head.sequence, head.stage))
        self.reported[head.sequence] = self._say(head) if head.last else 0
        await self.report(head.sequence)
        return True

    async def report(self, sequence: int) -> None:
        """Write the completion of a dispatch that was executed; in one packet, or the finished seats before it."""
        finished, it = self.reported[sequence], self.port.it
        entry = self._lane.entry(sequence)
        if it.random.random() < 0.5:
            await it.board.write(entry, [finished, *[0] * (regmap.Completion.FINISHED_COUNT - 1), sequence])
        else:
            if finished:
                await it.board.write(entry, [finished])
            await it.board.write(entry + regmap.Completion.BATCH_DONE, [sequence])

    def _read(self, record: list[int]) -> _Pass:
        found = _Pass()
        for unit in range(_UNITS):
            bits = sum(word << 32 * index for index, word in enumerate(record[4 * unit : 4 * unit + 3]))
            found.sampling |= {_SEATS_PER_UNIT * unit + bit for bit in range(_SEATS_PER_UNIT) if bits >> bit & 1}
        for at in range(4 * _UNITS, len(record), 4):
            chunk = EntryChunk.unpack(record[at + 1])
            if chunk.bind:
                found.seats[chunk.seat] = record[at]
            if chunk.last:
                found.sampling.add(chunk.seat)
        self._seats |= found.seats
        return found

    def _say(self, head: DispatchHead) -> int:
        """A token for each request of a pass that ends; the seats of those that are finished."""
        finished = 0
        for seat in self._passes[head.buffer].sampling if head.samples else ():
            request = self._requests[self._seats[seat]]
            if request.left:
                request.left -= 1
                request.said += 1
            finished |= (not request.left) << seat
        return finished
