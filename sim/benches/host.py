"""A host on one producer page."""

from __future__ import annotations

from dataclasses import dataclass

from cuelight import regmap
from cuelight.regmap import CommitKind, PageReqStatus, PageSchedAttr, PageSchedCmd
from cuelight_sim.commands import CANCEL

from .bench import Bench

__all__ = ["Host", "set_group", "set_lane", "set_tier"]

_OFFER_READS = 1000


@dataclass
class Host:
    """Admits, retargets, cancels and parks through one page.

    Parameters
    ----------
    it
        The bench.
    page
        Number of the producer page.
    """

    it: Bench
    page: int = 0

    def at(self, register: int) -> int:
        """Offset in BAR0 of a register of the page."""
        return regmap.PAGE + self.page * regmap.PAGE_STRIDE + register

    async def status(self) -> PageReqStatus:
        return PageReqStatus.unpack(await self.it.read32(self.at(regmap.Page.REQ_STATUS)))

    async def offer(self) -> int:
        """Id that the page offers; waits for one."""
        for _ in range(_OFFER_READS):
            if request := await self.it.read32(self.at(regmap.Page.OFFER_ID)):
                return request
        raise AssertionError(f"page {self.page} gets no offer")

    async def attributes(self, **fields: int) -> None:
        """Write SCHED_ATTR for an automatic request."""
        value = PageSchedAttr(**{"automatic": 1, "rows": 1, **fields}).pack()
        await self.it.write64(self.at(regmap.Page.SCHED_ATTR), value)

    async def command(self, request: int, stage: int = 0) -> None:
        await self.it.write64(self.at(regmap.Page.SCHED_CMD), PageSchedCmd(id=request, stage=stage).pack())

    async def admit(self, stage: int = 0) -> int:
        """Admit a manual request, with the id that is offered."""
        request = await self.offer()
        await self.command(request, stage)
        await self.it.expect(CommitKind.ADMIT, id=request, stage=self.page, detail=stage)
        return request

    async def join(self, **fields: int) -> int:
        """Admit an automatic request with these attributes, with the id that is offered."""
        request = await self.offer()
        await self.attributes(**fields)
        await self.command(request)
        what = self.page | 1 << 3 | fields.get("tier", 0) << 4
        await self.it.expect(CommitKind.ADMIT, id=request, stage=what, lane=fields.get("group", 0))
        return request

    async def done(self, request: int) -> None:
        await self.it.write32(self.at(regmap.Page.STAGE_DONE), request)

    async def cancel(self, request: int) -> None:
        await self.command(request, CANCEL)

    async def park(self, request: int) -> None:
        await self.it.write32(self.at(regmap.Page.PARK), request)

    async def credit(self, request: int) -> None:
        await self.it.write32(self.at(regmap.Page.CREDIT), request)


async def set_group(it: Bench, group: int, register: int, value: int) -> None:
    """Write a register of a lane group."""
    await it.write32(regmap.GROUP + group * regmap.GROUP_STRIDE + register, value)


async def set_lane(it: Bench, lane: int, register: int, value: int) -> None:
    """Write a register of a lane."""
    await it.write32(regmap.LANE + lane * regmap.LANE_STRIDE + register, value)


async def set_tier(it: Bench, tier: int, register: int, value: int) -> None:
    """Write a register of a tier."""
    await it.write32(regmap.TIER + tier * regmap.TIER_STRIDE + register, value)
