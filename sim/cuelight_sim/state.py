"""All state of the golden model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from cuelight import regmap

from .fifos import Counters, EventTrace, RejectFifo
from .group import Group
from .lane import Lane, server_of
from .pages import ProducerPage
from .slots import Slots
from .tiers import TIERS, Tier

__all__ = ["Control", "Sizes", "State"]


class Sizes(Protocol):
    """Sizes of a device; `cuelight_rtl.params.Params` has them."""

    @property
    def slots(self) -> int: ...
    @property
    def seats(self) -> int: ...
    @property
    def lanes(self) -> int: ...
    @property
    def stages(self) -> int: ...


@dataclass(slots=True)
class Control:
    """Settings of the whole device."""

    stage_count: int
    pages: int = 1
    """Bitmap of enabled pages."""


class State:
    """A device of the given sizes, just after reset.

    Parameters
    ----------
    sizes
        Slots, seats, lanes and stages.
    """

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.cycle = 0
        """Cycle of the latest commit."""
        self.control = Control(stage_count=sizes.stages)
        self.tiers = tuple(Tier() for _ in range(TIERS))
        self.slots = Slots(sizes.slots)
        self.counters = Counters()
        self.rejects = RejectFifo()
        self.trace = EventTrace()
        self.pages = tuple(ProducerPage() for _ in range(regmap.PAGE_COUNT))
        self.lanes = tuple(map(Lane, range(sizes.lanes)))
        self.groups = tuple(
            Group(
                lane,
                sizes.seats,
                self.slots,
                self.counters,
                self.tiers,
                lambda: self.control.stage_count,
                lambda: self.cycle,
            )
            for lane in self.lanes
        )
        self._served = list(self.groups)

    def group_of(self, lane: Lane) -> Group:
        """The group that a lane serves."""
        return self._served[lane.index]

    def arrange_lanes(self) -> None:
        """Gives lanes to groups anew, as the PIPELINE registers say."""
        self._served = [self.groups[server_of(self.lanes, lane.index)] for lane in self.lanes]
        for group in self.groups:
            group.lanes = tuple(lane for lane in self.lanes if self.group_of(lane) is group)
