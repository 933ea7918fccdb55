"""Offers and what admissions take (docs/device.md §3)."""

from __future__ import annotations

from collections.abc import Iterable

from cuelight import regmap
from cuelight.regmap import PAGE_COUNT, CommitKind

from ..golden import Golden
from ..lockstep import Write
from ..steps import Event
from ..tiers import TIERS
from .family import Family
from .moments import told

__all__ = ["Admissions"]


class Admissions(Family):
    """Admissions that were accepted, and the offers they use up."""

    title = "admissions and offers"
    bins = (
        *(f"on page {page}" for page in range(PAGE_COUNT)),
        *(f"automatic, tier {tier}" for tier in range(TIERS)),
        "automatic and stepped",
        "manual without attributes",
        "manual with attributes",
        "with the next epoch",
        "with another epoch",
        "with epoch 1 after 0xFFFF",
        "of the last free slot",
        "with the last KV blocks",
        "with what the KV floor leaves",
        "offer while other pages have none",
        "offer withdrawn",
    )

    def __init__(self, golden: Golden) -> None:
        super().__init__(golden)
        self._with_attributes = False

    def wrote(self, write: Write) -> Iterable[str]:
        said = told(self.golden, write)
        if said is not None and said.register == regmap.Page.SCHED_CMD:
            self._with_attributes = self.golden.pages[said.page].attributes.whole
        return ()

    def before(self, event: Event) -> Iterable[str]:
        if event.kind == CommitKind.ADMIT:
            slot, epoch = event.id & 0xFFFF, event.id >> 16
            last = self.golden.slots.epoch[slot]
            if last == 0xFFFF and epoch == 1:
                yield "with epoch 1 after 0xFFFF"
            yield "with the next epoch" if self.golden.slots.next_id(slot) == event.id else "with another epoch"
        elif event.kind == CommitKind.OFFER:
            if (
                sum(
                    page.offer is None and bool(self.golden.control.pages >> number & 1)
                    for number, page in enumerate(self.golden.pages)
                )
                > 1
            ):
                yield "offer while other pages have none"
        elif event.kind == CommitKind.UNOFFER:
            yield "offer withdrawn"

    def after(self, event: Event) -> Iterable[str]:
        if event.kind != CommitKind.ADMIT:
            return
        yield f"on page {event.stage & 7}"
        if self.golden.slots.active == len(self.golden.slots):
            yield "of the last free slot"
        request = self.golden.slots.request[event.id & 0xFFFF]
        if request is None:
            yield "manual with attributes" if self._with_attributes else "manual without attributes"
            return
        yield f"automatic, tier {request.tier}"
        if request.stepped:
            yield "automatic and stepped"
        left, floor = self.golden.groups[event.lane].kv_free, self.golden.tiers[request.tier].kv_floor
        if request.kv_blocks and not left:
            yield "with the last KV blocks"
        if request.kv_blocks and floor and left == floor:
            yield "with what the KV floor leaves"
