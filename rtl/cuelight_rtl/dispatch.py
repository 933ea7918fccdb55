"""A lane: dispatches the stages of its passes, one after the other, and takes completions."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.hdl._ast import Statement
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .commit import CommitPort, report
from .encode import lowest
from .params import Params
from .passes import PassView
from .pipelines import partners
from .regmap import CommitKind, DispatchHead, DispatchPass, DispatchTail, Lane, LaneLaneStatus
from .walk import NextStage

__all__ = ["Dispatcher"]

CYCLES_MAX = 0xFFF


def following(sequence: Signal) -> Cat:
    """Sequence after ``sequence``: low halves 0 and 0xFFFF are skipped, so a stamp is never blank memory."""
    wraps = sequence[:16] == 0xFFFE
    return Cat(Mux(wraps, 1, sequence[:16] + 1)[:16], (sequence[16:] + wraps)[:16])


class Dispatcher(wiring.Component):
    """Dispatches a lane's stages (docs/device.md §6, §7).

    The lane takes stages of the passes in ``rooms``, which it knows by their place there: its own second pass comes
    first, then those of all lanes that it can be in a pipeline with. ``next``, ``ready`` and ``view`` are theirs;
    ``go`` says whose stage is dispatched, ``done`` whose dispatch is complete and ``done_final`` that it was the pass's
    last, with the seats reported finished. ``drop`` forgets everything but the sequence. ``active``: something will
    happen without a write.

    A FINISHED or BATCH_DONE write comes as ``done_write`` with its entry and data, POP and REOFFER as ``taken_write``
    and ``reoffer_write``; ``stale`` is one that names no dispatch it is meant for. ``awaited`` are the seats for which
    ``report`` may still report the oldest dispatch. ``offered_pass`` is the pass of the dispatch in the poll head,
    ``stamp`` that of its record.
    """

    def __init__(self, params: Params, index: int) -> None:
        self._params = params
        self._index = index
        self.rooms = [params.lanes + index, *partners(params, index)]
        seats, passes = params.seats, len(self.rooms)
        super().__init__(
            {
                "time_ns": In(64),
                "next": In(NextStage).array(passes),
                "ready": In(passes),
                "view": In(PassView(params)).array(passes),
                "planned": In(1),
                "arrives": In(1),
                "group": In(3),
                "in_pass": In(1),
                "rest": In(1),
                "drop": In(1),
                "resetting": In(1),
                "set_sequence": In(1),
                "set_depth": In(1),
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
                "reoffer_write": In(1),
                "go": Out(passes),
                "done": Out(passes),
                "done_final": Out(1),
                "finish_seats": Out(seats),
                "awaited": Out(seats),
                "sequence": Out(32, init=Lane.SEQUENCE_RESET),
                "depth": Out(2, init=Lane.DEPTH_RESET),
                "outstanding": Out(1),
                "oldest": Out(32),
                "offered": Out(1),
                "offered_pass": Out(range(passes)),
                "stamp": Out(16),
                "head": Out(DispatchHead),
                "second": Out(DispatchPass),
                "tail": Out(DispatchTail),
                "status": Out(LaneLaneStatus),
                "busy_ns": Out(64),
                "active": Out(1),
                "stale": Out(1),
                "decided": Out(1),
                "decision_cycles": Out(12),
                "step": Out(CommitPort()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # Two places for outstanding dispatches, the oldest first.
        places = [Outstanding(name, len(self.rooms)) for name in ("oldest", "newest")]
        oldest, newest = places
        since_ns = Signal(64)
        stamps = Array(Signal(16, name=f"stamp_{place}") for place in range(len(self.rooms)))
        complete = self._take_completions(m, oldest)
        ahead = newest.valid | (oldest.valid & (self.depth == 1))
        whose, some = self._choose(m)
        # One commit a cycle: a write of the lane goes first.
        written = self.done_write | self.taken_write | self.reoffer_write
        dispatch = Signal()
        m.d.comb += dispatch.eq(some & ~ahead & ~self.drop & ~written & ~complete)
        cycles = self._count_cycles(m, complete, dispatch)

        stage = Array(self.next)[whose]
        view = {name: Array(getattr(view, name) for view in self.view)[whose] for name in ("rows", "index", "samples")}
        with m.If(dispatch):
            m.d.comb += self.go.bit_select(whose, 1).eq(1)
            m.d.sync += self.sequence.eq(following(self.sequence))
            with m.If(stage.first):
                m.d.sync += stamps[whose].eq(self.sequence[:16])
            with m.If(oldest.valid):
                m.d.sync += newest.put(self.sequence, whose, stage)
            with m.Else():
                m.d.sync += [*oldest.put(self.sequence, whose, stage), since_ns.eq(self.time_ns)]
            report(
                m,
                self.step,
                CommitKind.DISPATCH,
                lane=self._index,
                stage=stage.stage,
                id=self.sequence,
                detail=Cat(view["rows"], view["index"], self.group, cycles, stage.first, stage.last, view["samples"]),
            )
        with m.If(complete):
            m.d.comb += [self.done.bit_select(oldest.whose, 1).eq(1), self.done_final.eq(oldest.final)]
            m.d.sync += [
                *oldest.move(newest),
                newest.valid.eq(0),
                self.busy_ns.eq(self.busy_ns + (self.time_ns - since_ns)),
                since_ns.eq(self.time_ns),
            ]
        self._offer(m, oldest, newest)
        m.d.comb += self.stamp.eq(stamps[self.offered_pass])

        with m.If(self.set_sequence):
            m.d.sync += self.sequence.eq(self.value)
        with m.If(self.set_depth):
            m.d.sync += self.depth.eq(self.value)
        with m.If(self.drop):
            m.d.sync += [oldest.valid.eq(0), newest.valid.eq(0)]
        m.d.comb += [
            self.active.eq(some & ~ahead),
            self.outstanding.eq(oldest.valid),
            self.oldest.eq(Mux(oldest.valid, oldest.sequence, 0)),
            self.status.outstanding.eq(oldest.valid),
            self.status.offered.eq(self.offered),
            self.status.in_pass.eq(self.in_pass),
            self.status.resetting.eq(self.resetting),
            self.status.stage.eq(Mux(oldest.valid, oldest.stage, 0)),
        ]
        return m

    def _choose(self, m: Module) -> tuple[Value, Value]:
        """Whose stage goes next, and whether there is one: the second pass, the pass before, the next in turn."""
        firsts = self.ready[1:]
        bits = range(max(len(firsts), 2))
        latest = Signal(bits)
        from_latest = Signal(len(firsts))
        whose, first = Signal(range(len(self.rooms))), Signal(bits)
        second = self.ready[0]
        m.d.comb += [
            from_latest.eq(firsts & (~Const(0, len(firsts)) << latest)[: len(firsts)]),
            first.eq(0 if len(firsts) == 1 else self._in_turn(m, firsts, from_latest)),
            whose.eq(Mux(second, 0, first + 1)),
        ]
        with m.If(self.go[1:].any()):
            m.d.sync += latest.eq(first)
        return whose, second | firsts.any()

    def _in_turn(self, m: Module, firsts: Value, from_latest: Value) -> Value:
        return Mux(from_latest.any(), lowest(m, from_latest, "turn"), lowest(m, firsts, "wrapped"))

    def _count_cycles(self, m: Module, complete: Value, dispatch: Value) -> Signal:
        """Cycles from the cause of a decision to its dispatch."""
        counting = Signal()
        cycles = Signal(12)
        with m.If(complete | self.arrives | (self.planned & ~counting)):
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
        complete = Signal()
        reported = Signal()
        done = self.done_write & mine & (self.done_sequence == oldest.sequence)
        m.d.comb += complete.eq((done | (reported & oldest.valid)) & ~self.drop)

        # The last member's report completes the dispatch in the cycle after.
        unreported = Signal(self._params.seats)
        members = Array(view.members for view in self.view)[oldest.whose]
        m.d.comb += self.awaited.eq(Mux(oldest.valid, members & unreported, 0))
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
        m.d.comb += self.finish_seats.eq(kept)
        with m.If(complete):
            report(m, self.step, CommitKind.COMPLETE, lane=self._index, stage=oldest.stage, id=oldest.sequence)
        with m.Elif(self.done_write):
            report(m, self.step, CommitKind.COMPLETE_IGNORED, lane=self._index, id=self.done_sequence)
        return complete

    def _offer(self, m: Module, oldest: Outstanding, newest: Outstanding) -> None:
        """The poll head: the oldest dispatch that nobody has taken."""
        for place in (newest, oldest):
            view = {
                name: Array(getattr(view, name) for view in self.view)[place.whose]
                for name in ("turned", "index", "samples", "rows", "number", "count")
            }
            with m.If(place.valid & ~place.taken):
                m.d.comb += [
                    self.offered.eq(1),
                    self.offered_pass.eq(place.whose),
                    self.head.sequence.eq(place.sequence),
                    self.head.stage.eq(place.stage),
                    self.head.buffer.eq(Cat(view["turned"], view["index"])),
                    self.head.first.eq(place.first),
                    self.head.last.eq(place.last),
                    self.head.samples.eq(view["samples"]),
                    self.head.rows.eq(view["rows"]),
                    self.second.pass_number.eq(view["number"]),
                    self.second.entries.eq(view["count"]),
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
                m.d.comb += self.stale.eq(1)
        with m.If(self.reoffer_write):
            with m.If(oldest.valid & (self.done_sequence == oldest.sequence)):
                m.d.sync += [oldest.taken.eq(0), newest.taken.eq(0)]
                report(m, self.step, CommitKind.REOFFERED, lane=self._index, id=oldest.sequence)
            with m.Else():
                m.d.comb += self.stale.eq(1)


class Outstanding:
    """A dispatch that is not complete; ``whose`` is the place of its pass among the lane's."""

    def __init__(self, name: str, passes: int) -> None:
        self.valid = Signal(name=f"{name}_valid")
        self.whose = Signal(range(passes), name=f"{name}_whose")
        self.sequence = Signal(32, name=f"{name}_sequence")
        self.stage = Signal(8, name=f"{name}_stage")
        self.first = Signal(name=f"{name}_first")
        self.last = Signal(name=f"{name}_last")
        self.final = Signal(name=f"{name}_final")
        self.taken = Signal(name=f"{name}_taken")

    def put(self, sequence: Value, whose: Value, stage: data.View) -> list[Statement]:
        """Holds a new dispatch."""
        return [
            self.valid.eq(1),
            self.whose.eq(whose),
            self.sequence.eq(sequence),
            *(getattr(self, name).eq(stage[name]) for name in ("stage", "first", "last", "final")),
            self.taken.eq(0),
        ]

    def move(self, other: Outstanding) -> list[Statement]:
        """Takes over what ``other`` holds."""
        return [getattr(self, name).eq(value) for name, value in vars(other).items()]
