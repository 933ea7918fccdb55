"""Lanes: the passes that walk over them, and their dispatches.

=========  ====================================================
pipelines  which lanes serve which group, which runs a stage
walk       a pass on its way through the stages
dispatch   a lane: whose stage goes next, sequences, completions
=========  ====================================================
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Array, Cat, Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .dispatch import Dispatcher
from .params import Params
from .pipelines import Pipelines
from .walk import Walker

__all__ = ["Lanes"]


class Lanes(wiring.Component):
    """All lanes, wired with the walkers of all passes; rooms of passes are numbered as in `passes`.

    ``finish_seats`` are the seats that a lane reports finished with a completion of the pass in each room. ``planned``
    says that a pass is planned in ``plan_room``.
    """

    def __init__(self, params: Params) -> None:
        self._params = params
        rooms = 2 * params.lanes
        super().__init__(
            {
                "time_ns": In(64),
                "planned": In(1),
                "plan_room": In(range(rooms)),
                "finish_seats": Out(params.seats).array(rooms),
                "active": Out(1),
            }
        )
        self.pipelines = Pipelines(params)
        self.walkers = [Walker(params, room, self.pipelines) for room in range(rooms)]
        self.dispatchers = [Dispatcher(params, lane) for lane in range(params.lanes)]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.pipelines = self.pipelines
        for room, walker in enumerate(self.walkers):
            m.submodules[f"walk_{room}"] = walker
        for index, lane in enumerate(self.dispatchers):
            m.submodules[f"lane_{index}"] = lane
            self._wire_lane(m, index)
        for room in range(len(self.walkers)):
            self._wire_walker(m, room)
        m.d.comb += self.active.eq(
            Cat(*(lane.active for lane in self.dispatchers), *(walker.due for walker in self.walkers)).any()
        )
        return m

    def _wire_lane(self, m: Module, index: int) -> None:
        lane = self.dispatchers[index]
        walkers = [self.walkers[room] for room in lane.rooms]
        begins = Array(walker.begins for walker in self.walkers)[self.plan_room]
        for place, walker in enumerate(walkers):
            here = walker.next.lane == index
            m.d.comb += [lane.next[place].eq(walker.next), lane.ready[place].eq(walker.ready & here)]
        m.d.comb += [
            lane.time_ns.eq(self.time_ns),
            lane.planned.eq(self.planned & (begins == index)),
            lane.arrives.eq(Cat(walker.arrives & (walker.next.lane == index) for walker in walkers).any()),
        ]

    def _wire_walker(self, m: Module, room: int) -> None:
        walker = self.walkers[room]
        lanes = [(lane, lane.rooms.index(room)) for lane in self.dispatchers if room in lane.rooms]
        done = [lane.done[place] for lane, place in lanes]
        m.d.comb += [
            walker.go.eq(Cat(lane.go[place] for lane, place in lanes).any()),
            walker.done.eq(Cat(done).any()),
            walker.done_final.eq(Cat(lane.done[place] & lane.done_final for lane, place in lanes).any()),
            self.finish_seats[room].eq(
                reduce(or_, (Mux(now, lane.finish_seats, 0) for now, (lane, _) in zip(done, lanes, strict=True)))
            ),
        ]
