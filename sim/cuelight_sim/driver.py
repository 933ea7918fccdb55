"""Random hosts, lanes and operators, well and badly behaved, for a device in lockstep with the golden model."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from cuelight import regmap

from .actor import Actor
from .commands import CANCEL
from .hosts import Hosts
from .lanes import Lanes
from .lockstep import Lockstep
from .operators import Operators, lane_register
from .refusals import Refusals
from .slots import SlotState

__all__ = ["Driver"]

_ACTIONS_PER_MOOD = 150


class Driver(Actor):
    """Does random things.

    Parameters
    ----------
    random
        Makes every choice.
    lockstep
        Fresh models.
    """

    def __init__(self, random: Random, lockstep: Lockstep) -> None:
        super().__init__(random, lockstep)
        self._hosts = hosts = Hosts(random, lockstep)
        lanes = Lanes(random, lockstep)
        self._operators = operators = Operators(random, lockstep)
        self._refusals = Refusals(random, lockstep)
        self._actions: dict[Callable[[], None], int] = {
            hosts.admit_automatic: 30,
            hosts.admit_manual: 8,
            hosts.advance_manual: 10,
            hosts.cancel_some: 10,
            hosts.cancel_twice: 2,
            hosts.park_some: 12,
            hosts.credit_some: 20,
            hosts.park_queued: 6,
            hosts.discard_half_command: 3,
            hosts.pop_retirement: 30,
            hosts.pop_reject: 8,
            hosts.pop_trace: 8,
            hosts.crowd: 1,
            hosts.rush: 2,
            hosts.stampede: 1,
            hosts.overtake: 8,
            self.flood: 1,
            self._refusals.refuse: 16,
            lanes.serve_lane: 60,
            lanes.serve_group: 12,
            lanes.report_members: 12,
            lanes.report_anybody: 2,
            lanes.complete_wrongly: 8,
            lanes.write_finished_wrongly: 4,
            lanes.pop_poll: 12,
            lanes.reoffer: 6,
            operators.configure: 4,
            operators.set_sequence: 2,
            operators.set_policy: 8,
            operators.set_depth: 2,
            operators.set_pipeline: 2,
            operators.reset_group: 1,
            operators.ambush: 8,
            operators.empty_house: 1,
            operators.random_write: 6,
            operators.read: 10,
            self.pass_time: 20,
            self.rest: 3,
        }

    def settle(self) -> None:
        """Gives a fresh device a small model and some credit, so that passes are short and credit runs out."""
        self.pass_time()
        self.write32(regmap.CONTROL + regmap.Control.STAGE_COUNT, self.random.randint(4, min(7, self.sizes.stages)))
        self.write32(regmap.CONTROL + regmap.Control.PAGE_ENABLE, self.random.choice((0xFF, 0x01, 0x5A | 1)))
        for group in self.golden.groups:
            base = regmap.GROUP + group.index * regmap.GROUP_STRIDE
            self.write32(base + regmap.Group.KV_BLOCKS, self.random.choice((50, 400, 0xFFFF)))
            self.write32(lane_register(group.index, regmap.Lane.DEPTH), self.random.choice((1, 2)))
        if self.random.random() < 0.5:
            self._operators.build_pipelines()

    def steps(self, count: int) -> None:
        """Does ``count`` random actions, with a mood that changes now and then."""
        weights: list[int] = []
        for number in range(count):
            if number % _ACTIONS_PER_MOOD == 0:
                # One action is always possible, whatever the mood.
                weights = [weight * self.random.choice((0, 1, 1, 1, 1, 4)) for weight in self._actions.values()] + [1]
            self.random.choices([*self._actions, self.pass_time], weights)[0]()

    def flood(self) -> None:
        """Admissions until hardly a slot is free, then one on a page that has no offer."""
        self._hosts.flood()
        self._refusals.ask_without_offer()

    def drain(self) -> None:
        """Ends every request that is left, and leaves the device empty."""
        self.rest()
        self.write32(regmap.CONTROL + regmap.Control.PAGE_ENABLE, 0xFF)
        for slot, state in enumerate(self.golden.slots.state):
            if state not in (SlotState.FREE, SlotState.RETIRED):
                self.command(0, self.golden.slots.epoch[slot] << 16 | slot, CANCEL)
        for group in self.golden.groups:
            while not group.empty:
                for lane in group.lanes:
                    self.complete(lane, 0)
                self.rest()
        while self.golden.slots.retirements:
            self.write32(regmap.FIFO + regmap.Fifo.RETIRE_POP, self.golden.slots.retire_index)
        self.rest()
