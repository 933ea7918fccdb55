"""A scheduler with one lane, and a witness of its commit ports, who remembers what they said (docs/device.md §8)."""

from __future__ import annotations

from amaranth.hdl import Array, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, connect, flipped

from cuelight_rtl.params import Params
from cuelight_rtl.registers import Bus
from cuelight_rtl.regmap import CommitKind
from cuelight_rtl.scheduler import Scheduler
from cuelight_rtl.slots import Life

__all__ = ["SECOND", "Witness"]

SECOND = 2
"""Passes that a group may have alive."""


class Witness(wiring.Component):
    """Knows of each slot, seat and pass what commits have said so far.

    ``life``, ``id`` and ``blocks`` are by slot, ``sits`` and ``sitter`` by seat; ``forming``, ``alive``, ``looping``
    and ``stage``, the latest that was dispatched, by pass. ``retired`` are the slots in the order of retirement.
    ``sequences`` are those of the outstanding dispatches, the oldest first.
    """

    def __init__(self, params: Params) -> None:
        super().__init__({"bus": In(Bus())})
        self.scheduler = Scheduler(params)
        slots, seats = range(params.slots), range(params.seats)
        self.core, self.lane, self.pages = self.scheduler.commits
        self.life = Array(Signal(Life, name=f"life_{slot}") for slot in slots)
        self.id = Array(Signal(32, name=f"id_{slot}") for slot in slots)
        self.blocks = Array(Signal(16, name=f"blocks_{slot}") for slot in slots)
        self.offered = Signal(params.slots)
        self.retired = Array(Signal(params.slot_bits, name=f"retired_{place}") for place in slots)
        self.retired_count = Signal(range(params.slots + 1))
        self.freed = Signal(32)
        self.sits = Signal(params.seats)
        self.sitter = Array(Signal(params.slot_bits, name=f"sitter_{seat}") for seat in seats)
        self.forming, self.alive, self.looping = (Signal(SECOND, name=name) for name in ("forming", "alive", "looping"))
        self.stage = Array(Signal(8, name=f"stage_{k}") for k in range(SECOND))
        self.sequences = Array(Signal(32, name=f"sequence_{place}") for place in range(2))
        self.outstanding = Signal(range(3))
        self.untaken = Signal(range(3))
        self._params = params

    def says(self, kind: CommitKind) -> Value:
        """Whether the core commits ``kind``."""
        return self.core.valid & (self.core.kind == kind)

    def tells(self, kind: CommitKind) -> Value:
        """Whether the lane commits ``kind``."""
        return self.lane.valid & (self.lane.kind == kind)

    @property
    def slot(self) -> Value:
        """Slot of the core's commit."""
        return self.core.id[: self._params.slot_bits]

    @property
    def seat(self) -> Value:
        """Seat of the core's commit, where it has one."""
        return Mux(self.says(CommitKind.RETIRE), self.core.detail[:8], self.core.stage)[: self._params.seat_bits]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.scheduler = self.scheduler
        connect(m, flipped(self.bus), self.scheduler.bus)
        self._watch_slots(m)
        self._watch_passes(m)
        self._watch_lane(m)
        return m

    def _watch_slots(self, m: Module) -> None:
        core, slot = self.core, self.slot
        life, seat = self.life[slot], self.seat
        one = 1 << seat
        effect = core.stage
        with m.If(core.valid), m.Switch(core.kind):
            with m.Case(CommitKind.ADMIT):
                m.d.sync += [
                    life.eq(Mux(core.stage[3], Life.QUEUED, Life.RUNNING)),
                    self.id[slot].eq(core.id),
                    self.blocks[slot].eq(Mux(core.stage[3], core.detail, 0)),
                    self.offered.bit_select(slot, 1).eq(0),
                ]
            with m.Case(CommitKind.RETARGET):
                m.d.sync += life.eq(Life.RUNNING)
            with m.Case(CommitKind.STAGE_DONE), m.If(life == Life.RUNNING):
                m.d.sync += life.eq(Life.WAITING)
            with m.Case(CommitKind.CANCEL):
                with m.If(effect == 0):
                    m.d.sync += life.eq(Life.FREE)
                with m.If(effect == 1):
                    m.d.sync += self.blocks[slot].eq(0)
            with m.Case(CommitKind.PARK), m.If(effect == 1):
                m.d.sync += life.eq(Life.PARKED)
            with m.Case(CommitKind.CREDIT), m.If(effect == 1):
                m.d.sync += life.eq(Life.QUEUED)
            with m.Case(CommitKind.SEAT):
                m.d.sync += [life.eq(Life.SEATED), self.sits.eq(self.sits | one), self.sitter[seat].eq(slot)]
            with m.Case(CommitKind.PAUSE):
                m.d.sync += [life.eq(Mux(core.detail[8], Life.PARKED, Life.QUEUED)), self.sits.eq(self.sits & ~one)]
            with m.Case(CommitKind.RETIRE):
                m.d.sync += [
                    life.eq(Life.RETIRED),
                    self.blocks[slot].eq(0),
                    self.retired[self.retired_count].eq(slot),
                    self.retired_count.eq(self.retired_count + 1),
                ]
                with m.If(~core.detail[8]):
                    m.d.sync += self.sits.eq(self.sits & ~one)
            with m.Case(CommitKind.FREE):
                m.d.sync += [life.eq(Life.FREE), self.freed.eq(self.freed + 1)]
                m.d.sync += self.retired_count.eq(self.retired_count - 1)
                m.d.sync += [self.retired[place].eq(self.retired[place + 1]) for place in range(len(self.retired) - 1)]
        offer = self.pages.id[: self._params.slot_bits]
        with m.If(self.pages.valid):
            m.d.sync += self.offered.bit_select(offer, 1).eq(self.pages.kind == CommitKind.OFFER)

    def _watch_passes(self, m: Module) -> None:
        says = self.says
        named = Mux(self.core.stage[0], 0b10, 0b01)
        with m.If(says(CommitKind.PLAN)):
            m.d.sync += [self.forming.eq(named), self.looping.eq(0), self.stage[self.core.stage[0]].eq(0)]
        with m.If(says(CommitKind.FORM)):
            m.d.sync += self.forming.eq(0)
            with m.If(self.core.detail != 0):
                m.d.sync += self.alive.eq(self.alive | self.forming)
        with m.If(says(CommitKind.LOOP_POINT)):
            m.d.sync += [self.alive.eq(self.alive & ~named), self.looping.eq(named)]
        with m.If(says(CommitKind.GROUP_RESET)):
            m.d.sync += [self.forming.eq(0), self.alive.eq(0), self.looping.eq(0)]

    def _watch_lane(self, m: Module) -> None:
        goes, ends, taken = (self.tells(kind) for kind in (CommitKind.DISPATCH, CommitKind.COMPLETE, CommitKind.TAKEN))
        with m.If(goes):
            m.d.sync += [
                self.stage[self.lane.detail[10]].eq(self.lane.stage),
                self.sequences[self.outstanding].eq(self.lane.id),
                self.outstanding.eq(self.outstanding + 1),
                self.untaken.eq(self.untaken + 1),
            ]
        with m.If(ends):
            m.d.sync += [self.sequences[0].eq(self.sequences[1]), self.outstanding.eq(self.outstanding - 1)]
            with m.If(self.untaken == self.outstanding):
                m.d.sync += self.untaken.eq(self.untaken - 1)
        with m.If(taken):
            m.d.sync += self.untaken.eq(self.untaken - 1)
        with m.If(self.tells(CommitKind.REOFFERED)):
            m.d.sync += self.untaken.eq(self.outstanding)
        with m.If(self.says(CommitKind.GROUP_RESET)):
            m.d.sync += [self.outstanding.eq(0), self.untaken.eq(0)]
