"""Hosts that admit, cancel, read results and pop FIFOs, mostly well."""

from __future__ import annotations

from cuelight import regmap
from cuelight.regmap import PageSchedAttr

from .actor import Actor, fields
from .group import TIERS
from .slots import SlotState

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
            self.coverage.note("manual admission with attributes")
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
            ((SlotState.RUNNING, SlotState.WAITING), (SlotState.QUEUED,), (SlotState.SEATED,), (SlotState.SEATED,))
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

    def discard_half_command(self) -> None:
        """A part of a command, then attributes, then the other part, which alone must not be a command."""
        page = self.some_page(offered=True)
        offset = self.page_offset(page, regmap.Page.SCHED_CMD)
        strobe = self.random.randint(1, 0xFE)
        command = self.admissible_id(page) << 32
        self.lockstep.write(offset, self.junk(command, strobe), strobe)
        self.coverage.note("half command discarded")
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
            self.complete(group, 0)
            self.lockstep.run(60)

    def _index(self, fifo: str, right: int, held: int) -> int:
        """An index to pop: the head's, or one near it."""
        index = right
        if self.random.random() < 0.2:
            index = right + self.random.choice((1, -1, 1 << 16, 1 << 31, 64)) & _ONES
        self.coverage.note(f"{fifo} pop {'right' if held and index == right else 'stale'}")
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
