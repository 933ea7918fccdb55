"""Failures of devices like this one that are known from the field, each as it was met there (docs/pcie.md)."""

from __future__ import annotations

from typing import Any

from cocotb.triggers import Timer
from cocotbext.pcie.core.tlp import TlpType

from cuelight import regmap
from cuelight.regmap import CommitKind, FallCause, PageSchedCmd, Push, PushCommand, PushMode, RejectReason

from .bench_pcie_losses import masters
from .host import Host
from .lane import Lane
from .pcie.bench import PcieBench, bench
from .pcie.lane_host import LaneHost
from .pcie.port import LanePort
from .pcie.ring_lane import Request, RingLane

_ONES = 0xFFFF_FFFF
_PAGES = 4


def lose_next(it: PcieBench, area: range) -> list[Any]:
    """The next write to these addresses is lost; it is in the list then."""
    lost: list[Any] = []

    def loses(packet: Any) -> bool:
        if lost or packet.fmt_type not in (TlpType.MEM_WRITE, TlpType.MEM_WRITE_64) or packet.address not in area:
            return False
        lost.append(packet)
        return True

    it.board.faults.loses = loses
    return lost


async def watched_lane(it: PcieBench, rows: int = 20) -> tuple[RingLane, LaneHost, int]:
    """A lane that is to be in PUSH, and a request; OVERDUE is short."""
    requests: dict[int, Request] = {}
    ring = RingLane(LanePort(it), requests)
    ring.port.settings[Push.OVERDUE] = 5
    host = LaneHost(ring)
    request = await Host(it).join(rows=rows)
    requests[request] = Request(rows, 1, 0)
    host.generation = 1
    await ring.port.push()
    return ring, host, request


async def until_retired(it: PcieBench, ring: RingLane, host: LaneHost, request: int) -> None:
    """Lane and host go on as ever, until the request is finished."""
    for _ in range(200):
        await ring.step()
        await host.step()
        it.lockstep.follow()
        if it.golden.slots.retirements:
            break
    await it.expect(CommitKind.RETIRE, id=request, stage=regmap.RetireReason.FINISHED)
    sequences = [sequence for sequence, _ in ring.executed]
    assert sequences == list(range(1, len(sequences) + 1))


@bench
async def two_producers_write_commands_at_once(it: PcieBench) -> None:
    """Halves of their commands mix on the link; each has a page, so neither half completes another's command."""
    await it.write32(regmap.CONTROL + regmap.Control.PAGE_ENABLE, (1 << _PAGES) - 1)
    hosts = [Host(it, page) for page in range(_PAGES)]
    for _ in range(5):
        offers = [await host.offer() for host in hosts]
        assert len(set(offers)) == _PAGES
        halves = [(host, offer, half) for host, offer in zip(hosts, offers, strict=True) for half in (0x0F, 0xF0)]
        it.random.shuffle(halves)
        for host, offer, half in halves:
            command = PageSchedCmd(id=offer, stage=host.page).pack()
            await it.write(host.at(regmap.Page.SCHED_CMD), command, half)
        await it.settle()
        admitted = it.seen(CommitKind.ADMIT, CommitKind.REJECT)
        assert {(event.kind, event.id, event.detail) for event in admitted} == {
            (CommitKind.ADMIT, offer, page) for page, offer in enumerate(offers)
        }


@bench
async def two_producers_do_not_write_one_ring(it: PcieBench) -> None:
    """As long as the host delivers, the device does not, however good the heartbeats are."""
    port, lane = LanePort(it), Lane(it)
    await Host(it).join(rows=20)
    sent = masters(it)
    await port.start()
    for _ in range(400):
        if not (await port.status()).needed:
            break
    await Timer(3_000, unit="ns")
    status = await port.status()
    assert (status.mode, status.needed) == (PushMode.PROBING, 0)
    assert {packet.fmt_type for packet in sent} == {TlpType.MEM_READ}
    assert (await lane.serve()).sequence == 1
    await it.write32(port.at(Push.COMMAND), PushCommand.PUSH)
    await port.arrives(2)


