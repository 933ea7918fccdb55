"""A device played by hand: writes, and the commits that answer them, on the golden model alone."""

from __future__ import annotations

from cuelight import regmap
from cuelight.regmap import CommitKind, PageSchedAttr, PageSchedCmd
from cuelight_rtl.model import Commit
from cuelight_rtl.params import Params
from cuelight_sim.golden import Golden

__all__ = ["CORE", "LANE", "Script"]

CORE, LANE = 0, 1
"""Commit ports; lanes' are numbered from `LANE` on."""


class Script:
    """A small device, ten cycles from commit to commit.

    Parameters
    ----------
    lanes
        It has so many.
    """

    def __init__(self, lanes: int = 1) -> None:
        self.golden = Golden(Params(slots=64, seats=16, lanes=lanes, stages=8))
        self._cycle = 0
        self._pages = LANE + lanes
        self._offer()

    def _offer(self) -> None:
        (offer,) = self.golden._offers()
        self.commit(self._pages, CommitKind.OFFER, stage=offer.event.stage, id=offer.event.id)

    def write(self, offset: int, value: int, strobe: int = 0xFF) -> None:
        high = offset % 8
        self.golden.write(offset - high, value << 8 * high, strobe if not high else 0xF0)

    def write32(self, offset: int, value: int) -> None:
        self.write(offset, value, 0xF0 if offset % 8 else 0x0F)

    def commit(self, port: int, kind: CommitKind, **fields: int) -> None:
        named = {"lane": 0, "stage": 0, "id": 0, "detail": 0, **fields}
        self.golden.commit(Commit(self._cycle + 10, port, kind, **named))
        self._cycle += 10

    def configure(self, offset: int, value: int, *, accepted: bool = True) -> None:
        self.write32(offset, value)
        kind = CommitKind.CONFIG if accepted else CommitKind.CONFIG_IGNORED
        self.commit(CORE, kind, id=offset, detail=value)

    def admit(self, rows: int, slot: int = 0, **attributes: int) -> None:
        """Admits a request into the slot that is offered."""
        fields = PageSchedAttr(automatic=1, rows=rows, **attributes)
        request = 1 << 16 | slot
        self.write(regmap.PAGE + regmap.Page.SCHED_ATTR, fields.pack())
        self.write(regmap.PAGE + regmap.Page.SCHED_CMD, PageSchedCmd(id=request).pack())
        stage = 1 << 3 | fields.tier << 4
        self.commit(CORE, CommitKind.ADMIT, lane=fields.group, stage=stage, id=request, detail=fields.kv_blocks)
        if self.golden.slots.free:
            self._offer()

    def seat(self, seat: int = 0, tier: int = 0) -> None:
        """Seats the request in the slot of the same number."""
        self.commit(CORE, CommitKind.SEAT, stage=seat, id=1 << 16 | seat, detail=tier)

    def form(self, rows: int, *, k: int = 0, number: int = 1, seat: int = 0) -> None:
        """Plans and forms a pass of a single chunk that is first and last."""
        self.plan(k=k, number=number)
        self.commit(CORE, CommitKind.CHUNK, stage=seat, id=1 << 16 | seat, detail=rows << 20 | 3 << 30)
        self.commit(CORE, CommitKind.FORM, stage=1, id=number, detail=rows)

    def plan(self, *, k: int = 0, number: int = 1, decode_rows: int = 0) -> None:
        detail = decode_rows | len(self.golden.groups[0].lanes) << 16
        self.commit(CORE, CommitKind.PLAN, stage=k, id=number, detail=detail)

    def dispatch(
        self, sequence: int, stage: int, rows: int, flags: int, cycles: int, lane: int = 0, k: int = 0
    ) -> None:
        """DISPATCH of a pass of group 0."""
        detail = rows | k << 10 | cycles << 16 | flags << 28
        self.commit(LANE + lane, CommitKind.DISPATCH, lane=lane, stage=stage, id=sequence, detail=detail)

    def complete(self, sequence: int, stage: int, lane: int = 0, finished: int = 0) -> None:
        entry = regmap.COMPLETION + lane * regmap.COMPLETION_STRIDE + sequence % 16 * regmap.COMPLETION_ENTRY_STRIDE
        if finished:
            self.write32(entry + regmap.Completion.FINISHED, finished)
        self.write32(entry + regmap.Completion.BATCH_DONE, sequence)
        self.commit(LANE + lane, CommitKind.COMPLETE, lane=lane, stage=stage, id=sequence)

    def reads(self, offset: int) -> int:
        return self.golden.read(offset).value
