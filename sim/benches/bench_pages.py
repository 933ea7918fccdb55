"""Producer pages side by side, and the slots that they are offered."""

from __future__ import annotations

import cocotb

from cuelight import regmap
from cuelight.regmap import CommitKind, PageReqStatus, RejectReason

from .bench import Bench, bench
from .host import Host

PAGE_ENABLE = regmap.CONTROL + regmap.Control.PAGE_ENABLE


@bench
async def only_page_0_is_enabled_at_first(it: Bench) -> None:
    await it.rest()
    assert await Host(it, 0).status() == PageReqStatus(active=0, slot=0)
    for page in range(1, 8):
        host = Host(it, page)
        assert await host.status() == PageReqStatus(active=0, slot=0xFFFF)
        assert await it.read32(host.at(regmap.Page.OFFER_ID)) == 0
        await host.command(1 << 16)
        await it.expect(CommitKind.REJECT, id=1 << 16, stage=RejectReason.PAGE_DISABLED)


@bench
async def every_enabled_page_gets_a_slot_of_its_own(it: Bench) -> None:
    await it.write32(PAGE_ENABLE, 0xFF)
    await it.rest()
    offers = [await Host(it, page).offer() for page in range(8)]
    assert offers == [1 << 16 | slot for slot in range(8)]


@bench
async def eight_producers_work_at_the_same_time(it: Bench) -> None:
    await it.write32(PAGE_ENABLE, 0xFF)

    async def produce(page: int) -> list[int]:
        host, mine = Host(it, page), []
        for number in range(7):
            request = await host.offer()
            command = host.at(regmap.Page.SCHED_CMD)
            if number % 2:
                await it.write32(command + 4, request)
                await it.run(it.random.randrange(9))
                await it.write32(command, page)
            else:
                await host.command(request, page)
            mine.append(request)
            # The old offer must be gone before the next look.
            await it.settle()
        return mine

    producers = [cocotb.start_soon(produce(page)) for page in range(8)]
    taken = {page: await producer for page, producer in enumerate(producers)}
    await it.rest()
    admitted: dict[int, list[int]] = {page: [] for page in range(8)}
    for event in it.seen(CommitKind.ADMIT):
        assert event.detail == event.stage
        admitted[event.stage].append(event.id)
    assert admitted == taken
    slots = [request & 0xFFFF for mine in taken.values() for request in mine]
    assert len(set(slots)) == len(slots) == 56


@bench
async def a_page_that_is_disabled_gives_its_slot_back_last_in_line(it: Bench) -> None:
    await it.write32(PAGE_ENABLE, 0x03)
    await it.rest()
    it.seen()
    await it.write32(PAGE_ENABLE, 0x01)
    await it.expect(CommitKind.UNOFFER, stage=1, id=1 << 16 | 1)
    await it.write32(PAGE_ENABLE, 0x05)
    await it.expect(CommitKind.OFFER, stage=2, id=1 << 16 | 2)
    last = it.params.slots - 1
    for _ in range(3, last + 1):
        await Host(it).admit()
    assert await Host(it).offer() == 1 << 16 | last
    await Host(it).admit()
    assert await Host(it).offer() == 1 << 16 | 1


@bench
async def a_slot_that_was_freed_is_offered_after_all_that_were_free_before(it: Bench) -> None:
    host = Host(it)
    request = await host.admit()
    await host.cancel(request)
    for slot in range(1, it.params.slots):
        assert await host.admit() == 1 << 16 | slot
    assert await host.offer() == 2 << 16 | request & 0xFFFF


@bench
async def the_epoch_wraps_past_zero(it: Bench) -> None:
    host = Host(it)
    await it.rest()
    slot = (await host.status()).slot
    for epoch in (0x7FFF, 0xFFFE, 0xFFFF, 1):
        request = epoch << 16 | slot
        await host.command(request)
        await it.expect(CommitKind.ADMIT, id=request)
        await host.cancel(request)
        # Everybody else's turn, then this slot's again.
        while (offered := await host.offer()) & 0xFFFF != slot:
            await host.command(offered)
            await host.cancel(offered)
            await it.settle()
        assert offered == (1 if epoch == 0xFFFF else epoch + 1) << 16 | slot
        await host.command(request)
        await it.expect(CommitKind.REJECT, id=request, stage=RejectReason.STALE_EPOCH)


@bench
async def the_status_is_never_all_ones(it: Bench) -> None:
    host = Host(it)
    for _ in range(it.params.slots):
        await host.admit()
    assert await host.status() == PageReqStatus(active=it.params.slots, slot=0xFFFF)
    await it.write32(PAGE_ENABLE, 0)
    assert await host.status() == PageReqStatus(active=it.params.slots, slot=0xFFFF)


@bench
async def a_disabled_page_keeps_its_half_command(it: Bench) -> None:
    host = Host(it)
    request = await host.offer()
    await it.write32(host.at(regmap.Page.SCHED_CMD) + 4, request)
    await it.write32(PAGE_ENABLE, 0)
    await it.write32(PAGE_ENABLE, 1)
    again = await host.offer()
    assert again != request
    await it.write32(host.at(regmap.Page.SCHED_CMD), 0)
    await it.expect(CommitKind.REJECT, id=request, stage=RejectReason.SLOT_NOT_OFFERED)
