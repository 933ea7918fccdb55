"""Commands that have one reason to be refused."""

from __future__ import annotations

from cuelight import regmap
from cuelight.regmap import PageSchedAttr

from .actor import Actor, fields
from .commands import CANCEL
from .slots import SlotState

__all__ = ["Refusals"]

_ONES = 0xFFFF_FFFF


class Refusals(Actor):
    """Asks for what the device must not grant."""

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
                self.ask_without_offer,
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
            self.command(page, self.random.getrandbits(32), self.random.choice((0, CANCEL)))

    def _name_illegal_id(self) -> None:
        slot = self.random.randrange(self.sizes.slots)
        request_id = self.random.choice((slot, _ONES, 0, 1 << 16 | self.sizes.slots, 0xABCD_FFFF))
        self.command(self.some_page(), request_id, self.random.choice((0, CANCEL, 1, 1 << 20)))

    def _use_old_epoch(self) -> None:
        slots = self.golden.slots
        page = self.some_page(offered=True)
        offer = self.golden.pages[page].offer
        if offer is not None and slots.epoch[offer] and self.random.random() < 0.5:
            self.command(page, slots.epoch[offer] << 16 | offer, 0)
        else:
            slot = self.random.randrange(self.sizes.slots)
            epoch = slots.epoch[slot]
            stale = self.random.choice((epoch - 1, epoch + 1, epoch ^ 0x8000)) & 0xFFFF
            self.command(page, stale << 16 | slot, CANCEL)

    def _name_retired_request(self) -> None:
        request_id = self.some_request(SlotState.RETIRED)
        if request_id is not None:
            self.command(self.some_page(), request_id, self.random.choice((0, CANCEL)))

    def _name_unknown_stage(self) -> None:
        page = self.some_page(offered=True)
        if self.random.random() < 0.5:
            self.attributes(page, self.fair_attributes())
            stage = self.random.choice((1, 3, self.golden.control.stage_count))
        else:
            stage = self.random.choice((self.golden.control.stage_count, _ONES - 1, 1 << 24, 1 << 8, 1 << 31))
        self.command(page, self.admissible_id(page), stage)

    def _take_used_slot(self) -> None:
        request_id = self.some_request(*(state for state in SlotState if state is not SlotState.FREE))
        if request_id is not None:
            self.command(self.some_page(), (request_id ^ 1 << self.random.randrange(16, 32)), 0)

    def _retarget_running_request(self) -> None:
        request_id = self.some_request(SlotState.RUNNING, SlotState.QUEUED, SlotState.SEATED)
        if request_id is not None:
            self.command(self.some_page(), request_id, self.random.randrange(self.golden.control.stage_count))

    def ask_without_offer(self) -> None:
        pages = self.golden.pages
        bare = [n for n, page in enumerate(pages) if page.offer is None and self.golden.control.pages >> n & 1]
        offers = [page.offer for page in pages if page.offer is not None]
        if bare and offers:
            self.command(self.random.choice(bare), self.golden.slots.next_id(self.random.choice(offers)), 0)

    def _take_slot_of_others(self) -> None:
        page = self.some_page(offered=True)
        request_id = self.some_request(SlotState.FREE)
        if request_id is not None:
            self.command(page, (request_id + (1 << 16) & _ONES) | 1 << 16, 0)

    def _give_bad_attributes(self) -> None:
        page = self.some_page(offered=True)
        fair = fields(self.fair_attributes())
        absorbed = [group.index for group in self.golden.groups if group.absorbed]
        fault = self.random.choice(("half", "group", "rows", "end", *(["absorbed"] * 3 if absorbed else [])))
        if fault == "half":
            strobe = self.random.randint(1, 0xFE)
            value = PageSchedAttr(**fair).pack()
            self.lockstep.write(self.page_offset(page, regmap.Page.SCHED_ATTR), self.junk(value, strobe), strobe)
        else:
            change = {
                "group": {"group": 7},
                "absorbed": {"group": self.random.choice(absorbed or [0])},
                "rows": {"rows": 0},
                "end": {"rows": fair["rows"], "start": (1 << 20) - fair["rows"]},
            }[fault]
            self.attributes(page, PageSchedAttr(**{**fair, **change}))
        self.command(page, self.admissible_id(page), 0)

    def _ask_resetting_group(self) -> None:
        busy = [group for group in self.golden.groups if len(group.seated) + group.queued >= 4]
        if busy:
            group = self.random.choice(busy)
            page = self.some_page(offered=True)
            self.attributes(page, PageSchedAttr(**{**fields(self.fair_attributes()), "group": group.index}))
            self.reset(group)
            self.command(page, self.admissible_id(page), 0)

    def _ask_too_much_credit(self) -> None:
        page = self.some_page(offered=True)
        fair = self.fair_attributes()
        floor = self.golden.tiers[fair.tier].kv_floor
        free = self.golden.groups[fair.group].kv_free
        if free - floor < 0xFFFF:
            self.attributes(page, PageSchedAttr(**{**fields(fair), "kv_blocks": max(0, free - floor + 1)}))
            self.command(page, self.admissible_id(page), 0)
