"""A lane: walks a pass through its stages, one dispatch after the other, and takes completions."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.hdl._ast import Statement
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .commit import CommitPort, report
from .params import Params
from .regmap import CommitKind, DispatchHead, DispatchPass, DispatchTail, Lane, LaneLaneStatus

__all__ = ["Dispatcher"]

CYCLES_MAX = 0xFFF


def following(sequence: Signal) -> Cat:
    """Sequence after ``sequence``: low halves 0 and 0xFFFF are skipped, so a stamp is never blank memory."""
    wraps = sequence[:16] == 0xFFFE
    return Cat(Mux(wraps, 1, sequence[:16] + 1)[:16], (sequence[16:] + wraps)[:16])


class Dispatcher(wiring.Component):
    """Dispatches a lane's stages (docs/device.md §6, §7).

    ``start`` begins a pass: stage 1 if an entry binds, all layer stages, output decode if a row samples. ``due``
    rises when its last dispatch is complete and falls with ``loop`` (the loop point has begun). ``drop`` forgets
    everything but the sequence. ``active``: something will happen without a write.

    A FINISHED or BATCH_DONE write comes as ``done_write`` with its entry and data; ``finish`` hands the seats reported
    with an accepted completion on to the pass. ``awaited`` are the members of the pass for which ``report`` may still
    report the oldest dispatch.
    """

    def __init__(self, params: Params, index: int) -> None:
        self._params = params
        self._index = index
        seats = params.seats
        super().__init__(
            {
                "time_ns": In(64),
                "stage_count": In(8),
                "planned": In(1),
                "start": In(1),
                "binds": In(1),
                "samples": In(1),
                "rows": In(10),
                "number": In(32),
                "count": In(5),
                "in_pass": In(1),
                "rest": In(1),
                "loop": In(1),
                "drop": In(1),
                "resetting": In(1),
                "set_sequence": In(1),
                "set_depth": In(1),
                "members": In(seats),
                "report": In(1),
                "report_seat": In(params.seat_bits),
                "value": In(32),
                "finished_write": In(1),
                "finished_pair": In(2),
                "finished_words": In(64),
                "finished_enable": In(2),
                "done_write": In(1),
                "done_sequence": In(32),
                "entry": In(4),
                "taken_write": In(1),
                "finish": Out(1),
                "finish_seats": Out(seats),
                "awaited": Out(seats),
                "due": Out(1),
                "sequence": Out(32, init=Lane.SEQUENCE_RESET),
                "depth": Out(2, init=Lane.DEPTH_RESET),
                "outstanding": Out(1),
                "offered": Out(1),
                "stamp": Out(16),
                "head": Out(DispatchHead),
                "second": Out(DispatchPass),
                "tail": Out(DispatchTail),
                "status": Out(LaneLaneStatus),
                "busy_ns": Out(64),
                "active": Out(1),
                "taken_ignored": Out(1),
                "decided": Out(1),
                "decision_cycles": Out(12),
                "step": Out(CommitPort()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # Two places for outstanding dispatches, the oldest first.
        places = [Outstanding(f"{name}") for name in ("oldest", "newest")]
        oldest, newest = places
        stage, last_stage = Signal(8), Signal(8)
        walking, first = Signal(), Signal()
        since_ns = Signal(64)
        complete = self._take_completions(m, oldest)
        ahead = newest.valid | (oldest.valid & (self.depth == 1))
        # One commit a cycle: a write of the lane goes first.
        dispatch = Signal()
        m.d.comb += dispatch.eq(walking & ~ahead & ~self.drop & ~self.done_write & ~self.taken_write & ~complete)
        cycles = self._count_cycles(m, complete, dispatch)

        with m.If(self.start):
            m.d.sync += [
                stage.eq(Mux(self.binds, 1, 2)),
                last_stage.eq(self.stage_count - Mux(self.samples, 1, 2)),
                first.eq(1),
                walking.eq(1),
            ]
        last = stage == last_stage
        with m.If(dispatch):
            m.d.sync += [
                stage.eq(stage + 1),
                walking.eq(~last),
                self.sequence.eq(following(self.sequence)),
                first.eq(0),
            ]
            with m.If(first):
                m.d.sync += self.stamp.eq(self.sequence[:16])
            with m.If(oldest.valid):
                m.d.sync += newest.put(self.sequence, stage, first, last)
            with m.Else():
                m.d.sync += [*oldest.put(self.sequence, stage, first, last), since_ns.eq(self.time_ns)]
            report(
                m,
                self.step,
                CommitKind.DISPATCH,
                lane=self._index,
                stage=stage,
                id=self.sequence,
                detail=Cat(self.rows, Const(0, 6), cycles, first, last, self.samples),
            )
        with m.If(complete):
            m.d.sync += [
                *oldest.move(newest),
                newest.valid.eq(0),
                self.due.eq(oldest.last),
                self.busy_ns.eq(self.busy_ns + (self.time_ns - since_ns)),
                since_ns.eq(self.time_ns),
            ]
        self._offer(m, oldest, newest)

        with m.If(self.loop):
            m.d.sync += self.due.eq(0)
        with m.If(self.set_sequence):
            m.d.sync += self.sequence.eq(self.value)
        with m.If(self.set_depth):
            m.d.sync += self.depth.eq(self.value)
        with m.If(self.drop):
            m.d.sync += [walking.eq(0), oldest.valid.eq(0), newest.valid.eq(0), self.due.eq(0)]
        m.d.comb += [
            self.active.eq(self.due | (walking & ~ahead)),
            self.outstanding.eq(oldest.valid),
            self.status.outstanding.eq(oldest.valid),
            self.status.offered.eq(self.offered),
            self.status.in_pass.eq(self.in_pass),
            self.status.resetting.eq(self.resetting),
            self.status.stage.eq(Mux(oldest.valid, oldest.stage, 0)),
        ]
        return m

    def _count_cycles(self, m: Module, complete: Value, dispatch: Value) -> Signal:
        """Cycles from the cause of a decision to its dispatch."""
        counting = Signal()
        cycles = Signal(12)
        with m.If(complete | (self.planned & ~counting)):
            m.d.sync += [counting.eq(1), cycles.eq(1)]
        with m.Elif(dispatch | self.rest):
            m.d.sync += counting.eq(0)
        with m.Elif(counting & (cycles != CYCLES_MAX)):
            m.d.sync += cycles.eq(cycles + 1)
        m.d.comb += [self.decided.eq(dispatch), self.decision_cycles.eq(Mux(counting, cycles, 1))]
        return self.decision_cycles

    def _take_completions(self, m: Module, oldest: Outstanding) -> Signal:
        """Completion entries and member by member reports of the oldest dispatch."""
        kept = Signal(self._params.seats)
        mine = oldest.valid & (self.entry == oldest.sequence[:4])
        complete, reported = Signal(), Signal()
        done = self.done_write & mine & (self.done_sequence == oldest.sequence)
        m.d.comb += complete.eq((done | (reported & oldest.valid)) & ~self.drop)

        # The last member's report completes the dispatch in the cycle after.
        unreported = Signal(self._params.seats)
        m.d.comb += self.awaited.eq(Mux(oldest.valid, self.members & unreported, 0))
        m.d.sync += reported.eq(0)
        with m.If(self.report):
            reporting = (1 << self.report_seat)[: self._params.seats]
            m.d.sync += [unreported.eq(unreported & ~reporting), reported.eq((self.awaited & ~reporting) == 0)]

        with m.If(self.finished_write & mine):
            for word in range((self._params.seats + 31) // 32):
                pair, half = divmod(word, 2)
                seats = slice(32 * word, min(32 * word + 32, self._params.seats))
                with m.If((self.finished_pair == pair) & self.finished_enable[half]):
                    data = self.finished_words[32 * half : 32 * half + 32]
                    m.d.sync += kept[seats].eq(kept[seats] | data)
        with m.If(complete | ~oldest.valid):
            m.d.sync += [kept.eq(0), unreported.eq(~Const(0, self._params.seats))]
        m.d.comb += [self.finish.eq(complete), self.finish_seats.eq(kept)]
        with m.If(complete):
            report(m, self.step, CommitKind.COMPLETE, lane=self._index, stage=oldest.stage, id=oldest.sequence)
        with m.Elif(self.done_write):
            report(m, self.step, CommitKind.COMPLETE_IGNORED, lane=self._index, id=self.done_sequence)
        return complete

    def _offer(self, m: Module, oldest: Outstanding, newest: Outstanding) -> None:
        """The poll head: the oldest dispatch that nobody has taken."""
        for place in (newest, oldest):
            with m.If(place.valid & ~place.taken):
                m.d.comb += [
                    self.offered.eq(1),
                    self.head.sequence.eq(place.sequence),
                    self.head.stage.eq(place.stage),
                    self.head.buffer.eq(~self.number[0]),
                    self.head.first.eq(place.first),
                    self.head.last.eq(place.last),
                    self.head.samples.eq(self.samples),
                    self.head.rows.eq(self.rows),
                    self.second.pass_number.eq(self.number),
                    self.second.entries.eq(self.count),
                    self.second.stamp.eq(place.sequence[:16]),
                    self.tail.stamp.eq(place.sequence[:16]),
                ]
        hit = self.offered & (self.done_sequence == self.head.sequence)
        with m.If(self.taken_write):
            with m.If(hit):
                with m.If(oldest.taken):
                    m.d.sync += newest.taken.eq(1)
                with m.Else():
                    m.d.sync += oldest.taken.eq(1)
                report(m, self.step, CommitKind.TAKEN, lane=self._index, id=self.head.sequence)
            with m.Else():
                m.d.comb += self.taken_ignored.eq(1)


class Outstanding:
    """A dispatch that is not complete."""

    def __init__(self, name: str) -> None:
        self.valid = Signal(name=f"{name}_valid")
        self.sequence = Signal(32, name=f"{name}_sequence")
        self.stage = Signal(8, name=f"{name}_stage")
        self.first = Signal(name=f"{name}_first")
        self.last = Signal(name=f"{name}_last")
        self.taken = Signal(name=f"{name}_taken")

    def put(self, sequence: Value, stage: Value, first: Value, last: Value) -> list[Statement]:
        """Holds a new dispatch."""
        return [
            self.valid.eq(1),
            self.sequence.eq(sequence),
            self.stage.eq(stage),
            self.first.eq(first),
            self.last.eq(last),
            self.taken.eq(0),
        ]

    def move(self, other: Outstanding) -> list[Statement]:
        """Takes over what ``other`` holds."""
        return [getattr(self, name).eq(value) for name, value in vars(other).items()]
