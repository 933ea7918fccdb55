"""Requests that come and go on the RTL, with a lane whose pace is a formula: for comparing policies.

The device takes its own cycles; while a lane is busy and the device rests, time is skipped. So a run of minutes takes
seconds, and repeats exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cuelight import regmap
from cuelight.regmap import CommitKind, DispatchHead, EntryChunk, FifoRetireHead, PageSchedAttr, PageSchedCmd
from cuelight_rtl.model import NS_PER_CYCLE, Commit, Model
from cuelight_rtl.params import Params

__all__ = ["Arrival", "Outcome", "Pace", "PassRun", "Workload"]

_FIRST_LAYER = 2


@dataclass(frozen=True, slots=True)
class Pace:
    """How long a pass takes a lane, in µs: ``base + rows × row + rows read × positions before them / 1024 × reach``.

    Each layer stage takes the same part of it.
    """

    base_us: float = 5000.0
    row_us: float = 40.0
    reach_us: float = 4.0


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request that comes at ``at_us``: ``rows`` of prompt, then ``tokens`` in all."""

    at_us: float
    tier: int
    rows: int
    tokens: int


@dataclass(slots=True)
class Outcome:
    """What became of an arrival; ``tokens_us`` are the times of its tokens."""

    arrival: Arrival
    tokens_us: list[float] = field(default_factory=list)

    @property
    def first_us(self) -> float:
        """Time to first token."""
        return self.tokens_us[0] - self.arrival.at_us

    @property
    def gaps_us(self) -> list[float]:
        """Times between tokens."""
        return [later - sooner for sooner, later in zip(self.tokens_us, self.tokens_us[1:], strict=False)]


@dataclass(frozen=True, slots=True)
class PassRun:
    """A pass: when its layers ran, decoding seats, and (index of the arrival, start, rows) of each chunk."""

    start_us: float
    end_us: float
    decode: int
    chunks: tuple[tuple[int, int, int], ...]


