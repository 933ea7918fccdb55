"""What the device's registers read, from the golden model's state (cuelight.rdl, docs/device.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from cuelight import regmap

from .fifos import Counters
from .group import Group
from .lane import Lane
from .pages import ProducerPage
from .tiers import TIERS, Tier

if TYPE_CHECKING:
    from .golden import Golden

__all__ = ["Registers", "Word"]

_MASK32 = 0xFFFF_FFFF
_MASK64 = 0xFFFF_FFFF_FFFF_FFFF


class Word(NamedTuple):
    """A foretold value of 32 bits."""

    value: int
    known: int = _MASK32
    """Mask of the bits that are foretold."""

    def allows(self, value: int) -> bool:
        """Whether a read may give ``value``."""
        return (value ^ self.value) & self.known == 0


class _Wide(NamedTuple):
    """A foretold value of a register of 32 or 64 bits."""

    value: int
    known: int = _MASK64


_UNKNOWN = _Wide(0, 0)


class Registers:
    """Foretells reads; offsets that no register has read zero."""

    def __init__(self, golden: Golden) -> None:
        self._golden = golden
        self._readers: dict[int, Callable[[], _Wide]] = {}
        """For each 32-bit word, what its register reads, moved down to the word."""
        self._add_pages()
        self._add_identity()
        self._add_groups()
        self._add_fifos()
        self._add_counters()

    @property
    def offsets(self) -> Iterable[int]:
        """Words of registers that can be read."""
        return self._readers

    def read(self, offset: int) -> Word:
        """The 32-bit word at ``offset``."""
        reader = self._readers.get(offset)
        if reader is None:
            return Word(0)
        wide = reader()
        return Word(wide.value & _MASK32, wide.known & _MASK32)

    def _add(self, offset: int, reader: Callable[[], _Wide | int], words: int = 1) -> None:
        for word in range(words):

            def read(shift: int = 32 * word) -> _Wide:
                wide = reader()
                if isinstance(wide, int):
                    wide = _Wide(wide)
                return _Wide(wide.value >> shift, wide.known >> shift)

            self._readers[offset + 4 * word] = read

    # ------------------------------------------------------------------------------------------- by register file

    def _add_pages(self) -> None:
        slots = self._golden.slots

        def status(page: ProducerPage) -> int:
            offer = 0xFFFF if page.offer is None else page.offer
            return regmap.PageReqStatus(active=slots.active, slot=offer).pack()

        def offer_id(page: ProducerPage) -> int:
            return 0 if page.offer is None else slots.next_id(page.offer)

        for number, page in enumerate(self._golden.pages):
            base = regmap.PAGE + number * regmap.PAGE_STRIDE
            self._add(base + regmap.Page.REQ_STATUS, partial(status, page))
            self._add(base + regmap.Page.OFFER_ID, partial(offer_id, page))

    def _add_identity(self) -> None:
        golden, base, identity = self._golden, regmap.IDENTITY, regmap.Identity
        sizes = golden.sizes
        capabilities = regmap.IdentityCapabilities(
            slots=sizes.slots,
            seats=sizes.seats,
            stages=sizes.stages,
            lanes=sizes.lanes,
            tiers=TIERS,
            pages=regmap.PAGE_COUNT,
        ).pack()
        self._add(base + identity.MAGIC, lambda: identity.MAGIC_RESET)
        self._add(base + identity.VERSION, lambda: identity.VERSION_RESET)
        self._add(base + identity.BOOT_NONCE, lambda: golden.nonce, words=2)
        self._add(base + identity.CAPABILITIES, lambda: capabilities, words=2)
        self._add(base + identity.TIME_NS, lambda: _UNKNOWN, words=2)
        self._add(base + identity.CYCLES, lambda: _UNKNOWN, words=2)
        self._add(base + identity.RTL_HASH, lambda: _UNKNOWN, words=identity.RTL_HASH_COUNT)
        self._add(regmap.CONTROL + regmap.Control.PAGE_ENABLE, lambda: golden.control.pages)
        self._add(regmap.CONTROL + regmap.Control.STAGE_COUNT, lambda: golden.control.stage_count)

    def _add_groups(self) -> None:
        for group, lane in zip(self._golden.groups, self._golden.lanes, strict=True):
            self._add_lane(lane, group, regmap.LANE + lane.index * regmap.LANE_STRIDE)
            self._add_group(group, regmap.GROUP + group.index * regmap.GROUP_STRIDE)
            self._add_poll(lane, regmap.POLL + lane.index * regmap.POLL_STRIDE)
        for number, tier in enumerate(self._golden.tiers):
            self._add_tier(tier, regmap.TIER + number * regmap.TIER_STRIDE)

    def _add_lane(self, lane: Lane, group: Group, base: int) -> None:
        golden = self._golden

        def status() -> _Wide:
            outstanding, served = lane.outstanding, golden.group_of(lane)
            value = regmap.LaneLaneStatus(
                outstanding=outstanding is not None,
                offered=lane.offered is not None,
                in_pass=bool(served.alive),
                resetting=served.resetting,
                stage=outstanding.leg.stage if outstanding is not None else 0,
            ).pack()
            certain = ~0 if outstanding is not None else ~regmap.LaneLaneStatus(stage=0xFF).pack()
            if served.ends_last_pass:
                certain &= ~regmap.LaneLaneStatus(in_pass=1).pack()
            return _Wide(value, certain)

        def busy_ns() -> _Wide:
            scale = golden.ns_per_cycle
            return _UNKNOWN if scale is None else _Wide(lane.busy_cycles * scale)

        self._add(base + regmap.Lane.LANE_STATUS, status)
        self._add(base + regmap.Lane.SEQUENCE, lambda: lane.sequence)
        self._add(base + regmap.Lane.OLDEST, lambda: lane.outstanding.sequence if lane.outstanding is not None else 0)
        self._add(base + regmap.Lane.PASS, lambda: group.pass_number)
        self._add(base + regmap.Lane.DEPTH, lambda: lane.depth)
        self._add(base + regmap.Lane.FIRST_STAGE, lambda: lane.first_stage)
        self._add(base + regmap.Lane.PIPELINE, lambda: lane.pipeline)
        self._add(base + regmap.Lane.BUSY_NS, busy_ns, words=2)

    def _add_group(self, group: Group, base: int) -> None:
        def occupancy() -> int:
            return regmap.GroupOccupancy(
                queued=group.queued,
                seated=len(group.seated),
                decoding=group.decoding.bit_count(),
                parked=sum(request.parked for request in group.seated.values()),
            ).pack()

        self._add(base + regmap.Group.SEATS, lambda: group.seats)
        self._add(base + regmap.Group.ROWS, lambda: group.rows)
        self._add(base + regmap.Group.KV_BLOCKS, lambda: group.kv_blocks)
        self._add(base + regmap.Group.KV_FREE, lambda: group.kv_free)
        self._add(base + regmap.Group.OCCUPANCY, occupancy, words=2)
        self._add(base + regmap.Group.COST, lambda: group.costs.budget)
        self._add(base + regmap.Group.COST_DECODE, lambda: group.costs.decode)
        self._add(
            base + regmap.Group.COST_CHUNK, lambda: regmap.GroupCostChunk(c0=group.costs.c0, c1=group.costs.c1).pack()
        )

    def _add_tier(self, tier: Tier, base: int) -> None:
        self._add(base + regmap.Tier.MIN_SEATS, lambda: tier.min_seats)
        self._add(base + regmap.Tier.MIN_ROWS, lambda: tier.min_rows)
        self._add(base + regmap.Tier.KV_FLOOR, lambda: tier.kv_floor)
        self._add(base + regmap.Tier.SEAT_FLOOR, lambda: tier.seat_floor)

    def _add_poll(self, lane: Lane, base: int) -> None:
        dispatch = base + regmap.Poll.DISPATCH
        for offset, reader in (
            (regmap.Dispatch.HEAD, _head),
            (regmap.Dispatch.PASS, _pass_word),
            (regmap.Dispatch.TAIL, _tail),
        ):
            self._add(dispatch + offset, partial(reader, lane), words=2)
        record = base + regmap.Poll.RECORD
        for unit in range(regmap.Record.BITMAP_COUNT):
            offset = record + regmap.Record.BITMAP + unit * regmap.Record.BITMAP_STRIDE
            for word in range(regmap.BitmapUnit.WORD_COUNT):
                self._add(
                    offset + regmap.BitmapUnit.WORD + word * regmap.BitmapUnit.WORD_STRIDE,
                    partial(_bitmap_word, lane, 96 * unit + 32 * word),
                )
            self._add(offset + regmap.BitmapUnit.TAIL, partial(_bitmap_tail, lane))
        for number in range(regmap.Record.ENTRY_COUNT):
            offset = record + regmap.Record.ENTRY + number * regmap.Record.ENTRY_STRIDE
            self._add(offset, partial(_entry, lane, number), words=regmap.Entry.SIZE // 4)

    def _add_fifos(self) -> None:
        golden, base, fifo = self._golden, regmap.FIFO, regmap.Fifo

        def reject_head() -> _Wide:
            rejects = golden.rejects
            if not rejects.held:
                return _Wide(0, 1 << 63)
            head = rejects.held[0]
            index = rejects.index & 0xFFFF
            return _Wide(
                regmap.FifoRejectHead(id=head.id, reason=head.reason, page=head.page, index=index, valid=1).pack()
            )

        def retire_head() -> _Wide:
            slots = golden.slots
            if not slots.retirements:
                return _Wide(0, 1 << 63)
            request_id, reason = slots.retirements[0]
            index = slots.retire_index & 0xFFFF
            return _Wide(regmap.FifoRetireHead(id=request_id, reason=reason, index=index, valid=1).pack())

        def trace_head() -> _Wide:
            if not golden.trace.held:
                return _UNKNOWN
            event, cycle = golden.trace.held[0]
            time_ns = cycle * (golden.ns_per_cycle or 0)
            value = regmap.FifoTraceHead(time_ns=time_ns, kind=event.kind, lane=event.lane, stage=event.stage).pack()
            return _Wide(value) if golden.ns_per_cycle is not None else _Wide(value, 0xFFFF << 48)

        def trace_payload() -> _Wide:
            if not golden.trace.held:
                return _UNKNOWN
            event, _ = golden.trace.held[0]
            return _Wide(regmap.FifoTracePayload(id=event.id, detail=event.detail).pack())

        def trace_state() -> int:
            return regmap.FifoTraceState(index=golden.trace.index, held=len(golden.trace.held)).pack()

        self._add(base + fifo.REJECT_HEAD, reject_head, words=2)
        self._add(base + fifo.RETIRE_HEAD, retire_head, words=2)
        self._add(base + fifo.TRACE_HEAD, trace_head, words=2)
        self._add(base + fifo.TRACE_PAYLOAD, trace_payload, words=2)
        self._add(base + fifo.TRACE_STATE, trace_state, words=2)

    def _add_counters(self) -> None:
        counters = self._golden.counters
        for name in asdict(Counters()):
            if name != "decision_cycles":
                offset = regmap.COUNTERS + getattr(regmap.Counters, name.upper())
                self._add(offset, partial(getattr, counters, name))

        def decision_cycles() -> _Wide:
            return _UNKNOWN if counters.decision_cycles is None else _Wide(counters.decision_cycles)

        self._add(regmap.COUNTERS + regmap.Counters.DECISION_CYCLES, decision_cycles, words=2)


# ------------------------------------------------------------------------------------------- descriptor and record


def _head(lane: Lane) -> int:
    head = lane.offered
    if head is None:
        return 0
    return regmap.DispatchHead(
        sequence=head.sequence,
        stage=head.leg.stage,
        buffer=head.run.buffer,
        first=head.leg.first,
        last=head.leg.last,
        samples=head.run.samples,
        rows=head.run.rows,
    ).pack()


def _pass_word(lane: Lane) -> _Wide:
    head = lane.offered
    if head is None:
        return _UNKNOWN
    return _Wide(
        regmap.DispatchPass(
            pass_number=head.run.number, entries=len(head.run.entries), stamp=head.sequence & 0xFFFF
        ).pack()
    )


def _tail(lane: Lane) -> _Wide:
    head = lane.offered
    return _UNKNOWN if head is None else _Wide(regmap.DispatchTail(stamp=head.sequence & 0xFFFF).pack())


def _bitmap_word(lane: Lane, seat: int) -> int:
    head = lane.offered
    return head.run.decode >> seat if head is not None else 0


def _bitmap_tail(lane: Lane) -> int:
    head = lane.offered
    return regmap.BitmapUnitTail(stamp=head.run.stamps[lane.index]).pack() if head is not None else 0


def _entry(lane: Lane, number: int) -> int:
    head = lane.offered
    if head is None or number >= len(head.run.entries):
        return 0
    entry = head.run.entries[number]
    chunk = regmap.EntryChunk(
        start=entry.start, seat=entry.seat, bind=entry.bind, first=entry.first, last=entry.last
    ).pack()
    return (
        entry.request.id << 8 * regmap.Entry.REQUEST
        | chunk << 8 * regmap.Entry.CHUNK
        | regmap.EntryRows(rows=entry.rows).pack() << 8 * regmap.Entry.ROWS
        | regmap.EntryTail(stamp=head.run.stamps[lane.index]).pack() << 8 * regmap.Entry.TAIL
    )
