"""Random commands, lanes and hosts, well and badly behaved, for a device in lockstep with the golden model."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from random import Random

from cuelight import regmap
from cuelight.regmap import PageSchedAttr

from .commands import CANCEL
from .coverage import SETTINGS, Coverage, situation
from .golden import Golden, Sizes
from .group import TIERS, Group
from .lockstep import Lockstep
from .passes import next_sequence
from .slots import SlotState

__all__ = ["Driver"]

_ONES = 0xFFFF_FFFF
_RESERVED_SEQUENCES = (0, 0xFFFF)
_TRACE_MARGIN = 32
"""Events, and free places, below which the trace is popped only at rest: else a pop may race with the latest events."""
_AMBUSH_CYCLES = 300


class Driver:
    """Does random things.

    Parameters
    ----------
    random
        Makes every choice.
    lockstep
        Fresh models.
    coverage
        Is told what was tried.
    """

    def __init__(self, random: Random, lockstep: Lockstep, coverage: Coverage) -> None:
        self.random = random
        self.lockstep = lockstep
        self.coverage = coverage
        self._actions: dict[Callable[[], None], int] = {
            self.admit_automatic: 30,
            self.admit_manual: 8,
            self.advance_manual: 10,
            self.serve_lane: 60,
            self.complete_wrongly: 8,
            self.write_finished_wrongly: 4,
            self.pop_poll: 12,
            self.cancel: 10,
            self.cancel_twice: 2,
            self.refuse: 16,
            self.discard_half_command: 3,
            self.pop_retirement: 30,
            self.pop_reject: 8,
            self.pop_trace: 8,
            self.configure: 4,
            self.set_sequence: 2,
            self.reset_group: 1,
            self.ambush: 4,
            self.flood: 1,
            self.crowd: 1,
            self.empty_house: 1,
            self.random_write: 6,
            self.read: 10,
            self.pass_time: 20,
            self.rest: 3,
        }
        self._weights = list(self._actions.values())

    @property
    def golden(self) -> Golden:
        return self.lockstep.golden

    @property
    def _sizes(self) -> Sizes:
        return self.golden.sizes

    def settle(self) -> None:
        """Gives a fresh device a small model and some credit, so that passes are short and credit runs out."""
        self.pass_time()
        self._write32(regmap.CONTROL + regmap.Control.STAGE_COUNT, self.random.randint(4, min(7, self._sizes.stages)))
        self._write32(regmap.CONTROL + regmap.Control.PAGE_ENABLE, self.random.choice((0xFF, 0x01, 0x5A | 1)))
        for group in self.golden.groups:
            base = regmap.GROUP + group.index * regmap.GROUP_STRIDE
            self._write32(base + regmap.Group.KV_BLOCKS, self.random.choice((50, 400, 0xFFFF)))

    def steps(self, count: int) -> None:
        """Does ``count`` random actions, with a mood that changes now and then."""
        for number in range(count):
            if number % 150 == 0:
                self._weights = [weight * self.random.choice((0, 1, 1, 1, 1, 4)) for weight in self._actions.values()]
                self._weights[-2] += 1
            self.random.choices(list(self._actions), self._weights)[0]()

    def drain(self) -> None:
        """Ends every request that is left, and leaves the device empty."""
        self.rest()
        self._write32(regmap.CONTROL + regmap.Control.PAGE_ENABLE, 0xFF)
        for slot, state in enumerate(self.golden.slots.state):
            if state not in (SlotState.FREE, SlotState.RETIRED):
                self._command(0, self.golden.slots.epoch[slot] << 16 | slot, CANCEL)
        for group in self.golden.groups:
            while not group.empty:
                self._complete(group, 0)
                self.rest()
        while self.golden.slots.retirements:
            self._write32(regmap.FIFO + regmap.Fifo.RETIRE_POP, self.golden.slots.retire_index)
        self.rest()

    # ------------------------------------------------------------------------------------------- writing

    def _write32(self, offset: int, value: int) -> None:
        high = offset >> 2 & 1
        junk = self.random.getrandbits(32)
        data = value << 32 | junk if high else junk << 32 | value
        self.lockstep.write(offset & ~7, data, 0xF0 if high else 0x0F)

    def _write_latch(self, what: str, offset: int, value: int) -> None:
        """Writes the eight bytes of a command or of attributes in some order and widths."""
        cut = self.random.choice(("whole", "whole", "whole", *_CUTS))
        self.coverage.note(f"{what} {cut}")
        strobes = list(_CUTS[cut]) if cut != "unaligned" else self._unaligned_strobes()
        if cut in ("in pairs", "in bytes", "unaligned"):
            self.random.shuffle(strobes)
        for number, strobe in enumerate(strobes):
            if number and what == "command" and self.random.random() < 0.05:
                again = self.random.choice(strobes[:number])
                self.coverage.note("bytes overwritten")
                self.lockstep.write(offset, self._junk(0, 0), again)
                self.lockstep.write(offset, self._junk(value, again), again)
            self.lockstep.write(offset, self._junk(value, strobe), strobe)
            if number + 1 < len(strobes) and self.random.random() < 0.05:
                self.pass_time()

    def _junk(self, value: int, strobe: int) -> int:
        """``value``, with other bytes where they are not strobed."""
        mask = sum(0xFF << 8 * byte for byte in range(8) if strobe >> byte & 1)
        return value & mask | self.random.getrandbits(64) & ~mask

    def _unaligned_strobes(self) -> list[int]:
        cuts = sorted(self.random.sample(range(1, 8), self.random.randint(1, 3)))
        edges = [0, *cuts, 8]
        return [(1 << high) - (1 << low) for low, high in itertools.pairwise(edges)]

    def _page_offset(self, page: int, register: int) -> int:
        return regmap.PAGE + page * regmap.PAGE_STRIDE + register

    def _attributes(self, page: int, attributes: PageSchedAttr) -> None:
        self._write_latch("attributes", self._page_offset(page, regmap.Page.SCHED_ATTR), attributes.pack())

    def _command(self, page: int, request_id: int, stage: int) -> None:
        self._write_latch("command", self._page_offset(page, regmap.Page.SCHED_CMD), request_id << 32 | stage)

    # ------------------------------------------------------------------------------------------- choosing

    def _some_page(self, *, offered: bool = False) -> int:
        pages = range(regmap.PAGE_COUNT)
        if offered:
            pages = [page for page in pages if self.golden.pages[page].offer is not None] or [0]  # type: ignore[assignment]
        else:
            pages = [page for page in pages if self.golden.control.pages >> page & 1] or [0]  # type: ignore[assignment]
        return self.random.choice(pages)

    def _some_group(self) -> Group:
        return self.random.choice(self.golden.groups)

    def _some_request(self, *states: SlotState) -> int | None:
        slots = self.golden.slots
        found = [slot for slot, state in enumerate(slots.state) if state in states]
        if not found:
            return None
        slot = self.random.choice(found)
        return slots.epoch[slot] << 16 | slot

    def _admissible_id(self, page: int) -> int:
        """Mostly OFFER_ID, else another epoch than the slot's last."""
        slots = self.golden.slots
        slot = self.golden.pages[page].offer
        if slot is None:
            return 1 << 16
        if self.random.random() < 0.9:
            return slots.next_id(slot)
        self.coverage.note("admission with an epoch of one's own")
        epoch = self.random.choice([epoch for epoch in (1, 2, 0x8000, 0xFFFF) if epoch != slots.epoch[slot]])
        return epoch << 16 | slot

    def _fair_attributes(self) -> PageSchedAttr:
        rows = self.random.choice(
            (1, self.random.randint(1, 16), self.random.randint(8, 64), self.random.randint(60, 600), 2000)
        )
        if self.random.random() < 0.1:
            rows = self.random.randint(1000, 5000)
        start = self.random.choice((0, 0, 0, 64, self.random.randint(0, 4000), (1 << 20) - 1 - rows))
        group = self._some_group()
        kv_blocks = self.random.choice((0, 1, self.random.randint(0, 40)))
        return PageSchedAttr(
            automatic=1,
            tier=self.random.randrange(TIERS),
            group=group.index,
            kv_blocks=min(kv_blocks, group.kv_free),
            rows=rows,
            start=start,
        )

    def _random_attributes(self, **fields: int) -> PageSchedAttr:
        attributes = PageSchedAttr.unpack(self.random.getrandbits(64))
        return PageSchedAttr(**{**_fields(attributes), **fields})

    # ------------------------------------------------------------------------------------------- hosts

    def admit_automatic(self) -> None:
        """An admission that mostly succeeds."""
        page = self._some_page(offered=True)
        self._attributes(page, self._fair_attributes())
        self._command(page, self._admissible_id(page), 0)

    def admit_manual(self) -> None:
        """A manual admission, some with attributes that don't matter."""
        page = self._some_page(offered=True)
        if self.random.random() < 0.5:
            self.coverage.note("manual admission with attributes")
            self._attributes(page, self._random_attributes(automatic=0))
        self._command(page, self._admissible_id(page), self.random.randrange(self.golden.control.stage_count))

    def advance_manual(self) -> None:
        """STAGE_DONE of a running request, or the next stage of a waiting one."""
        page = self._some_page()
        request_id = self._some_request(SlotState.RUNNING, SlotState.WAITING)
        if request_id is None:
            request_id = self.random.getrandbits(32)
        if self.golden.slots.state[request_id % self._sizes.slots] is SlotState.WAITING and self.random.random() < 0.8:
            self._command(page, request_id, self.random.randrange(self.golden.control.stage_count))
        else:
            if self.random.random() < 0.1:
                request_id ^= 1 << self.random.randrange(32)
            if self.random.random() < 0.1:
                page = self.random.randrange(regmap.PAGE_COUNT)
            self._write32(self._page_offset(page, regmap.Page.STAGE_DONE), request_id)

    def cancel(self) -> None:
        """A cancel of a living request."""
        states = self.random.choice(
            ((SlotState.RUNNING, SlotState.WAITING), (SlotState.QUEUED,), (SlotState.SEATED,), (SlotState.SEATED,))
        )
        request_id = self._some_request(*states)
        if request_id is not None:
            self._cancel(request_id)

    def cancel_twice(self) -> None:
        """A second cancel of a request that is seated."""
        request_id = self._some_request(SlotState.SEATED)
        if request_id is not None:
            self._cancel(request_id)
            self._cancel(request_id)

    def _cancel(self, request_id: int) -> None:
        slot = request_id & 0xFFFF
        page = self._some_page()
        self._note_cancel(slot)
        self._command(page, request_id, CANCEL)

    def _note_cancel(self, slot: int) -> None:
        state = self.golden.slots.state[slot]
        if state in (SlotState.FREE, SlotState.RETIRED):
            return
        self.coverage.note(f"cancel {state.name}")
        request = self.golden.slots.request[slot]
        if request is not None and request.seat is not None:
            self.coverage.note(f"cancel seated while {situation(self.golden.groups[request.group])}")
            if request.marked:
                self.coverage.note("cancel marked again")

    def discard_half_command(self) -> None:
        """A part of a command, then attributes, then the other part, which alone must not be a command."""
        page = self._some_page(offered=True)
        offset = self._page_offset(page, regmap.Page.SCHED_CMD)
        strobe = self.random.randint(1, 0xFE)
        command = self._admissible_id(page) << 32
        self.lockstep.write(offset, self._junk(command, strobe), strobe)
        self.coverage.note("half command discarded")
        self._attributes(page, self._fair_attributes())
        self.lockstep.write(offset, self._junk(command, ~strobe), ~strobe & 0xFF)
        if self.random.random() < 0.7:
            self.lockstep.write(offset, self._junk(command, strobe), strobe)

    def refuse(self) -> None:
        """A command that has one reason to be refused."""
        self.random.choice(
            (
                self._use_disabled_page,
                self._name_illegal_id,
                self._use_old_epoch,
                self._name_retired_request,
                self._name_unknown_stage,
                self._take_used_slot,
                self._retarget_running_request,
                self._ask_without_offer,
                self._take_slot_of_others,
                self._give_bad_attributes,
                self._ask_resetting_group,
                self._ask_too_much_credit,
            )
        )()

    def _use_disabled_page(self) -> None:
        disabled = [page for page in range(regmap.PAGE_COUNT) if not self.golden.control.pages >> page & 1]
        if disabled:
            page = self.random.choice(disabled)
            self._command(page, self.random.getrandbits(32), self.random.choice((0, CANCEL)))

    def _name_illegal_id(self) -> None:
        slot = self.random.randrange(self._sizes.slots)
        request_id = self.random.choice((slot, _ONES, 0, 1 << 16 | self._sizes.slots, 0xABCD_FFFF))
        self._command(self._some_page(), request_id, self.random.choice((0, CANCEL, 1, 1 << 20)))

    def _use_old_epoch(self) -> None:
        slots = self.golden.slots
        page = self._some_page(offered=True)
        offer = self.golden.pages[page].offer
        if offer is not None and slots.epoch[offer] and self.random.random() < 0.5:
            self._command(page, slots.epoch[offer] << 16 | offer, 0)
        else:
            slot = self.random.randrange(self._sizes.slots)
            epoch = slots.epoch[slot]
            stale = self.random.choice((epoch - 1, epoch + 1, epoch ^ 0x8000)) & 0xFFFF
            self._command(page, stale << 16 | slot, CANCEL)

    def _name_retired_request(self) -> None:
        request_id = self._some_request(SlotState.RETIRED)
        if request_id is not None:
            self._command(self._some_page(), request_id, self.random.choice((0, CANCEL)))

    def _name_unknown_stage(self) -> None:
        page = self._some_page(offered=True)
        if self.random.random() < 0.5:
            self._attributes(page, self._fair_attributes())
            stage = self.random.choice((1, 3, self.golden.control.stage_count))
        else:
            stage = self.random.choice((self.golden.control.stage_count, _ONES - 1, 1 << 24, 1 << 8, 1 << 31))
        self._command(page, self._admissible_id(page), stage)

    def _take_used_slot(self) -> None:
        request_id = self._some_request(*(state for state in SlotState if state is not SlotState.FREE))
        if request_id is not None:
            self._command(self._some_page(), (request_id ^ 1 << self.random.randrange(16, 32)), 0)

    def _retarget_running_request(self) -> None:
        request_id = self._some_request(SlotState.RUNNING, SlotState.QUEUED, SlotState.SEATED)
        if request_id is not None:
            self._command(self._some_page(), request_id, self.random.randrange(self.golden.control.stage_count))

    def _ask_without_offer(self) -> None:
        pages = self.golden.pages
        bare = [n for n, page in enumerate(pages) if page.offer is None and self.golden.control.pages >> n & 1]
        offers = [page.offer for page in pages if page.offer is not None]
        if bare and offers:
            self._command(self.random.choice(bare), self.golden.slots.next_id(self.random.choice(offers)), 0)

    def _take_slot_of_others(self) -> None:
        page = self._some_page(offered=True)
        request_id = self._some_request(SlotState.FREE)
        if request_id is not None:
            self._command(page, (request_id + (1 << 16) & _ONES) | 1 << 16, 0)

    def _give_bad_attributes(self) -> None:
        page = self._some_page(offered=True)
        fair = _fields(self._fair_attributes())
        fault = self.random.choice(("half", "group", "stepped", "rows", "end"))
        if fault == "half":
            strobe = self.random.randint(1, 0xFE)
            value = PageSchedAttr(**fair).pack()
            self.lockstep.write(self._page_offset(page, regmap.Page.SCHED_ATTR), self._junk(value, strobe), strobe)
        else:
            change = {
                "group": {"group": 7},
                "stepped": {"stepped": 1},
                "rows": {"rows": 0},
                "end": {"rows": fair["rows"], "start": (1 << 20) - fair["rows"]},
            }[fault]
            self._attributes(page, PageSchedAttr(**{**fair, **change}))
        self._command(page, self._admissible_id(page), 0)

    def _ask_resetting_group(self) -> None:
        busy = [group for group in self.golden.groups if len(group.seated) + group.queued >= 4]
        if busy:
            group = self.random.choice(busy)
            page = self._some_page(offered=True)
            self._attributes(page, PageSchedAttr(**{**_fields(self._fair_attributes()), "group": group.index}))
            self._reset(group)
            self._command(page, self._admissible_id(page), 0)

    def _ask_too_much_credit(self) -> None:
        page = self._some_page(offered=True)
        fair = self._fair_attributes()
        free = self.golden.groups[fair.group].kv_free
        if free < 0xFFFF:
            self._attributes(page, PageSchedAttr(**{**_fields(fair), "kv_blocks": free + 1}))
            self._command(page, self._admissible_id(page), 0)

    def flood(self) -> None:
        """Admissions for a while, or until some page gets no offer any more."""
        count = self.random.choice((20, 20, 80, self._sizes.slots))
        if count == self._sizes.slots:
            self._write32(regmap.CONTROL + regmap.Control.PAGE_ENABLE, 0xFF)
        for _ in range(count):
            if self.golden.slots.active > self._sizes.slots - regmap.PAGE_COUNT:
                break
            (self.admit_automatic if self.random.random() < 0.5 else self.admit_manual)()
        self._ask_without_offer()

    def crowd(self) -> None:
        """More short prompts than a pass takes, in front of a long one, all before the first pass ends."""
        group = self._some_group()
        self._reset(group)
        self.rest()
        for number in range(self._sizes.seats):
            page = self._some_page(offered=True)
            rows, tier = (2000, TIERS - 1) if number == 0 else (self.random.randint(1, 9), 0)
            self._attributes(page, PageSchedAttr(automatic=1, tier=tier, group=group.index, rows=rows))
            self._command(page, self._admissible_id(page), 0)
        for _ in range(self.golden.control.stage_count):
            self._complete(group, 0)
            self.lockstep.run(60)

    # ------------------------------------------------------------------------------------------- lanes

    def serve_lane(self) -> None:
        """A lane that completes what it has, up to some dispatches in a row."""
        group = self._some_group()
        for _ in range(self.random.choice((1, 1, 2, 8, 20))):
            if group.outstanding is None:
                break
            if self.random.random() < 0.5:
                self._pop_poll(group, group.outstanding.sequence)
            self._complete(group, self._some_seats(group))
            self.lockstep.run(self.random.choice((0, 3, 20, 60)))

    def _some_seats(self, group: Group) -> int:
        """Seats to report as finished: few of the pass's, now and then any."""
        assert group.alive is not None
        roll = self.random.random()
        if roll < 0.6:
            return 0
        if roll < 0.95:
            decoding = [seat for seat in group.seated if group.alive.decode >> seat & 1] or [0]
            return sum(1 << seat for seat in self.random.sample(decoding, min(len(decoding), 2)))
        return self.random.getrandbits(256)

    def _complete(self, group: Group, seats: int) -> None:
        if group.outstanding is None or group.alive is None:
            return
        sequence = group.outstanding.sequence
        entry = sequence % 16
        if seats & ~group.alive.members:
            self.coverage.note("finished seat outside the pass")
        if seats and self.random.random() < 0.2:
            self.coverage.note("finished words in several writes")
            part = seats & self.random.getrandbits(256)
            self._write_finished(group, entry, part)
            self._write_finished(group, entry, seats & ~part)
        else:
            self._write_finished(group, entry, seats)
        if group.outstanding is not None and group.outstanding.offered:
            self.coverage.note("completion before the dispatch was taken")
        self._write32(_completion(group, entry) + regmap.Completion.BATCH_DONE, sequence)

    def _write_finished(self, group: Group, entry: int, seats: int) -> None:
        """Writes the words that are not zero, one or two at a time."""
        base = _completion(group, entry) + regmap.Completion.FINISHED
        words = [seats >> 32 * word & _ONES for word in range(regmap.Completion.FINISHED_COUNT)]
        for pair in range(0, len(words), 2):
            low, high = words[pair], words[pair + 1]
            if low and high and self.random.random() < 0.5:
                self.lockstep.write(base + 4 * pair, high << 32 | low)
                continue
            for word in (pair, pair + 1):
                if words[word]:
                    self._write32(base + 4 * word, words[word])

    def complete_wrongly(self) -> None:
        """A completion that must be ignored, or one that meets its dispatch just so."""
        group = self._some_group()
        outstanding = group.outstanding
        kind = self.random.choice(("old", "to come", "wrong entry", "twice", "any"))
        sequence = outstanding.sequence if outstanding is not None else group.sequence
        entry = sequence % 16
        if kind == "old":
            sequence = sequence - self.random.choice((1, 2, 16, 1 << 16)) & _ONES
            entry = sequence % 16
            self.coverage.note("completion of an old sequence")
        elif kind == "to come":
            sequence = next_sequence(group.sequence) if self.random.random() < 0.3 else group.sequence
            entry = sequence % 16
            self.coverage.note("completion of a sequence to come")
        elif kind == "wrong entry":
            entry = entry ^ self.random.randint(1, 15)
            self.coverage.note("completion in a wrong entry")
        elif kind == "twice" and outstanding is not None:
            self._complete(group, 0)
            self.coverage.note("completion twice")
        elif kind == "any":
            sequence = self.random.getrandbits(32)
        self._write32(_completion(group, entry) + regmap.Completion.BATCH_DONE, sequence)

    def write_finished_wrongly(self) -> None:
        """FINISHED words in an entry where, or at a time when, none are expected."""
        group = self._some_group()
        if group.outstanding is None:
            entry = self.random.choice((group.sequence % 16, self.random.randrange(16)))
            self.coverage.note("finished words with nothing outstanding")
        else:
            entry = group.outstanding.sequence % 16 ^ self.random.randint(1, 15)
            self.coverage.note("finished words in a wrong entry")
        self._write_finished(group, entry, self.random.getrandbits(256) & self.random.getrandbits(256))

    def pop_poll(self) -> None:
        """A pop of the poll head, right or stale."""
        group = self._some_group()
        outstanding = group.outstanding
        if outstanding is not None and self.random.random() < 0.7:
            self._pop_poll(group, outstanding.sequence)
        else:
            self._pop_poll(group, self.random.choice((group.sequence, group.sequence - 2 & _ONES, 0)))

    def _pop_poll(self, group: Group, sequence: int) -> None:
        outstanding = group.outstanding
        hit = outstanding is not None and outstanding.offered and sequence == outstanding.sequence
        self.coverage.note(f"poll pop {'right' if hit else 'stale'}")
        self._write32(regmap.POLL + group.index * regmap.POLL_STRIDE + regmap.Poll.POP, sequence)

    # ------------------------------------------------------------------------------------------- FIFOs

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
            self._write32(regmap.FIFO + regmap.Fifo.RETIRE_POP, index)
            if not slots.retirements:
                break

    def pop_reject(self) -> None:
        """Some pops of the reject FIFO."""
        rejects = self.golden.rejects
        for _ in range(self.random.choice((1, 2, 16))):
            index = self._index("reject", rejects.index, len(rejects.held))
            self._write32(regmap.FIFO + regmap.Fifo.REJECT_POP, index)
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
            self._write32(regmap.FIFO + regmap.Fifo.TRACE_POP, index)
            if at_rest:
                for word in range(4):
                    self.lockstep.read(regmap.FIFO + regmap.Fifo.TRACE_HEAD + 4 * word)

    def _trace_is_calm(self) -> bool:
        trace = self.golden.trace
        return _TRACE_MARGIN < len(trace.held) < trace.CAPACITY - _TRACE_MARGIN

    # ------------------------------------------------------------------------------------------- control

    def configure(self) -> None:
        """A control write, legal or not."""
        group = self._some_group()
        control, base = regmap.CONTROL, regmap.GROUP + group.index * regmap.GROUP_STRIDE
        seats, rows = self._sizes.seats, group.rows
        offset, values = self.random.choice(
            (
                (
                    control + regmap.Control.PAGE_ENABLE,
                    (0xFF, self.random.randrange(256), 0x1FF, self.random.randrange(256) | 1, 0xFF, 1 << 31),
                ),
                (control + regmap.Control.STAGE_COUNT, (4, 5, 6, 0, 1, self._sizes.stages, self._sizes.stages + 1, 3)),
                (base + regmap.Group.SEATS, (1, 3, seats, seats, seats + 1, 0, rows - 16, rows - 15)),
                (base + regmap.Group.ROWS, (group.seats + 16, group.seats + 15, 512, 513, 256, 100, 0)),
                (base + regmap.Group.KV_BLOCKS, (0, 60, 500, 0xFFFF, 0x1_0000)),
            )
        )
        self._set(offset, self.random.choice(values))

    def set_sequence(self) -> None:
        """A write of a lane's sequence, mostly near the end of a low half."""
        group = self._some_group()
        value = self.random.choice((0xFFFF_FFFA, 0xFFFF_FFFE, 0x0001_FFFD, 0x7FFF_FFFE, 0, 0x1234_FFFF, 0x1_0000, 1))
        self._set(regmap.LANE + group.index * regmap.LANE_STRIDE + regmap.Lane.SEQUENCE, value)

    def _set(self, offset: int, value: int) -> None:
        refused = self.golden.counters.config_ignored
        self._write32(offset, value)
        self.lockstep.run(1)
        verdict = "accepted" if self.golden.counters.config_ignored == refused else "refused"
        self.coverage.note(f"{_setting(offset)} {verdict}")

    def reset_group(self) -> None:
        """GROUP_RESET, now and then of a group that does not exist."""
        if self.random.random() < 0.3:
            self._write32(
                regmap.CONTROL + regmap.Control.GROUP_RESET,
                self.random.choice((self._sizes.lanes, 8, 0xFFFF_FF00, 256)),
            )
        else:
            self._reset(self._some_group())

    def _reset(self, group: Group) -> None:
        self.coverage.note(f"reset while {situation(group)}")
        if group.seated and group.queued:
            self.coverage.note("reset with requests queued and seated")
        self._write32(regmap.CONTROL + regmap.Control.GROUP_RESET, group.index)

    def ambush(self) -> None:
        """Waits, cycle by cycle, for a group to do something, and interferes."""
        group = self._some_group()
        awaited = self.random.choice(("forming", "loop point", "resetting", "pass alive", "idle"))
        if awaited == "resetting" and self.random.random() < 0.3:
            self._reset(group)
        elif group.outstanding is not None:
            self._complete(group, self._some_seats(group))
        for _ in range(_AMBUSH_CYCLES):
            if situation(group) == awaited and (group.seated or awaited == "idle"):
                break
            if group.outstanding is not None and self.random.random() < 0.2:
                self._complete(group, 0)
            self.lockstep.run(1)
        else:
            return
        self.lockstep.run(self.random.choice((0, 0, 1, 2, 5, 9)))
        strikes = (self._strike_all, self._strike_one, self._strike_one, lambda group: self._reset(group))
        self.random.choice(strikes)(group)

    def _strike_one(self, group: Group) -> None:
        if group.seated:
            self._cancel(self.random.choice(list(group.seated.values())).id)

    def _strike_all(self, group: Group) -> None:
        for request in list(group.seated.values()):
            self._cancel(request.id)

    def empty_house(self) -> None:
        """Resets every group, so that settings may be changed, and changes some."""
        for group in self.golden.groups:
            self._reset(group)
        self.rest()
        for _ in range(self.random.randint(1, 6)):
            self.configure()
            self.set_sequence()

    # ------------------------------------------------------------------------------------------- others

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
        group = self._some_group()
        self.coverage.note("read under way")
        self.lockstep.read(
            self.random.choice(
                (
                    self._page_offset(self.random.randrange(8), regmap.Page.REQ_STATUS),
                    self._page_offset(self.random.randrange(8), regmap.Page.OFFER_ID),
                    regmap.COUNTERS + regmap.Counters.ADMITTED,
                    regmap.COUNTERS + regmap.Counters.REJECTED,
                    regmap.LANE + group.index * regmap.LANE_STRIDE + regmap.Lane.SEQUENCE,
                    regmap.POLL + group.index * regmap.POLL_STRIDE + regmap.Poll.DISPATCH,
                    regmap.CONTROL + regmap.Control.PAGE_ENABLE,
                    regmap.FIFO + regmap.Fifo.REJECT_HEAD,
                )
            )
        )

    def pass_time(self) -> None:
        """Some cycles without a transaction."""
        self.lockstep.run(self.random.choice((1, 2, 3, 5, 8, 13, 40, 150)))

    def rest(self) -> None:
        """Time until the device is idle, and a comparison of everything."""
        self.lockstep.rest()


_CUTS: dict[str, Sequence[int]] = {
    "whole": (0xFF,),
    "low half first": (0x0F, 0xF0),
    "high half first": (0xF0, 0x0F),
    "in pairs": (0x03, 0x0C, 0x30, 0xC0),
    "in bytes": tuple(1 << byte for byte in range(8)),
    "unaligned": (),
}


def _completion(group: Group, entry: int) -> int:
    return regmap.COMPLETION + group.index * regmap.COMPLETION_STRIDE + entry * regmap.COMPLETION_ENTRY_STRIDE


def _fields(attributes: PageSchedAttr) -> dict[str, int]:
    return {name: getattr(attributes, name) for name in PageSchedAttr.__slots__}


def _setting(offset: int) -> str:
    """Name of a control register."""
    if offset < regmap.LANE:
        return "PAGE_ENABLE" if offset == regmap.CONTROL + regmap.Control.PAGE_ENABLE else "STAGE_COUNT"
    if offset < regmap.GROUP:
        return "SEQUENCE"
    return next(name for name in SETTINGS if getattr(regmap.Group, name, None) == offset % regmap.GROUP_STRIDE)