class Workload:
    """One lane group and its arrivals.

    Parameters
    ----------
    params
        Sizes; lane 0 is used.
    arrivals
        In the order of their time.
    settings
        Registers by offset, written before the first arrival.
    pace
        The lane's.
    layers
        Layer stages; no other stage takes time.

    Attributes
    ----------
    stage_count : int
        STAGE_COUNT.
    outcomes : list of Outcome
        As the arrivals.
    passes : list of PassRun
        In order.
    commits : list of (float, Commit)
        What the device did and when, in µs.
    """

    def __init__(
        self,
        params: Params,
        arrivals: Sequence[Arrival],
        settings: Mapping[int, int],
        pace: Pace | None = None,
        layers: int = 1,
    ) -> None:
        if len(arrivals) > params.slots - regmap.PAGE_COUNT:
            raise ValueError(f"{len(arrivals)} arrivals are more than a device of {params.slots} slots holds")
        self._model = Model(params)
        self._pace = pace or Pace()
        self._layers = range(_FIRST_LAYER, _FIRST_LAYER + layers)
        self._begun_us: dict[int, float] = {}
        """When the passes alive began, by their record buffers."""
        self.stage_count = self._layers.stop + 1
        if self.stage_count > params.stages:
            raise ValueError(f"{layers} layers make more stages than the {params.stages} of the device")
        self._skipped_us = 0.0
        self._arrived = 0
        self._arrivals = arrivals
        self._by_id: dict[int, int] = {}
        self._by_seat: dict[int, int] = {}
        self.outcomes = [Outcome(arrival) for arrival in arrivals]
        self.passes: list[PassRun] = []
        self.commits: list[tuple[float, Commit]] = []
        model = self._model
        model.write(regmap.CONTROL + regmap.Control.STAGE_COUNT, self.stage_count)
        # A dispatch at a time: the lane has nothing to gain from the next stage in a formula.
        model.write(regmap.LANE + regmap.Lane.DEPTH, 1)
        for offset, value in settings.items():
            model.write(offset, value)
        model.run_until_idle()

    def run(self) -> None:
        """Until every arrival has had its tokens."""
        while self._arrived < len(self._arrivals) or any(
            len(outcome.tokens_us) < outcome.arrival.tokens for outcome in self.outcomes
        ):
            self._model.run_until_idle()
            if self._model.poll_valid & 1:
                self._serve()
            else:
                self._rest_until(self._arrivals[self._arrived].at_us)
        self._skip_to(self.now_us)

    @property
    def pauses(self) -> int:
        """Requests that had to give up a seat."""
        return sum(commit.kind == CommitKind.PAUSE for _, commit in self.commits)

    @property
    def now_us(self) -> float:
        return self._skipped_us + self._model.cycles * NS_PER_CYCLE / 1000

    def _rest_until(self, then_us: float) -> None:
        """Passes time, with what arrives in it."""
        while self._arrived < len(self._arrivals) and self._arrivals[self._arrived].at_us <= then_us:
            self._skip_to(self._arrivals[self._arrived].at_us)
            self._admit()
        self._skip_to(then_us)

    def _skip_to(self, then_us: float) -> None:
        model = self._model
        model.run_until_idle()
        self.commits += [(self._skipped_us + commit.cycle * NS_PER_CYCLE / 1000, commit) for commit in model.commits]
        model.commits.clear()
        self._skipped_us += max(0.0, then_us - self.now_us)

    def _admit(self) -> None:
        model, arrival = self._model, self._arrivals[self._arrived]
        request_id = model.read(regmap.PAGE + regmap.Page.OFFER_ID)
        attributes = PageSchedAttr(automatic=1, tier=arrival.tier, rows=arrival.rows)
        model.write(regmap.PAGE + regmap.Page.SCHED_ATTR, attributes.pack(), width=8)
        model.write(regmap.PAGE + regmap.Page.SCHED_CMD, PageSchedCmd(id=request_id).pack(), width=8)
        self._by_id[request_id] = self._arrived
        self._arrived += 1

    def _serve(self) -> None:
        """What a lane does: reads the dispatch and its record, takes its time, and reports."""
        model = self._model
        head = DispatchHead.unpack(model.read(regmap.POLL + regmap.Poll.DISPATCH, width=8))
        decode, chunks, last = self._read_record()
        if head.stage == _FIRST_LAYER:
            self._begun_us[head.buffer] = self.now_us
        if head.stage in self._layers:
            pace = self._pace
            rows = len(decode) + sum(rows for _, _, rows in chunks)
            reach = sum(rows * start / 1024 for _, start, rows in chunks)
            pass_us = pace.base_us + rows * pace.row_us + reach * pace.reach_us
            self._rest_until(self.now_us + pass_us / len(self._layers))
        if head.stage == self._layers[-1]:
            self.passes.append(PassRun(self._begun_us[head.buffer], self.now_us, len(decode), tuple(chunks)))
        finished = 0
        if head.stage == self._layers.stop:
            for seat in (*decode, *last):
                outcome = self.outcomes[self._by_seat[seat]]
                outcome.tokens_us.append(self.now_us)
                finished |= (len(outcome.tokens_us) == outcome.arrival.tokens) << seat
        self._complete(head.sequence, finished)

    def _read_record(self) -> tuple[list[int], list[tuple[int, int, int]], list[int]]:
        """Seats that decode, chunks, and seats whose prompt ends."""
        model, record = self._model, regmap.POLL + regmap.Poll.RECORD
        word = record + regmap.Record.BITMAP + regmap.BitmapUnit.WORD
        bitmap = model.read(word) | model.read(word + regmap.BitmapUnit.WORD_STRIDE) << 32
        decode = [seat for seat in range(64) if bitmap >> seat & 1]
        chunks, last = [], []
        for number in range(regmap.Record.ENTRY_COUNT):
            entry = record + regmap.Record.ENTRY + number * regmap.Record.ENTRY_STRIDE
            request_id = model.read(entry + regmap.Entry.REQUEST)
            if not request_id:
                break
            chunk = EntryChunk.unpack(model.read(entry + regmap.Entry.CHUNK))
            rows = model.read(entry + regmap.Entry.ROWS)
            self._by_seat[chunk.seat] = self._by_id[request_id]
            if rows:
                chunks.append((self._by_id[request_id], chunk.start, rows))
                last += [chunk.seat] * chunk.last
        return decode, chunks, last

    def _complete(self, sequence: int, finished: int) -> None:
        model = self._model
        entry = regmap.COMPLETION + sequence % 16 * regmap.COMPLETION_ENTRY_STRIDE
        for word in range(2):
            if bits := finished >> 32 * word & 0xFFFF_FFFF:
                model.write(entry + regmap.Completion.FINISHED + word * regmap.Completion.FINISHED_STRIDE, bits)
        model.write(regmap.POLL + regmap.Poll.POP, sequence)
        model.write(entry + regmap.Completion.BATCH_DONE, sequence)
        model.run_until_idle()
        while (head := FifoRetireHead.unpack(model.read(regmap.FIFO + regmap.Fifo.RETIRE_HEAD, width=8))).valid:
            model.write(regmap.FIFO + regmap.Fifo.RETIRE_POP, head.index)
            model.run_until_idle()
