"""The register bank: takes bus transactions one by one, hands commands to the core, and answers reads.

A transaction is accepted, decoded in the next cycle, and has its whole effect before the following one is accepted.
A read is answered three cycles after its acceptance; reads alone flow at one a cycle.
"""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Module, Signal, Value, ValueLike
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from . import regmap
from .core import Core
from .hand import RequestKind, RequestPort
from .lanes import Lanes
from .pages import Pages
from .params import PAGES, TIERS, Params
from .record import BITMAP_WORDS, record_word
from .trace import Counters, Rejects, Trace

__all__ = ["Bus", "Registers"]


class Bus(wiring.Signature):
    """64-bit transactions with byte strobes; ``address`` is in bytes and a multiple of 8."""

    def __init__(self) -> None:
        super().__init__(
            {
                "valid": Out(1),
                "ready": In(1),
                "write": Out(1),
                "address": Out(16),
                "data": Out(64),
                "strobe": Out(8),
                "answer_valid": In(1),
                "answer": In(64),
            }
        )


class Registers(wiring.Component):
    """BAR0 (docs/device.md §2)."""

    def __init__(
        self,
        params: Params,
        core: Core,
        pages: Pages,
        lanes: Lanes,
        trace: Trace,
        rejects: Rejects,
        counters: Counters,
        rtl_hash: int,
    ) -> None:
        self._params = params
        self._core = core
        self._pages = pages
        self._lanes = lanes
        self._trace = trace
        self._rejects = rejects
        self._counters = counters
        self._rtl_hash = rtl_hash
        super().__init__(
            {
                "bus": In(Bus()),
                "request": Out(RequestPort()),
                "time_ns": In(64),
                "boot_nonce": In(64),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus, pages, core, request = self.bus, self._pages, self._core, self.request
        self._cycles = Signal(64)
        m.d.sync += self._cycles.eq(self._cycles + 1)
        valid = Signal()
        write = Signal()
        address = Signal(16)
        payload = Signal(64)
        strobe = Signal(8)

        for_lane = (address[13:] == regmap.COMPLETION >> 13) | (address[13:] == regmap.POLL >> 13)
        m.d.comb += [
            bus.ready.eq(~request.valid & ~(valid & write & ~for_lane) & pages.settled),
        ]
        m.d.sync += [valid.eq(bus.valid & bus.ready), write.eq(bus.write)]
        with m.If(bus.valid & bus.ready):
            m.d.sync += [address.eq(bus.address), payload.eq(bus.data), strobe.eq(bus.strobe)]
        with m.If(request.done):
            m.d.sync += request.valid.eq(0)

        m.d.comb += [
            pages.page.eq(address[12:15]),
            pages.data.eq(payload),
            pages.strobe.eq(strobe),
            self._trace.pop_index.eq(payload[:32]),
            self._rejects.pop_index.eq(payload[:32]),
        ]
        with m.If(valid & write):
            self._decode_write(m, address, payload, strobe)

        # Reads: block RAM behind the poll window is read in the first cycle, the answer chosen in the second.
        reading = Signal()
        read_address = Signal(16)
        answer = Signal(64)
        room, known = Signal(range(len(core.passes))), Signal()
        read_room, read_known = Signal.like(room), Signal()
        for index, lane in enumerate(self._lanes.dispatchers):
            with m.If(address[10:13] == index):
                m.d.comb += [room.eq(Array(lane.rooms)[lane.offered_pass]), known.eq(lane.offered)]
        m.d.comb += [core.chunks.show_room.eq(room), core.chunks.show.eq((address[3:9] - BITMAP_WORDS)[1:])]
        m.d.sync += [
            reading.eq(valid & ~write),
            read_address.eq(address),
            read_room.eq(room),
            read_known.eq(known),
            bus.answer_valid.eq(reading),
            bus.answer.eq(answer),
        ]
        with m.If(reading):
            self._decode_read(m, read_address, read_room, read_known, answer)
        m.d.comb += self.idle.eq(~valid & ~reading & ~bus.answer_valid & ~request.valid)
        return m

    # -------------------------------------------------------------------------------------------- writes

    def _decode_write(self, m: Module, address: Signal, payload: Signal, strobe: Signal) -> None:
        pages, request = self._pages, self.request
        low, high = strobe[:4].all(), strobe[4:].all()

        def ask(kind: RequestKind) -> None:
            m.d.sync += [request.valid.eq(1), request.kind.eq(kind)]

        m.d.sync += [
            request.page.eq(address[12:15]),
            request.command.eq(pages.command),
            request.attr.eq(pages.attr),
            request.attr_state.eq(pages.attr_state),
            request.offset.eq(address),
            request.value.eq(payload[:32]),
        ]
        with m.If(~address[15]):
            with m.Switch(address[:12]):
                with m.Case(regmap.Page.SCHED_CMD):
                    m.d.comb += pages.cmd_write.eq(1)
                    with m.If(pages.complete):
                        ask(RequestKind.COMMAND)
                with m.Case(regmap.Page.SCHED_ATTR):
                    m.d.comb += pages.attr_write.eq(1)
                for register, kind in (
                    (regmap.Page.STAGE_DONE, RequestKind.STAGE_DONE),
                    (regmap.Page.PARK, RequestKind.PARK),
                    (regmap.Page.CREDIT, RequestKind.CREDIT),
                ):
                    with m.Case(register):
                        with m.If(low):
                            ask(kind)
                            m.d.sync += request.command.id.eq(payload[:32])
        with m.Elif(address[13:15] == 0):
            with m.If(low):
                with m.Switch(address):
                    with m.Case(*self._config_offsets):
                        ask(RequestKind.CONFIG)
                    with m.Case(regmap.FIFO + regmap.Fifo.RETIRE_POP):
                        ask(RequestKind.RETIRE_POP)
                    with m.Case(regmap.FIFO + regmap.Fifo.REJECT_POP):
                        m.d.comb += self._rejects.pop.eq(1)
                    with m.Case(regmap.FIFO + regmap.Fifo.TRACE_POP):
                        m.d.comb += self._trace.pop.eq(1)
        for index, lane in enumerate(self._lanes.dispatchers):
            here = address[10:13] == index
            completion = here & (address[13:] == regmap.COMPLETION >> 13)
            poll = here & (address[13:] == regmap.POLL >> 13)
            m.d.comb += [
                lane.entry.eq(address[6:10]),
                lane.finished_pair.eq(address[3:5]),
                lane.finished_words.eq(payload),
                lane.finished_enable.eq(Cat(low, high)),
                lane.finished_write.eq(completion & (address[:6] < regmap.Completion.BATCH_DONE)),
                lane.done_write.eq(completion & (address[:6] == regmap.Completion.BATCH_DONE) & low),
                lane.done_sequence.eq(payload[:32]),
                lane.taken_write.eq(poll & (address[:10] == regmap.Poll.POP) & low),
                lane.reoffer_write.eq(poll & (address[:10] == regmap.Poll.REOFFER) & low),
            ]

    @property
    def _config_offsets(self) -> list[int]:
        control, lane, group, tier = regmap.Control, regmap.Lane, regmap.Group, regmap.Tier
        return [
            *(regmap.CONTROL + offset for offset in (control.PAGE_ENABLE, control.GROUP_RESET, control.STAGE_COUNT)),
            *(
                regmap.LANE + regmap.LANE_STRIDE * i + offset
                for i in range(self._params.lanes)
                for offset in (lane.SEQUENCE, lane.DEPTH, lane.FIRST_STAGE, lane.PIPELINE)
            ),
            *(
                regmap.GROUP + regmap.GROUP_STRIDE * i + offset
                for i in range(self._params.lanes)
                for offset in (
                    *(group.SEATS, group.ROWS, group.KV_BLOCKS),
                    *(group.COST, group.COST_DECODE, group.COST_CHUNK),
                )
            ),
            *(
                regmap.TIER + regmap.TIER_STRIDE * i + offset
                for i in range(TIERS)
                for offset in (tier.MIN_SEATS, tier.MIN_ROWS, tier.KV_FLOOR, tier.SEAT_FLOOR)
            ),
        ]

    # --------------------------------------------------------------------------------------------- reads

    def _decode_read(self, m: Module, address: Signal, shown: Signal, known: Signal, answer: Signal) -> None:
        words: dict[int, list[Value]] = {}
        for offset, value in self._readable().items():
            width = 64 if len(value) > 32 else 32
            padded = Cat(value, Const(0, width))[:width]
            halves = words.setdefault(offset & ~7, [Const(0, 32), Const(0, 32)])
            for half in range(width // 32):
                halves[(offset >> 2 & 1) + half] = padded[32 * half : 32 * half + 32]
        with m.If(address[13:] == regmap.POLL >> 13):
            self._read_poll(m, address, shown, known, answer)
        with m.Else():
            with m.Switch(address):
                for offset, halves in words.items():
                    with m.Case(offset):
                        m.d.comb += answer.eq(Cat(halves))

    def _readable(self) -> dict[int, Value]:
        """Every readable register outside the poll windows, by offset."""
        params, core, pages = self._params, self._core, self._pages
        values: dict[int, ValueLike] = {}
        for page in range(PAGES):
            base = regmap.PAGE + regmap.PAGE_STRIDE * page
            offer, offered = pages.offer[page], pages.offered[page]
            values[base + regmap.Page.REQ_STATUS] = Cat(core.active, offer.slot | ~offered.replicate(16))
            values[base + regmap.Page.OFFER_ID] = Value.cast(offer) & offered.replicate(32)

        identity = regmap.Identity
        capabilities = (
            params.slots | params.seats << 16 | params.stages << 32 | params.lanes << 48 | TIERS << 52 | PAGES << 56
        )
        for offset, value in (
            (identity.MAGIC, Const(identity.MAGIC_RESET, 32)),
            (identity.VERSION, Const(identity.VERSION_RESET, 32)),
            (identity.BOOT_NONCE, self.boot_nonce),
            (identity.CAPABILITIES, Const(capabilities, 64)),
            (identity.TIME_NS, self.time_ns),
            (identity.CYCLES, self._cycles),
        ):
            values[regmap.IDENTITY + offset] = value
        for word in range(identity.RTL_HASH_COUNT):
            values[regmap.IDENTITY + identity.RTL_HASH + identity.RTL_HASH_STRIDE * word] = Const(
                self._rtl_hash >> (32 * word) & 0xFFFF_FFFF, 32
            )
        values[regmap.CONTROL + regmap.Control.PAGE_ENABLE] = pages.enable
        values[regmap.CONTROL + regmap.Control.STAGE_COUNT] = core.stage_count

        for index, lane in enumerate(self._lanes.dispatchers):
            base = regmap.LANE + regmap.LANE_STRIDE * index
            values[base + regmap.Lane.LANE_STATUS] = lane.status
            values[base + regmap.Lane.SEQUENCE] = lane.sequence
            values[base + regmap.Lane.PASS] = core.seats[index].number
            values[base + regmap.Lane.BUSY_NS] = lane.busy_ns
            values[base + regmap.Lane.DEPTH] = lane.depth
            values[base + regmap.Lane.OLDEST] = lane.oldest
            values[base + regmap.Lane.FIRST_STAGE] = self._lanes.pipelines.first_stages[index]
            values[base + regmap.Lane.PIPELINE] = self._lanes.pipelines.lengths[index]
            seats = core.seats[index]
            base = regmap.GROUP + regmap.GROUP_STRIDE * index
            values[base + regmap.Group.SEATS] = seats.limit
            values[base + regmap.Group.ROWS] = seats.rows
            values[base + regmap.Group.KV_BLOCKS] = seats.blocks_total
            values[base + regmap.Group.KV_FREE] = seats.blocks_free
            values[base + regmap.Group.OCCUPANCY] = Cat(
                seats.queued_count,
                *(
                    Cat(count, Const(0, 16))[:16]
                    for count in (seats.seated_count, seats.decoding_count, seats.parked_count)
                ),
            )

            values[base + regmap.Group.COST] = seats.cost
            values[base + regmap.Group.COST_DECODE] = seats.decode_cost
            values[base + regmap.Group.COST_CHUNK] = seats.chunk_cost
        for tier in range(TIERS):
            base = regmap.TIER + regmap.TIER_STRIDE * tier
            values[base + regmap.Tier.MIN_SEATS] = core.min_seats[tier]
            values[base + regmap.Tier.MIN_ROWS] = core.min_rows[tier]
            values[base + regmap.Tier.KV_FLOOR] = core.kv_floor[tier]
            values[base + regmap.Tier.SEAT_FLOOR] = core.seat_floor[tier]

        fifo, trace = regmap.Fifo, self._trace
        values[regmap.FIFO + fifo.REJECT_HEAD] = self._rejects.head
        values[regmap.FIFO + fifo.RETIRE_HEAD] = core.retired
        values[regmap.FIFO + fifo.TRACE_HEAD] = trace.head
        values[regmap.FIFO + fifo.TRACE_PAYLOAD] = trace.payload
        values[regmap.FIFO + fifo.TRACE_STATE] = trace.state

        names, counted = regmap.Counters, self._counters
        for offset, value in (
            (names.ADMITTED, counted.admitted),
            (names.RETIRED, counted.retired),
            (names.REJECTED, counted.rejected),
            (names.REJECTS_LOST, counted.rejects_lost),
            (names.STAGE_DONE_IGNORED, counted.stage_done_ignored),
            (names.COMPLETIONS_IGNORED, counted.completions_ignored),
            (names.POPS_IGNORED, counted.pops_ignored),
            (names.CONFIG_IGNORED, counted.config_ignored),
            (names.PASSES, counted.passes),
            (names.DISPATCHES, counted.dispatches),
            (names.ROWS, counted.rows),
            (names.TRACE_LOST, counted.trace_losses),
            (names.PAUSES, counted.pauses),
            (names.DECISION_CYCLES, counted.decision_cycles_sum),
        ):
            values[regmap.COUNTERS + offset] = value
        return {offset: Value.cast(value) for offset, value in values.items()}

    def _read_poll(self, m: Module, address: Signal, shown: Signal, known: Signal, answer: Signal) -> None:
        """The poll window of a lane; ``shown`` is the pass whose entries were read, where ``known``."""
        passes, chunks = self._core.passes, self._core.chunks
        stamp = Signal(16)
        record = record_word(
            m,
            address[3:9],
            decode=Array(pass_.decode for pass_ in passes)[shown],
            chunk=chunks.shown,
            count=Array(pass_.view.count for pass_ in passes)[shown],
            stamp=stamp,
        )
        for index, lane in enumerate(self._lanes.dispatchers):
            with m.If(address[10:13] == index):
                m.d.comb += stamp.eq(lane.stamp)
                with m.If(address[9]):
                    with m.If(known):
                        m.d.comb += answer.eq(record)
                with m.Else():
                    with m.Switch(address[:9]):
                        for offset, value in (
                            (regmap.Dispatch.HEAD, lane.head),
                            (regmap.Dispatch.PASS, lane.second),
                            (regmap.Dispatch.TAIL, lane.tail),
                        ):
                            with m.Case(regmap.Poll.DISPATCH + offset):
                                m.d.comb += answer.eq(value)