@bench
async def a_doorbell_comes_ahead_of_its_data(it: PcieBench) -> None:
    """The record is lost, its dispatch is not: the lane waits as if nothing were there, and has both again later."""
    ring, host, request = await watched_lane(it)
    lost = lose_next(it, range(ring.port.address + regmap.LanePort.RECORD, ring.port.area.stop))
    await it.write32(ring.port.at(Push.COMMAND), PushCommand.POLL)
    await ring.port.reach(PushMode.POLL)
    ring.port.clear()
    ring.port.settings[Push.OVERDUE] = 5
    await ring.port.push(2)
    host.generation = 2
    head = await ring.port.arrives(1)
    assert lost
    assert ring.port.whole_record(head) is None
    assert not await ring.step()
    assert (await ring.port.reach(PushMode.POLL)).cause == FallCause.OVERDUE
    await until_retired(it, ring, host, request)


@bench
async def a_completion_report_is_lost(it: PcieBench) -> None:
    """The device offers the dispatch again; the host answers for the lane, with what it had reported."""
    ring, host, request = await watched_lane(it)
    await ring.port.arrives(1)
    entries = it.board.address(regmap.COMPLETION)
    lost = lose_next(it, range(entries, entries + 0x2000))
    assert await ring.step()
    await it.settle()
    assert lost
    assert (await ring.port.reach(PushMode.POLL)).cause == FallCause.OVERDUE
    await it.expect(CommitKind.REOFFERED, id=1)
    assert ring.executed[0][0] == 1
    await until_retired(it, ring, host, request)
    assert await it.read32(ring.port.at(Push.FALLS + Push.FALLS_STRIDE * FallCause.OVERDUE)) == 1


@bench
async def a_poisoned_report_is_lost(it: PcieBench) -> None:
    """As the one before, but the hard block drops it, and counts it."""
    ring, host, _ = await watched_lane(it)
    head = await ring.port.arrives(1)
    entry = Lane(it).entry(head.sequence, regmap.Completion.BATCH_DONE)
    tlp = it.board.packet(TlpType.MEM_WRITE, entry, 1, 0xF, 0)
    tlp.data, tlp.ep = bytearray(head.sequence.to_bytes(4, "little")), True
    await it.board.rc.perform_posted_operation(tlp)
    ring.expected, ring.executed, ring.reported = 2, [(1, head.stage)], {1: 0}
    assert await it.read32(regmap.ENDPOINT + regmap.Endpoint.POISONED) == 1
    assert (await ring.port.reach(PushMode.POLL)).cause == FallCause.OVERDUE
    await host.step()
    await it.expect(CommitKind.COMPLETE, id=1)


@bench
async def commands_of_zero_and_of_all_ones_do_nothing(it: PcieBench) -> None:
    """What a torn store, or one that was split into zero and value, writes: no such id, and no half stays."""
    host = Host(it)
    offset = host.at(regmap.Page.SCHED_CMD)
    offer = await host.offer()
    for command in (0, (1 << 64) - 1, _ONES, _ONES << 32):
        await it.write64(offset, command)
        await it.expect(CommitKind.REJECT, stage=RejectReason.ILLEGAL_ID, id=command >> 32)
        assert await host.offer() == offer
    for half in (0x0F, 0xF0):
        for value in (0, (1 << 64) - 1):
            await it.write(offset, value, half)
            await it.settle()
            assert not it.seen(CommitKind.ADMIT, CommitKind.REJECT, CommitKind.CANCEL)
            # Attributes begin a command anew, as every driver writes them first.
            await host.attributes(rows=1)
    await host.command(offer)
    await it.expect(CommitKind.ADMIT, id=offer)
    for register in (regmap.Page.STAGE_DONE, regmap.Page.PARK, regmap.Page.CREDIT):
        for value in (0, _ONES):
            await it.write32(host.at(register), value)
    await it.settle()
    assert (await host.status()).active == 1
