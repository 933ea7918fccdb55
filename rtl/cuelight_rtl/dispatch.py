"""A lane: walks a pass through its stages, one dispatch after the other, and takes completions."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
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
    everything but the sequence. A FINISHED or BATCH_DONE write comes as ``done_write`` with its entry and data;
    ``finish`` hands the seats reported with an accepted completion on to the pass.
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
                "due": Out(1),
                "sequence": Out(32, init=Lane.SEQUENCE_RESET),
                "outstanding": Out(1),
                "offered": Out(1),
                "stamp": Out(16),
                "head": Out(DispatchHead),
                "second": Out(DispatchPass),
                "tail": Out(DispatchTail),
                "status": Out(LaneLaneStatus),
                "busy_ns": Out(64),
                "walking": Out(1),
                "taken_ignored": Out(1),
                "decided": Out(1),
                "decision_cycles": Out(12),
                "step": Out(CommitPort()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        stage = Signal(8)
        last_stage = Signal(8)
        current = Signal(32)
        first = Signal()
        last = Signal()
        kept = Signal(self._params.seats)
        since_ns = Signal(64)
        lane = self._index

        m.d.comb += last.eq(stage == last_stage)
        # One commit a cycle: a write of the lane goes first.
        dispatch = self.walking & ~self.drop & ~self.done_write & ~self.taken_write
        complete = Signal()
        m.d.comb += complete.eq(
            self.done_write
            & self.outstanding
            & (self.done_sequence == current)
            & (self.entry == current[:4])
            & ~self.drop
        )

        # Cycles from the cause of a decision to its dispatch.
        counting = Signal()
        cycles = Signal(12)
        with m.If(complete | (self.planned & ~counting)):
            m.d.sync += [counting.eq(1), cycles.eq(1)]
        with m.Elif(dispatch | self.rest):
            m.d.sync += counting.eq(0)
        with m.Elif(counting & (cycles != CYCLES_MAX)):
            m.d.sync += cycles.eq(cycles + 1)
        m.d.comb += [self.decided.eq(dispatch), self.decision_cycles.eq(cycles)]

        with m.If(self.start):
            m.d.sync += [
                stage.eq(Mux(self.binds, 1, 2)),
                last_stage.eq(self.stage_count - Mux(self.samples, 1, 2)),
                first.eq(1),
                self.walking.eq(1),
            ]
        with m.If(dispatch):
            m.d.sync += [
                self.walking.eq(0),
                self.outstanding.eq(1),
                self.offered.eq(1),
                current.eq(self.sequence),
                self.sequence.eq(following(self.sequence)),
                since_ns.eq(self.time_ns),
                kept.eq(0),
            ]
            with m.If(first):
                m.d.sync += self.stamp.eq(self.sequence[:16])
            report(
                m,
                self.step,
                CommitKind.DISPATCH,
                lane=lane,
                stage=stage,
                id=self.sequence,
                detail=Cat(self.rows, Signal(6), cycles, first, last, self.samples),
            )

        with m.If(self.finished_write & self.outstanding & (self.entry == current[:4])):
            for word in range((self._params.seats + 31) // 32):
                pair, half = divmod(word, 2)
                seats = slice(32 * word, min(32 * word + 32, self._params.seats))
                with m.If((self.finished_pair == pair) & self.finished_enable[half]):
                    data = self.finished_words[32 * half : 32 * half + 32]
                    m.d.sync += kept[seats].eq(kept[seats] | data)
        m.d.comb += [self.finish.eq(complete), self.finish_seats.eq(kept)]
        with m.If(complete):
            m.d.sync += [
                self.outstanding.eq(0),
                self.offered.eq(0),
                first.eq(0),
                stage.eq(stage + 1),
                self.walking.eq(~last),
                self.due.eq(last),
                self.busy_ns.eq(self.busy_ns + (self.time_ns - since_ns)),
            ]
            report(m, self.step, CommitKind.COMPLETE, lane=lane, stage=stage, id=current)
        with m.Elif(self.done_write):
            report(m, self.step, CommitKind.COMPLETE_IGNORED, lane=lane, id=self.done_sequence)

        taken = self.offered & (self.done_sequence == current)
        with m.If(self.taken_write):
            with m.If(taken):
                m.d.sync += self.offered.eq(0)
                report(m, self.step, CommitKind.TAKEN, lane=lane, id=current)
            with m.Else():
                m.d.comb += self.taken_ignored.eq(1)

        with m.If(self.loop):
            m.d.sync += self.due.eq(0)
        with m.If(self.set_sequence):
            m.d.sync += self.sequence.eq(self.value)
        with m.If(self.drop):
            m.d.sync += [self.walking.eq(0), self.outstanding.eq(0), self.offered.eq(0), self.due.eq(0)]

        with m.If(self.offered):
            m.d.comb += [
                self.head.sequence.eq(current),
                self.head.stage.eq(stage),
                self.head.buffer.eq(~self.number[0]),
                self.head.first.eq(first),
                self.head.last.eq(last),
                self.head.samples.eq(self.samples),
                self.head.rows.eq(self.rows),
                self.second.pass_number.eq(self.number),
                self.second.entries.eq(self.count),
                self.second.stamp.eq(current[:16]),
                self.tail.stamp.eq(current[:16]),
            ]
        m.d.comb += [
            self.status.outstanding.eq(self.outstanding),
            self.status.offered.eq(self.offered),
            self.status.in_pass.eq(self.in_pass),
            self.status.resetting.eq(self.resetting),
            self.status.stage.eq(Mux(self.outstanding, stage, 0)),
        ]
        return m
