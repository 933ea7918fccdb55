"""Hosts that admit, cancel, read results and pop FIFOs, mostly well."""

from __future__ import annotations

from cuelight import regmap
from cuelight.regmap import PageSchedAttr

from .actor import Actor, fields
from .group import Group
from .slots import SlotState
from .tiers import TIERS

__all__ = ["Hosts"]

_ONES = 0xFFFF_FFFF
_TRACE_MARGIN = 32
"""Events, and free places, below which the trace is popped only at rest: else a pop may race with the latest events."""


class Hosts(Actor):
    """What well-behaved drivers do, in random order."""

    def admit_automatic(self) -> None:
        """An admission that mostly succeeds."""
        page = self.some_page(offered=True)
        self.attributes(page, self.fair_attributes())
        self.command(page, self.admissible_id(page), 0)

    def admit_manual(self) -> None:
        """A manual admission, some with attributes that don't matter."""
        page = self.some_page(offered=True)
        if self.random.random() < 0.5:
            self.attributes(page, self._random_attributes(automatic=0))
        self.command(page, self.admissible_id(page), self.random.randrange(self.golden.control.stage_count))

    def _random_attributes(self, **changes: int) -> PageSchedAttr:
        attributes = PageSchedAttr.unpack(self.random.getrandbits(64))
        return PageSchedAttr(**{**fields(attributes), **changes})

    def advance_manual(self) -> None:
        """STAGE_DONE of a running request, or the next stage of a waiting one."""
        page = self.some_page()
        request_id = self.some_request(SlotState.RUNNING, SlotState.WAITING)
        if request_id is None:
            request_id = self.random.getrandbits(32)
        if self.golden.slots.state[request_id % self.sizes.slots] is SlotState.WAITING and self.random.random() < 0.8:
            self.command(page, request_id, self.random.randrange(self.golden.control.stage_count))
        else:
            if self.random.random() < 0.1:
                request_id ^= 1 << self.random.randrange(32)
            if self.random.random() < 0.1:
                page = self.random.randrange(regmap.PAGE_COUNT)
            self.write32(self.page_offset(page, regmap.Page.STAGE_DONE), request_id)

    def cancel_some(self) -> None:
        """A cancel of a living request."""
        states = self.random.choice(
            (
                (SlotState.RUNNING, SlotState.WAITING),
                (SlotState.QUEUED,),
                (SlotState.SEATED,),
                (SlotState.SEATED,),
                (SlotState.PARKED,),
            )
        )
        request_id = self.some_request(*states)
        if request_id is not None:
            self.cancel(request_id)

    def cancel_twice(self) -> None:
        """A second cancel of a request that is seated."""
        request_id = self.some_request(SlotState.SEATED)
        if request_id is not None:
            self.cancel(request_id)
            self.cancel(request_id)

    def park_some(self) -> None:
        """A PARK of a living request, now and then of another one or from a page that is disabled."""
        self.park(*self._some_named(SlotState.QUEUED, SlotState.SEATED, SlotState.SEATED, SlotState.PARKED))

    def credit_some(self) -> None:
        """CREDITs of living requests, mostly parked ones."""
        for _ in range(self.random.choice((1, 1, 4))):
            parked = [
                request.id
                for group in self.golden.groups
                for request in (*group.parked, *group.seated.values())
                if request.parked
            ]
            if parked and self.random.random() < 0.8:
                self.credit(self.random.choice(parked))
            else:
                self.credit(*self._some_named(SlotState.QUEUED, SlotState.SEATED, SlotState.PARKED))

    def _some_named(self, *states: SlotState) -> tuple[int, int]:
        """An id and a page for PARK or CREDIT."""
        request_id, page = self.some_request(self.random.choice(states)), self.some_page()
        if self.random.random() < 0.1:
            request_id = self.some_request(*SlotState)
        if request_id is None:
            request_id = self.random.getrandbits(32)
        if self.random.random() < 0.05:
            request_id ^= 1 << self.random.randrange(32)
        if self.random.random() < 0.05:
            page = self.random.randrange(regmap.PAGE_COUNT)
        return request_id, page

    def park_queued(self) -> None:
        """PARKs and CREDITs of queued requests, in an order that uses credits up."""
        for _ in range(self.random.choice((1, 3))):
            request_id = self.some_request(SlotState.QUEUED)
            if request_id is not None:
                for act in self.random.choices((self.park, self.credit), k=self.random.randint(1, 4)):
                    act(request_id)

    def discard_half_command(self) -> None:
        """A part of a command, then attributes, then the other part, which alone must not be a command."""
        page = self.some_page(offered=True)
        offset = self.page_offset(page, regmap.Page.SCHED_CMD)
        strobe = self.random.randint(1, 0xFE)
        command = self.admissible_id(page) << 32
        self.lockstep.write(offset, self.junk(command, strobe), strobe)
        self.attributes(page, self.fair_attributes())
        self.lockstep.write(offset, self.junk(command, ~strobe), ~strobe & 0xFF)
        if self.random.random() < 0.7:
            self.lockstep.write(offset, self.junk(command, strobe), strobe)

    def flood(self) -> None:
        """Admissions for a while, or until some page gets no offer any more."""
        count = self.random.choice((20, 20, 80, self.sizes.slots))
        if count == self.sizes.slots:
            self.write32(regmap.CONTROL + regmap.Control.PAGE_ENABLE, 0xFF)
        for _ in range(count):
            if self.golden.slots.active > self.sizes.slots - regmap.PAGE_COUNT:
                break
            (self.admit_automatic if self.random.random() < 0.5 else self.admit_manual)()

    def crowd(self) -> None:
        """More short prompts than a pass takes, in front of a long one, all before the first pass ends."""
        group = self.some_group()
        self.reset(group)
        self.rest()
        for number in range(self.sizes.seats):
            page = self.some_page(offered=True)
            rows, tier = (2000, TIERS - 1) if number == 0 else (self.random.randint(1, 9), 0)
            self.attributes(page, PageSchedAttr(automatic=1, tier=tier, group=group.index, rows=rows))
            self.command(page, self.admissible_id(page), 0)
        for _ in range(self.golden.control.stage_count):
            self.complete(self.some_lane(group), 0)
            self.lockstep.run(60)

    def rush(self) -> None:
        """A house full of low tiers that decode, then higher tiers, which finish soon."""
        group = self.some_group()
        self.reset(group)
        self.rest()
        seats = self.random.choice((2, 5, self.sizes.seats, self.random.randint(17, 40)))
        base = regmap.GROUP + group.index * regmap.GROUP_STRIDE
        self.write32(base + regmap.Group.SEATS, seats)
        for tier in range(TIERS):
            minimum = regmap.TIER + tier * regmap.TIER_STRIDE + regmap.Tier.MIN_SEATS
            self.write32(minimum, self.random.choice((0, 0, 0, 1, group.seats // 3)))
        low = [self._join(group, self.random.choice((TIERS - 2, TIERS - 1))) for _ in range(group.seats + 1)]
        self._serve(group, 1 + group.seats // 10, 0)
        for request_id in self.random.sample(low, self.random.choice((0, 0, 1, len(low) // 2))):
            self.park(request_id)
        self._serve(group, self.random.choice((0, 1)), 0)
        for _ in range(self.random.choice((1, 2, group.seats, group.seats + 3))):
            self._join(group, self.random.choice((0, 0, 1)))
        self._serve(group, 2, 0)
        self._serve(group, self.random.choice((1, 3)), self.random.choice((0, 1)))
        for request in (*group.parked, *group.seated.values()):
            if self.random.random() < 0.5:
                self.credit(request.id)
        for request_id in low:
            if self.random.random() < 0.1:
                self.cancel(request_id)
        self._serve(group, 3, self.random.choice((0, 1)))

    def stampede(self) -> None:
        """A house of more seats than a pass binds, all of them paused for higher tiers, which then leave at once."""
        group = self.some_group()
        self.reset(group)
        self.rest()
        seats = min(self.random.randint(17, 36), self.sizes.seats)
        self.write32(regmap.GROUP + group.index * regmap.GROUP_STRIDE + regmap.Group.SEATS, seats)
        for tier in (0, TIERS - 1):
            base = regmap.TIER + tier * regmap.TIER_STRIDE
            for register in (regmap.Tier.MIN_SEATS, regmap.Tier.MIN_ROWS, regmap.Tier.KV_FLOOR, regmap.Tier.SEAT_FLOOR):
                self.write32(base + register, 0)
        for tier in (TIERS - 1, 0):
            for _ in range(group.seats):
                self._join(group, tier)
            self._serve(group, 4, 0)
        self._serve(group, 3, 1)

    def overtake(self) -> None:
        """A pass of lower tiers, and prompts of higher ones that come while it runs, one after the other."""
        group = self.some_group()
        self.reset(group)
        self.rest()
        for _ in range(self.random.choice((1, 4, 12))):
            self._join(group, self.random.choice((2, 3)), self.random.choice((8, 8, 300)))
        self._serve(group, self.random.choice((0, 1, 2)), 0)
        for _ in range(self.random.choice((1, 3, 6))):
            self._join(group, self.random.choice((0, 0, 1)), self.random.choice((8, 8, 300)))
            for _ in range(self.random.choice((0, 1, 3, 10))):
                self.complete(self.some_lane(group), 0)
                self.lockstep.run(self.random.choice((0, 2, 15, 15)))

    def _join(self, group: Group, tier: int, rows: int = 0) -> int:
        page = self.some_page(offered=True)
        rows = rows or self.random.choice((1, 3, 8, 8, 16, 60))
        request_id = self.admissible_id(page)
        self.attributes(page, PageSchedAttr(automatic=1, tier=tier, group=group.index, rows=rows))
        self.command(page, request_id, 0)
        return request_id

    def _serve(self, group: Group, passes: int, finishing: int) -> None:
        """Completes passes, each of them for the higher half of the tiers where ``finishing``."""
        for _ in range(passes * self.golden.control.stage_count * len(group.lanes)):
            high = (seat for seat, request in group.seated.items() if request.tier < TIERS // 2)
            self.complete(self.some_lane(group), sum(1 << seat for seat in high) if finishing else 0)
            self.lockstep.run(self.random.choice((2, 60, 60)))

    def _index(self, fifo: str, right: int, held: int) -> int:
        """An index to pop: the head's, or one near it."""
        index = right
        if self.random.random() < 0.2:
            index = right + self.random.choice((1, -1, 1 << 16, 1 << 31, 64)) & _ONES
        return index

    def pop_retirement(self) -> None:
        """Some pops of the retirement FIFO."""
        slots = self.golden.slots
        for _ in range(self.random.choice((1, 2, 8, 64))):
            index = self._index("retirement", slots.retire_index, len(slots.retirements))
            self.write32(regmap.FIFO + regmap.Fifo.RETIRE_POP, index)
            if not slots.retirements:
                break

    def pop_reject(self) -> None:
        """Some pops of the reject FIFO."""
        rejects = self.golden.rejects
        for _ in range(self.random.choice((1, 2, 16))):
            index = self._index("reject", rejects.index, len(rejects.held))
            self.write32(regmap.FIFO + regmap.Fifo.REJECT_POP, index)
            if not rejects.held:
                break

    def pop_trace(self) -> None:
        """Some pops of the event trace; at rest each head is compared."""
        trace = self.golden.trace
        at_rest = not self._trace_is_calm() or self.random.random() < 0.3
        if at_rest:
            self.rest()
        for _ in range(self.random.choice((1, 16, 256))):
            if not trace.held or not (at_rest or self._trace_is_calm()):
                break
            index = self._index("trace", trace.index, len(trace.held))
            self.write32(regmap.FIFO + regmap.Fifo.TRACE_POP, index)
            if at_rest:
                for word in range(4):
                    self.lockstep.read(regmap.FIFO + regmap.Fifo.TRACE_HEAD + 4 * word)

    def _trace_is_calm(self) -> bool:
        trace = self.golden.trace
        return _TRACE_MARGIN < len(trace.held) < trace.CAPACITY - _TRACE_MARGIN
