"""Control writes, resets and plain noise."""

from __future__ import annotations

from collections.abc import Sequence

from cuelight import regmap

from .actor import Actor
from .group import Group
from .situations import situation
from .tiers import TIERS

__all__ = ["Operators", "lane_register"]

_AMBUSH_CYCLES = 300
_LEAST_STAGES = 4
"""Of a model for automatic requests."""


class Operators(Actor):
    """Configures, resets, interferes at bad moments, and writes anything anywhere."""

    def configure(self) -> None:
        """A control write, legal or not."""
        group = self.some_group()
        control, base = regmap.CONTROL, regmap.GROUP + group.index * regmap.GROUP_STRIDE
        seats, rows = self.sizes.seats, group.rows
        offset, values = self.random.choice(
            (
                (
                    control + regmap.Control.PAGE_ENABLE,
                    (0xFF, self.random.randrange(256), 0x1FF, self.random.randrange(256) | 1, 0xFF, 1 << 31),
                ),
                (control + regmap.Control.STAGE_COUNT, (4, 5, 6, 0, 1, self.sizes.stages, self.sizes.stages + 1, 3)),
                (base + regmap.Group.SEATS, (1, 3, seats, seats, seats + 1, 0, rows - 16, rows - 15)),
                (base + regmap.Group.ROWS, (group.seats + 16, group.seats + 15, 512, 513, 256, 100, 0)),
                (base + regmap.Group.KV_BLOCKS, (0, 60, 500, 0xFFFF, 0x1_0000)),
            )
        )
        self._set(offset, self.random.choice(values))

    def set_policy(self) -> None:
        """A write of what the policy is made of, legal or not."""
        group = self.some_group()
        tier = regmap.TIER + self.random.randrange(TIERS) * regmap.TIER_STRIDE
        base = regmap.GROUP + group.index * regmap.GROUP_STRIDE
        seats, word = self.sizes.seats, 0xFFFF_FFFF
        offset, values = self.random.choice(
            (
                (tier + regmap.Tier.MIN_SEATS, (0, 0, 1, 2, 5, seats // 2, seats, seats + 1, 1 << 16)),
                (tier + regmap.Tier.MIN_ROWS, (0, 0, 3, 8, 50, 200, 240, 512, 513, 1 << 10)),
                (tier + regmap.Tier.SEAT_FLOOR, (0, 0, 0, 1, 2, seats // 4, seats, seats + 1, 1 << 16)),
                (tier + regmap.Tier.KV_FLOOR, (0, 0, 1, 30, 390, 0xFFFF, 0x1_0000)),
                (base + regmap.Group.COST, (word, word, 0, 100, 1000, self.random.getrandbits(16), 1 << 31)),
                (base + regmap.Group.COST_DECODE, (0, 0, 1, 7, 500, 0xFFFF, 0x1_0000, word)),
                (
                    base + regmap.Group.COST_CHUNK,
                    (0, 1, 10, 2 << 16, 2 << 16 | 3, 0xFFFF, 0xFFFF << 16, word, self.random.getrandbits(32)),
                ),
            )
        )
        self._set(offset, self.random.choice(values))

    def set_depth(self) -> None:
        """A write of a lane's depth."""
        self._set_lane(regmap.Lane.DEPTH, (1, 1, 1, 2, 2, 0, 3, 1 << 16 | 1))

    def set_sequence(self) -> None:
        """A write of a lane's sequence, mostly near the end of a low half."""
        self._set_lane(
            regmap.Lane.SEQUENCE,
            (0xFFFF_FFFA, 0xFFFF_FFFE, 0x0001_FFFD, 0x7FFF_FFFE, 0, 0x1234_FFFF, 0x1_0000, 1),
        )

    def set_pipeline(self) -> None:
        """A write of which lanes make a pipeline, or of where in one a lane begins, legal or not."""
        stages = self.sizes.stages
        if self.random.random() < 0.5:
            self._set_lane(regmap.Lane.PIPELINE, (1, 1, 2, 2, 4, 8, 0, 3, 16, 1 << 16 | 2))
        else:
            self._set_lane(regmap.Lane.FIRST_STAGE, (0, 1, 2, 3, 3, 4, 5, 6, stages - 1, stages, 1 << 8, 1 << 31))

    def build_pipelines(self) -> None:
        """Pipelines of some sizes, with stages in the order of their lanes, mostly; the groups are empty."""
        for lanes, share in ((2, 0.7), (4, 0.4), (8, 0.4)):
            for first in range(0, self.sizes.lanes - lanes + 1, lanes):
                if self.random.random() < share:
                    self._set(lane_register(first, regmap.Lane.PIPELINE), lanes)
        stages = range(2, max(_LEAST_STAGES, self.golden.control.stage_count) + 1)
        for group in self.golden.groups:
            starts = sorted(self.random.choices(stages, k=len(group.lanes)))
            if self.random.random() < 0.2:
                self.random.shuffle(starts)
            for lane, start in zip(group.lanes, starts, strict=True):
                self._set(lane_register(lane.index, regmap.Lane.FIRST_STAGE), start)

    def _set_lane(self, register: int, values: Sequence[int]) -> None:
        lane = self.random.randrange(self.sizes.lanes)
        self._set(lane_register(lane, register), self.random.choice(values))

    def _set(self, offset: int, value: int) -> None:
        self.write32(offset, value)
        self.lockstep.run(1)

    def reset_group(self) -> None:
        """GROUP_RESET, now and then of a group that does not exist or is absorbed."""
        if self.random.random() < 0.3:
            absorbed = [group.index for group in self.golden.groups if group.absorbed]
            self.write32(
                regmap.CONTROL + regmap.Control.GROUP_RESET,
                self.random.choice(absorbed or (self.sizes.lanes, 8, 0xFFFF_FF00, 256)),
            )
        else:
            self.reset(self.some_group())

    def ambush(self) -> None:
        """Waits, cycle by cycle, for a group to do something, and interferes."""
        group = self.some_group()
        awaited = self.random.choice(
            ("forming", "loop point", "loop point", "resetting", "between dispatches", "no pass")
        )
        if awaited == "resetting" and self.random.random() < 0.3:
            self.reset(group)
        else:
            lane = self.some_lane(group)
            self.complete(lane, self.some_seats(lane))
        for _ in range(_AMBUSH_CYCLES):
            if situation(group) == awaited and (group.seated or awaited == "no pass"):
                break
            if self.random.random() < 0.2:
                self.complete(self.some_lane(group), 0)
            self.lockstep.run(1)
        else:
            return
        self.lockstep.run(self.random.choice((0, 0, 0, 1, 2, 5, 9)))
        strikes = (
            self._strike_all,
            self._strike_all,
            self._strike_one,
            self._strike_one,
            self._park_all,
            self._park_one,
            self._credit_all,
            lambda group: self.set_policy(),
            lambda group: self.reset(group),
        )
        self.random.choice(strikes)(group)

    def _strike_one(self, group: Group) -> None:
        if group.seated:
            self.cancel(self.random.choice(list(group.seated.values())).id)

    def _strike_all(self, group: Group) -> None:
        for request in list(group.seated.values()):
            self.cancel(request.id)

    def _park_one(self, group: Group) -> None:
        if group.seated:
            self.park(self.random.choice(list(group.seated.values())).id)

    def _park_all(self, group: Group) -> None:
        for request in list(group.seated.values()):
            self.park(request.id)

    def _credit_all(self, group: Group) -> None:
        early = self.random.random() < 0.5
        for request in list(group.seated.values()):
            if request.parked or early:
                self.credit(request.id)

    def empty_house(self) -> None:
        """Resets every group, so that settings may be changed, and changes some."""
        for group in self.golden.groups:
            if not group.absorbed:
                self.reset(group)
                for request in list(group.parked):
                    self.cancel(request.id)
        self.rest()
        for _ in range(self.random.randint(1, 6)):
            self.configure()
            self.set_sequence()
            self.set_depth()
            self.set_policy()
            self.set_pipeline()
        if self.random.random() < 0.5:
            for lane in self.golden.lanes:
                self._set(lane_register(lane.index, regmap.Lane.PIPELINE), 1)
            self.build_pipelines()

    def random_write(self) -> None:
        """A write of anything anywhere."""
        offset = self.random.choice(
            (
                self.random.randrange(0, 0x1_0000, 8),
                self.random.randrange(0x8000, 0x8C00, 8),
                regmap.PAGE + self.random.randrange(8) * regmap.PAGE_STRIDE + self.random.randrange(0, 0x38, 8),
            )
        )
        if offset == regmap.FIFO + regmap.Fifo.TRACE_POP:
            return
        self.lockstep.write(offset, self.random.getrandbits(64), self.random.getrandbits(8))

    def read(self) -> None:
        """A read while work may be going on."""
        lane = self.some_lane()
        self.lockstep.read(
            self.random.choice(
                (
                    self.page_offset(self.random.randrange(8), regmap.Page.REQ_STATUS),
                    self.page_offset(self.random.randrange(8), regmap.Page.OFFER_ID),
                    regmap.COUNTERS + regmap.Counters.ADMITTED,
                    regmap.COUNTERS + regmap.Counters.REJECTED,
                    lane_register(lane.index, regmap.Lane.SEQUENCE),
                    lane_register(lane.index, regmap.Lane.OLDEST),
                    regmap.POLL + lane.index * regmap.POLL_STRIDE + regmap.Poll.DISPATCH,
                    regmap.CONTROL + regmap.Control.PAGE_ENABLE,
                    regmap.FIFO + regmap.Fifo.REJECT_HEAD,
                )
            )
        )


def lane_register(lane: int, register: int) -> int:
    return regmap.LANE + lane * regmap.LANE_STRIDE + register
