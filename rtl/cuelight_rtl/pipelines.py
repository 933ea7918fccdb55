"""Which lanes serve which group, and which of them runs a stage."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from .params import Params
from .regmap import Lane

__all__ = ["Pipelines", "longest", "partners"]

LENGTHS = (1, 2, 4, 8)


def longest(params: Params, group: int) -> int:
    """Lanes of the longest pipeline that can begin at lane ``group``."""
    return max(n for n in LENGTHS if group % n == 0 and group + n <= params.lanes)


def partners(params: Params, lane: int) -> range:
    """Lanes that can be in a pipeline with ``lane``, itself among them."""
    length = max(n for n in LENGTHS if lane // n * n + n <= params.lanes)
    return range(lane // length * length, lane // length * length + length)


class Pipelines(wiring.Component):
    """The lanes' PIPELINE and FIRST_STAGE registers (docs/device.md §5), and what follows from them.

    ``owners`` has the group of each lane, ``absorbed`` the groups whose lanes are another's. ``vacant`` are the groups
    that could change theirs; ``legal`` says whether ``lane`` may have the PIPELINE ``value``.
    """

    def __init__(self, params: Params) -> None:
        self._params = params
        super().__init__(
            {
                "lane": In(3),
                "value": In(32),
                "set_pipeline": In(1),
                "set_first_stage": In(1),
                "vacant": In(params.lanes),
            }
        )
        lanes = range(params.lanes)
        self.lengths = [Signal(4, init=Lane.PIPELINE_RESET, name=f"length_{lane}") for lane in lanes]
        self.first_stages = [Signal(8, name=f"first_stage_{lane}") for lane in lanes]
        self.owners = [Signal(3, name=f"owner_{lane}") for lane in lanes]
        self.absorbed = Signal(params.lanes)
        self.legal = Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes = range(self._params.lanes)
        for lane in lanes:
            owner: Value | int = lane
            for length in LENGTHS[1:]:
                first = lane // length * length
                if first + length <= len(lanes):
                    owner = Mux(self.lengths[first] >= length, first, owner)
            m.d.comb += [self.owners[lane].eq(owner), self.absorbed[lane].eq(self.owners[lane] != lane)]
            with m.If(self.lane == lane):
                self._judge(m, lane)
                with m.If(self.set_pipeline):
                    m.d.sync += self.lengths[lane].eq(self.value)
                with m.If(self.set_first_stage):
                    m.d.sync += self.first_stages[lane].eq(self.value)
        return m

    def _judge(self, m: Module, lane: int) -> None:
        lengths = [n for n in LENGTHS if n <= longest(self._params, lane)]
        fits = Cat((self.value == n) & self.vacant[lane : lane + n].all() for n in lengths).any()
        leaves = Cat((self.lengths[lane] == n) & self.vacant[lane : lane + n].all() for n in lengths).any()
        m.d.comb += self.legal.eq(fits & leaves & ~self.absorbed[lane])

    def runs(self, room: int, stage: Value | int) -> Value:
        """Lane that runs layer stage ``stage`` of the pass in ``room``, one of a lane's."""
        lane: Value = self.owners[room]
        for other in partners(self._params, room)[1:]:
            above = (self.owners[other] == self.owners[room]) & self.absorbed[other]
            lane = Mux(above & (self.first_stages[other] <= stage), other, lane)
        return lane
