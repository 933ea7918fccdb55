"""What everybody who does random things to a device needs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random

from cuelight import regmap
from cuelight.regmap import PageSchedAttr

from .commands import CANCEL
from .golden import Golden
from .group import Group
from .lane import Lane
from .lockstep import Lockstep
from .slots import SlotState
from .state import Sizes
from .tiers import TIERS

__all__ = ["Actor", "completion_entry", "fields"]

_ONES = 0xFFFF_FFFF
_CUTS: dict[str, Sequence[int]] = {
    "whole": (0xFF,),
    "low half first": (0x0F, 0xF0),
    "high half first": (0xF0, 0x0F),
    "in pairs": (0x03, 0x0C, 0x30, 0xC0),
    "in bytes": tuple(1 << byte for byte in range(8)),
    "unaligned": (),
}


class Actor:
    """Writes what is meant, in random widths and orders, and chooses among what there is.

    Parameters
    ----------
    random
        Makes every choice.
    lockstep
        Both models.
    """

    def __init__(self, random: Random, lockstep: Lockstep) -> None:
        self.random = random
        self.lockstep = lockstep

    @property
    def golden(self) -> Golden:
        return self.lockstep.golden

    @property
    def sizes(self) -> Sizes:
        return self.golden.sizes

    def write32(self, offset: int, value: int) -> None:
        high = offset >> 2 & 1
        junk = self.random.getrandbits(32)
        data = value << 32 | junk if high else junk << 32 | value
        self.lockstep.write(offset & ~7, data, 0xF0 if high else 0x0F)

    def write_latch(self, what: str, offset: int, value: int) -> None:
        """Writes the eight bytes of a command or of attributes in some order and widths."""
        cut = self.random.choice(("whole", "whole", "whole", *_CUTS))
        strobes = list(_CUTS[cut]) if cut != "unaligned" else self._unaligned_strobes()
        if cut in ("in pairs", "in bytes", "unaligned"):
            self.random.shuffle(strobes)
        for number, strobe in enumerate(strobes):
            if number and what == "command" and self.random.random() < 0.05:
                again = self.random.choice(strobes[:number])
                self.lockstep.write(offset, self.junk(0, 0), again)
                self.lockstep.write(offset, self.junk(value, again), again)
            self.lockstep.write(offset, self.junk(value, strobe), strobe)
            if number + 1 < len(strobes) and self.random.random() < 0.05:
                self.pass_time()

    def junk(self, value: int, strobe: int) -> int:
        """``value``, with other bytes where they are not strobed."""
        mask = sum(0xFF << 8 * byte for byte in range(8) if strobe >> byte & 1)
        return value & mask | self.random.getrandbits(64) & ~mask

    def _unaligned_strobes(self) -> list[int]:
        cuts = sorted(self.random.sample(range(1, 8), self.random.randint(1, 3)))
        edges = [0, *cuts, 8]
        return [(1 << high) - (1 << low) for low, high in pairwise(edges)]

    def page_offset(self, page: int, register: int) -> int:
        return regmap.PAGE + page * regmap.PAGE_STRIDE + register

    def attributes(self, page: int, attributes: PageSchedAttr) -> None:
        self.write_latch("attributes", self.page_offset(page, regmap.Page.SCHED_ATTR), attributes.pack())

    def command(self, page: int, request_id: int, stage: int) -> None:
        self.write_latch("command", self.page_offset(page, regmap.Page.SCHED_CMD), request_id << 32 | stage)

    def some_page(self, *, offered: bool = False) -> int:
        pages = range(regmap.PAGE_COUNT)
        if offered:
            pages = [page for page in pages if self.golden.pages[page].offer is not None] or [0]  # type: ignore[assignment]
        else:
            pages = [page for page in pages if self.golden.control.pages >> page & 1] or [0]  # type: ignore[assignment]
        return self.random.choice(pages)

    def some_group(self) -> Group:
        """A group that takes requests."""
        return self.random.choice([group for group in self.golden.groups if not group.absorbed])

    def some_lane(self, group: Group | None = None) -> Lane:
        """A lane of a group, or of any; mostly one that has something to do."""
        lanes = self.golden.lanes if group is None else group.lanes
        busy = [lane for lane in lanes if lane.dispatches]
        return self.random.choice(busy if busy and self.random.random() < 0.8 else lanes)

    def some_request(self, *states: SlotState) -> int | None:
        slots = self.golden.slots
        found = [slot for slot, state in enumerate(slots.state) if state in states]
        if not found:
            return None
        slot = self.random.choice(found)
        return slots.epoch[slot] << 16 | slot

    def admissible_id(self, page: int) -> int:
        """Mostly OFFER_ID, else another epoch than the slot's last."""
        slots = self.golden.slots
        slot = self.golden.pages[page].offer
        if slot is None:
            return 1 << 16
        if self.random.random() < 0.9:
            return slots.next_id(slot)
        epoch = self.random.choice([epoch for epoch in (1, 2, 0x8000, 0xFFFF) if epoch != slots.epoch[slot]])
        return epoch << 16 | slot

    def fair_attributes(self) -> PageSchedAttr:
        rows = self.random.choice(
            (1, self.random.randint(1, 16), self.random.randint(8, 64), self.random.randint(60, 600), 2000)
        )
        if self.random.random() < 0.1:
            rows = self.random.randint(1000, 5000)
        start = self.random.choice((0, 0, 0, 64, self.random.randint(0, 4000), (1 << 20) - 1 - rows))
        group = self.some_group()
        kv_blocks = self.random.choice((0, 1, self.random.randint(0, 40)))
        return PageSchedAttr(
            automatic=1,
            tier=self.random.randrange(TIERS),
            group=group.index,
            kv_blocks=min(kv_blocks, group.kv_free),
            rows=rows,
            start=start,
            stepped=self.random.random() < 0.15,
        )

    def pass_time(self) -> None:
        """Some cycles without a transaction."""
        self.lockstep.run(self.random.choice((1, 2, 3, 5, 8, 13, 40, 150)))

    def rest(self) -> None:
        """Time until the device is idle, and a comparison of everything."""
        self.lockstep.rest()

    def cancel(self, request_id: int) -> None:
        self.command(self.some_page(), request_id, CANCEL)

    def reset(self, group: Group) -> None:
        self.write32(regmap.CONTROL + regmap.Control.GROUP_RESET, group.index)

    def park(self, request_id: int, page: int | None = None) -> None:
        self._name(regmap.Page.PARK, request_id, page)

    def credit(self, request_id: int, page: int | None = None) -> None:
        self._name(regmap.Page.CREDIT, request_id, page)

    def _name(self, register: int, request_id: int, page: int | None) -> None:
        self.write32(self.page_offset(self.some_page() if page is None else page, register), request_id)

    def complete(self, lane: Lane, seats: int) -> None:
        """Completes a lane's oldest dispatch, if it has one."""
        oldest = lane.outstanding
        if oldest is None:
            return
        entry = oldest.sequence % 16
        if seats and self.random.random() < 0.2:
            part = seats & self.random.getrandbits(256)
            self.write_finished(lane, entry, part)
            self.write_finished(lane, entry, seats & ~part)
        else:
            self.write_finished(lane, entry, seats)
        self.write32(completion_entry(lane, entry) + regmap.Completion.BATCH_DONE, oldest.sequence)

    def write_finished(self, lane: Lane, entry: int, seats: int) -> None:
        """Writes the words that are not zero, one or two at a time."""
        base = completion_entry(lane, entry) + regmap.Completion.FINISHED
        words = [seats >> 32 * word & _ONES for word in range(regmap.Completion.FINISHED_COUNT)]
        for pair in range(0, len(words), 2):
            low, high = words[pair], words[pair + 1]
            if low and high and self.random.random() < 0.5:
                self.lockstep.write(base + 4 * pair, high << 32 | low)
                continue
            for word in (pair, pair + 1):
                if words[word]:
                    self.write32(base + 4 * word, words[word])

    def some_seats(self, lane: Lane) -> int:
        """Seats to report as finished: few of the pass's, now and then any."""
        roll = self.random.random()
        if lane.outstanding is None or roll < 0.6:
            return 0
        if roll < 0.95:
            decoding = [seat for seat in range(self.sizes.seats) if lane.outstanding.run.decode >> seat & 1] or [0]
            return sum(1 << seat for seat in self.random.sample(decoding, min(len(decoding), 2)))
        return self.random.getrandbits(256)


def completion_entry(lane: Lane, entry: int) -> int:
    return regmap.COMPLETION + lane.index * regmap.COMPLETION_STRIDE + entry * regmap.COMPLETION_ENTRY_STRIDE


def fields(attributes: PageSchedAttr) -> dict[str, int]:
    return {name: getattr(attributes, name) for name in PageSchedAttr.__slots__}
