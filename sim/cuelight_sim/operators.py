"""Control writes, resets and plain noise."""

from __future__ import annotations

from cuelight import regmap

from .actor import Actor
from .coverage import SETTINGS, situation
from .group import Group

__all__ = ["Operators"]

_AMBUSH_CYCLES = 300


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

    def set_sequence(self) -> None:
        """A write of a lane's sequence, mostly near the end of a low half."""
        group = self.some_group()
        value = self.random.choice((0xFFFF_FFFA, 0xFFFF_FFFE, 0x0001_FFFD, 0x7FFF_FFFE, 0, 0x1234_FFFF, 0x1_0000, 1))
        self._set(regmap.LANE + group.index * regmap.LANE_STRIDE + regmap.Lane.SEQUENCE, value)

    def _set(self, offset: int, value: int) -> None:
        refused = self.golden.counters.config_ignored
        self.write32(offset, value)
        self.lockstep.run(1)
        verdict = "accepted" if self.golden.counters.config_ignored == refused else "refused"
        self.coverage.note(f"{_setting(offset)} {verdict}")

    def reset_group(self) -> None:
        """GROUP_RESET, now and then of a group that does not exist."""
        if self.random.random() < 0.3:
            self.write32(
                regmap.CONTROL + regmap.Control.GROUP_RESET,
                self.random.choice((self.sizes.lanes, 8, 0xFFFF_FF00, 256)),
            )
        else:
            self.reset(self.some_group())

    def ambush(self) -> None:
        """Waits, cycle by cycle, for a group to do something, and interferes."""
        group = self.some_group()
        awaited = self.random.choice(("forming", "loop point", "resetting", "pass alive", "idle"))
        if awaited == "resetting" and self.random.random() < 0.3:
            self.reset(group)
        elif group.outstanding is not None:
            self.complete(group, self.some_seats(group))
        for _ in range(_AMBUSH_CYCLES):
            if situation(group) == awaited and (group.seated or awaited == "idle"):
                break
            if group.outstanding is not None and self.random.random() < 0.2:
                self.complete(group, 0)
            self.lockstep.run(1)
        else:
            return
        self.lockstep.run(self.random.choice((0, 0, 1, 2, 5, 9)))
        strikes = (self._strike_all, self._strike_one, self._strike_one, lambda group: self.reset(group))
        self.random.choice(strikes)(group)

    def _strike_one(self, group: Group) -> None:
        if group.seated:
            self.cancel(self.random.choice(list(group.seated.values())).id)

    def _strike_all(self, group: Group) -> None:
        for request in list(group.seated.values()):
            self.cancel(request.id)

    def empty_house(self) -> None:
        """Resets every group, so that settings may be changed, and changes some."""
        for group in self.golden.groups:
            self.reset(group)
        self.rest()
        for _ in range(self.random.randint(1, 6)):
            self.configure()
            self.set_sequence()

    def random_write(self) -> None:
        """A write of anything anywhere."""
        offset = self.random.choice(
            (
                self.random.randrange(0, 0x1_0000, 8),
                self.random.randrange(0x8000, 0x8C00, 8),
                regmap.PAGE + self.random.randrange(8) * regmap.PAGE_STRIDE + self.random.randrange(0, 0x30, 8),
            )
        )
        if offset == regmap.FIFO + regmap.Fifo.TRACE_POP:
            return
        self.coverage.note("random write")
        self.lockstep.write(offset, self.random.getrandbits(64), self.random.getrandbits(8))

    def read(self) -> None:
        """A read while work may be going on."""
        group = self.some_group()
        self.coverage.note("read under way")
        self.lockstep.read(
            self.random.choice(
                (
                    self.page_offset(self.random.randrange(8), regmap.Page.REQ_STATUS),
                    self.page_offset(self.random.randrange(8), regmap.Page.OFFER_ID),
                    regmap.COUNTERS + regmap.Counters.ADMITTED,
                    regmap.COUNTERS + regmap.Counters.REJECTED,
                    regmap.LANE + group.index * regmap.LANE_STRIDE + regmap.Lane.SEQUENCE,
                    regmap.POLL + group.index * regmap.POLL_STRIDE + regmap.Poll.DISPATCH,
                    regmap.CONTROL + regmap.Control.PAGE_ENABLE,
                    regmap.FIFO + regmap.Fifo.REJECT_HEAD,
                )
            )
        )


def _setting(offset: int) -> str:
    """Name of a control register."""
    if offset < regmap.LANE:
        return "PAGE_ENABLE" if offset == regmap.CONTROL + regmap.Control.PAGE_ENABLE else "STAGE_COUNT"
    if offset < regmap.GROUP:
        return "SEQUENCE"
    return next(name for name in SETTINGS if getattr(regmap.Group, name, None) == offset % regmap.GROUP_STRIDE)
