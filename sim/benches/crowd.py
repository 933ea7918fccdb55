"""A full house whose loop points keep the core busy, so that a script can act on another group in the meantime."""

from __future__ import annotations

from dataclasses import dataclass, field

from cuelight import regmap
from cuelight.regmap import CommitKind, DispatchHead
from cuelight_sim.situations import situation

from .bench import Bench
from .host import Host
from .lane import Lane

__all__ = ["Crowd", "pop_retirements", "to_the_last"]


@dataclass
class Crowd:
    """As many requests as a group has seats.

    Commands go first between any two steps of the core, but a loop point of one group is finished before the core
    works for another one. So what a script does to other groups while this one holds the core stays undone for a while.

    Parameters
    ----------
    it
        The bench.
    group
        The group, of one lane.
    """

    it: Bench
    group: int = 1
    requests: list[int] = field(default_factory=list)
    last: DispatchHead = field(default_factory=DispatchHead)
    """Of the present pass, taken and not completed."""

    @property
    def lane(self) -> Lane:
        return Lane(self.it, self.group)

    async def gather(self, count: int = 16) -> None:
        """Joins with short prompts, of which all but one come along in the present pass, up to its last dispatch."""
        host = Host(self.it)
        self.requests = [await host.join(rows=1, group=self.group) for _ in range(count)]
        await self.lane.serve_pass()
        self.last = await to_the_last(self.lane)

    async def hold(self, *, finished: bool = False) -> None:
        """Begins the loop point: prompts advance at the first one, everybody may have finished at a later one."""
        lane = self.lane
        if finished:
            await lane.finish(self.last.sequence, (1 << self.it.params.seats) - 1)
        self.it.bus.pause = (0,)
        await lane.done(self.last.sequence)
        await self.it.expect(CommitKind.LOOP_POINT, lane=self.group)

    @property
    def holds(self) -> bool:
        """The loop point is certainly not over."""
        self.it.lockstep.follow()
        return situation(self.it.golden.groups[self.group]) == "loop point"

    async def go_on(self) -> None:
        """To the last dispatch of the next pass."""
        self.it.bus.pause = (0, 0, 0, 1, 2, 7)
        self.last = await to_the_last(self.lane)

    async def leave(self) -> None:
        """Everybody finishes, and the slots are free again."""
        await self.go_on()
        await self.hold(finished=True)
        self.it.bus.pause = (0, 0, 0, 1, 2, 7)
        await pop_retirements(self.it)


async def to_the_last(lane: Lane) -> DispatchHead:
    """Serves a pass up to its last dispatch on the lane, which is taken only."""
    while not (head := await lane.take()).last:
        await lane.done(head.sequence)
        await lane.it.expect(CommitKind.COMPLETE, lane=lane.number, id=head.sequence)
    return head


async def pop_retirements(it: Bench) -> None:
    """Frees the slots of all that have retired, once the device rests."""
    await it.rest()
    while it.golden.slots.retirements:
        index = it.golden.slots.retire_index
        await it.write32(regmap.FIFO + regmap.Fifo.RETIRE_POP, index)
        await it.expect(CommitKind.FREE, detail=index)
        await it.rest()
