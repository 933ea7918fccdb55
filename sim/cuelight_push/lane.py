"""A lane: it runs what is whole in its port, strictly in the order of sequences (docs/push.md)."""

from __future__ import annotations

from dataclasses import dataclass

from cuelight import regmap
from cuelight.regmap import DispatchHead, EntryChunk

from .board import STAGES, Board, next_sequence
from .journal import Journal
from .tally import Event

__all__ = ["Lane"]

_UNITS = regmap.Record.BITMAP_COUNT
_LAYERS, _DECODE = range(2, STAGES - 1), STAGES - 1
_KV_INIT = 1


@dataclass
class _Entry:
    request: int
    chunk: EntryChunk
    rows: int


@dataclass
class _Pass:
    """What a lane knows of a pass that it has begun."""

    stamp: int
    decode: list[int]
    """Seats."""
    entries: list[_Entry]
    stage: int = 0
    """The one that was run last."""

    @property
    def samples(self) -> bool:
        return bool(self.decode) or any(entry.chunk.last for entry in self.entries)


@dataclass
class _Seat:
    request: int
    filled: int
    """Positions in the KV cache."""


class Lane:
    """Has a journal for its tokens. Between `die` and `begin` it is dead.

    Parameters
    ----------
    board
        It reports there.
    number
        Its own, and its group's.
    journal
        Takes tokens.
    """

    def __init__(self, board: Board, number: int, journal: Journal) -> None:
        self.board, self.number, self._journal = board, number, journal
        self._events = board.link.tally.events
        self.lost_reports = 0.0
        """How probable it is that a write of a report is lost."""
        self.begin(1)

    def begin(self, expected: int) -> None:
        """A new process, which waits for a dispatch and knows nothing."""
        self.alive = True
        self.expected = expected
        self.done: dict[int, int] = {}
        """Seats that were reported finished, by sequence: what its port's DONE holds."""
        self._passes: dict[int, _Pass] = {}
        self._seats: dict[int, _Seat] = {}

    def die(self) -> None:
        """The process ends."""
        self.alive = False

    def run(self) -> None:
        """Run what is next, if it is there, and report it, now and then twice."""
        found = self.board.dispatch(self.expected, self.number) if self.alive else None
        if found is None:
            return
        head, second = found
        if head.first:
            record = self._read(head, second.entries)
            if record is None:
                self._events[Event.UNWHOLE] += 1
                return
            self._passes[head.buffer] = record
        running = self._passes[head.buffer]
        self._check(head, running)
        running.stage = head.stage
        if head.stage == _KV_INIT:
            self._bind(running)
        if head.stage == _LAYERS[-1]:
            self._fill(running)
        finished = self._sample(running) if head.stage == _DECODE else 0
        self.done[head.sequence] = finished
        self.done.pop((head.sequence - 16) & 0xFFFF_FFFF, None)
        self._events[Event.RUN] += 1
        self.expected = next_sequence(self.expected)
        self.report(head.sequence)
        if self.board.random.random() < 0.1:
            self.report(head.sequence)
            self._events[Event.TWICE] += 1

    def report(self, sequence: int) -> None:
        """Send what was reported of a dispatch, again or for the first time."""
        seats = self.done[sequence]
        if seats and not self._loses(Event.FINISHED_LOST):
            self.board.finish(sequence, self.number, seats)
        if not self._loses(Event.DONE_LOST):
            self.board.done(sequence, self.number)

    def _loses(self, what: Event) -> bool:
        """Whether the hard block drops a write on its way to the device, as it does if it is poisoned."""
        if self.board.random.random() >= self.lost_reports:
            return False
        self._events[what] += 1
        self.board.link.drop_poisoned_write()
        return True

    def _read(self, head: DispatchHead, count: int) -> _Pass | None:
        """The record, if it is whole and the pass's own."""
        stamp, words = head.sequence & 0xFFFF, self.board.record(head.buffer, self.number)
        units = [(words[2 * unit], words[2 * unit + 1]) for unit in range(_UNITS + count)]
        if {high >> 48 for _, high in units} != {stamp}:
            return None
        bitmap = units[0][0]
        assert not any(low | high & (1 << 48) - 1 for low, high in ((0, units[0][1]), *units[1:_UNITS]))
        entries = [
            _Entry(low & 0xFFFF_FFFF, EntryChunk.unpack(low >> 32), high & 0xFFFF) for low, high in units[_UNITS:]
        ]
        return _Pass(stamp, [seat for seat in range(64) if bitmap >> seat & 1], entries)

    def _check(self, head: DispatchHead, running: _Pass) -> None:
        """No stage is skipped, nor is one run out of turn."""
        binds = any(entry.chunk.bind for entry in running.entries)
        stages = [*([_KV_INIT] if binds else []), *_LAYERS, *([_DECODE] if running.samples else [])]
        after = stages[stages.index(running.stage) + 1] if running.stage else stages[0]
        assert head.stage == after, f"stage {head.stage} came where {after} should"
        assert head.first == (head.stage == stages[0])
        assert head.last == (head.stage == stages[-1])
        assert head.rows == len(running.decode) + sum(entry.rows for entry in running.entries)

    def _bind(self, running: _Pass) -> None:
        for entry in running.entries:
            if entry.chunk.bind:
                self._journal.find(entry.request)
                self._seats[entry.chunk.seat] = _Seat(entry.request, entry.chunk.start)

    def _fill(self, running: _Pass) -> None:
        for entry in running.entries:
            seat = self._seats[entry.chunk.seat]
            assert (seat.request, seat.filled) == (entry.request, entry.chunk.start), "rows are lost, or came twice"
            seat.filled += entry.rows
        for number in running.decode:
            # A request that is bound decodes in the same pass what it sampled last.
            self._seats[number].filled += 1

    def _sample(self, running: _Pass) -> int:
        """Give tokens to the journal; returns the seats that have finished."""
        finished = 0
        for number in [*running.decode, *(entry.chunk.seat for entry in running.entries if entry.chunk.last)]:
            seat = self._seats[number]
            request = self._journal.find(seat.request)
            # Complete already: the device does not know, for that FINISHED was lost.
            if not request.complete:
                request.take(seat.filled)
                self._events[Event.TOKEN] += 1
            finished |= request.complete << number
        return finished
