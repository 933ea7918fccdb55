"""A pass on its way through the stages and, in a pipeline, from lane to lane (docs/device.md §6, §7)."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .params import Params
from .pipelines import Pipelines

__all__ = ["NextStage", "Walker"]

KV_INIT = 1
FIRST_LAYER = 2


class NextStage(data.Struct):
    """The stage that a pass runs next."""

    stage: 8
    lane: 3
    first: 1
    """The pass's first on the lane."""
    last: 1
    """Its last on the lane."""
    final: 1
    """Its last."""


class Walker(wiring.Component):
    """The stages of the pass in a room: kv-init where an entry binds, all layer stages, output decode if a row samples.

    ``start`` begins a pass; ``next`` is ``ready`` to be dispatched, which ``go`` says was done. ``done`` says that a
    dispatch is complete, ``done_final`` that it was the last; ``due`` rises then, until ``loop`` (the loop point has
    begun). ``arrives`` rises with the completion by which the pass can go on to another lane. ``begins`` is the lane of
    a pass's first stage.
    """

    def __init__(self, params: Params, room: int, pipelines: Pipelines) -> None:
        self._params = params
        self._room = room
        self._pipelines = pipelines
        super().__init__(
            {
                "stage_count": In(8),
                "start": In(1),
                "binds": In(1),
                "samples": In(1),
                "go": In(1),
                "done": In(1),
                "done_final": In(1),
                "loop": In(1),
                "drop": In(1),
                "next": Out(NextStage),
                "ready": Out(1),
                "walking": Out(1),
                "begins": Out(3),
                "arrives": Out(1),
                "due": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        stage = Signal(8, init=FIRST_LAYER)
        final_stage = Signal(8)
        lane = Signal(3)
        fresh = Signal()
        binding = Signal()
        outstanding = Signal(2)
        following = Signal(3)
        final = Signal()
        m.d.comb += [
            self.begins.eq(self._runs(FIRST_LAYER)),
            following.eq(self._runs(stage + 1)),
            final.eq(~binding & (stage == final_stage)),
            self.next.stage.eq(Mux(binding, KV_INIT, stage)),
            self.next.lane.eq(lane),
            self.next.first.eq(fresh),
            self.next.last.eq(final | (~binding & (following != lane))),
            self.next.final.eq(final),
            self.ready.eq(self.walking & (~fresh | (outstanding == 0))),
            self.arrives.eq(self.done & (outstanding == 1) & self.walking & fresh),
        ]
        m.d.sync += outstanding.eq(outstanding + self.go - self.done)
        with m.If(self.go):
            m.d.sync += [fresh.eq(0), binding.eq(0)]
            with m.If(~binding):
                m.d.sync += [stage.eq(stage + 1), self.walking.eq(~final), lane.eq(following)]
                with m.If(following != lane):
                    m.d.sync += [fresh.eq(1), binding.eq(self.binds)]
        with m.If(self.start):
            m.d.sync += [
                stage.eq(FIRST_LAYER),
                final_stage.eq(self.stage_count - Mux(self.samples, 1, 2)),
                lane.eq(self.begins),
                fresh.eq(1),
                binding.eq(self.binds),
                self.walking.eq(1),
            ]
        with m.If(self.done_final):
            m.d.sync += self.due.eq(1)
        with m.If(self.loop):
            m.d.sync += self.due.eq(0)
        with m.If(self.drop):
            m.d.sync += [self.walking.eq(0), self.due.eq(0), outstanding.eq(0)]
        return m

    def _runs(self, stage: Value | int) -> Value | int:
        """Lane that runs ``stage``; a second pass stays on its lane."""
        if self._room >= self._params.lanes:
            return self._room - self._params.lanes
        return self._pipelines.runs(self._room, stage)
