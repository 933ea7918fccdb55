"""The completer: what the host asks of the BARs becomes transactions of the bus, and what they answer completions.

References: AMD PG213 (1.3) for the streams, PCI Express Base Specification 4.0, 2.2.9 and 2.3.1, for completions.
"""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ... import regmap
from ...encode import lowest
from ...registers import Bus
from .receiver import PAYLOAD, Receiver, is_posted
from .replier import Replier
from .streams import CC, CQ, CcDescriptor, CompletionStatus, RequestType

__all__ = ["REGISTERS_BAR", "TABLE_BAR", "Completer"]

REGISTERS_BAR, TABLE_BAR = 0, 2
_ADDRESS_BITS = 16
_LONG = (regmap.COMPLETION >> 13, regmap.POLL >> 13)
"""Windows of 8 KiB that take accesses of up to `PAYLOAD` dwords; elsewhere it is two."""
_CREDIT_REST = 255
"""Cycles without a packet in which a credit must show, or the request that uses it come; else it is given again."""


class Completer(wiring.Component):
    """Answers the host, one request after the other.

    ``registers`` is what BAR0 holds, ``table`` what BAR2 does. A request becomes one transaction for each unit of 64
    bits that it touches, in the order of addresses. A bus may answer reads in any later cycle, in their order. A packet
    does nothing before its last beat has come.

    Credit for the next non-posted request is given only when the completion of the one before is gone. So there is
    always room for a posted one, whatever becomes of completions.

    With ``halt`` it takes no further packet; ``idle``: it has nothing to do, and every completion is gone.

    Strobes count packets: ``spoilt`` ones, ``dropped`` posted requests and ``refused`` non-posted ones.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "cq": In(CQ),
                "cc": Out(CC),
                "np_req": Out(2),
                "np_req_count": In(6),
                "registers": Out(Bus()),
                "table": Out(Bus()),
                "spoilt": Out(1),
                "dropped": Out(1),
                "refused": Out(1),
                "halt": In(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.receiver = receiver = Receiver()
        m.submodules.replier = replier = Replier()
        wiring.connect(m, wiring.flipped(self.cq), receiver.cq)
        wiring.connect(m, replier.cc, wiring.flipped(self.cc))
        m.d.comb += [receiver.halt.eq(self.halt), self.idle.eq(receiver.idle & ~replier.busy)]
        request = receiver.descriptor
        count, kind = request.count, request.kind
        reads, writes = kind == RequestType.MEMORY_READ, kind == RequestType.MEMORY_WRITE

        # Where it goes, and whether it may.
        offset = Signal(_ADDRESS_BITS - 2)
        m.d.comb += offset.eq(
            Cat(bit & (request.aperture > place + 2) for place, bit in enumerate(request.address[: len(offset)]))
        )
        bars = {REGISTERS_BAR: self.registers, TABLE_BAR: self.table}
        ours = Cat(request.bar == bar for bar in bars).any() & (request.aperture <= _ADDRESS_BITS)
        is_long = (request.bar == REGISTERS_BAR) & Cat(offset[13 - 2 :] == window for window in _LONG).any()
        fits = (count != 0) & (count <= Mux(is_long, PAYLOAD, 2))
        accesses = Signal()
        m.d.comb += accesses.eq(receiver.valid & ~receiver.spoilt & (reads | writes) & ours & fits)

        # Units of 64 bits.
        odd = offset[0]
        units = Signal(range(PAYLOAD // 2 + 2))
        issued = Signal.like(units)
        answered = Signal.like(units)
        m.d.comb += units.eq((count[:5] + odd + 1) >> 1)
        asks = Signal()
        taken = Signal()
        answers = Signal()
        answer = Signal(64)
        m.d.comb += asks.eq(accesses & (issued != units) & (writes | ~replier.busy))
        for bar, bus in bars.items():
            m.d.comb += [
                bus.valid.eq(asks & (request.bar == bar)),
                bus.write.eq(writes),
                bus.address.eq(((offset >> 1) + issued)[: _ADDRESS_BITS - 3] << 3),
                bus.data.eq(receiver.payload[:64]),
                bus.strobe.eq(self._strobe(receiver, issued, odd)),
            ]
            with m.If(request.bar == bar):
                m.d.comb += [taken.eq(bus.valid & bus.ready), answers.eq(bus.answer_valid), answer.eq(bus.answer)]
        with m.If(taken):
            m.d.comb += receiver.shift.eq(1)
            m.d.sync += issued.eq(issued + 1)
        with m.If(answers):
            m.d.sync += answered.eq(answered + 1)

        # Ends.
        with m.If(receiver.valid):
            with m.If(receiver.spoilt):
                m.d.comb += [self.spoilt.eq(1), receiver.release.eq(1)]
            with m.Elif(accesses & writes):
                m.d.comb += receiver.release.eq(taken & (issued + 1 == units))
            with m.Elif(accesses):
                m.d.comb += [
                    replier.put.eq(answers & (answered + 1 == units)),
                    receiver.release.eq(replier.put),
                ]
            with m.Elif(is_posted(kind)):
                m.d.comb += [self.dropped.eq(1), receiver.release.eq(1)]
            with m.Elif(~replier.busy):
                m.d.comb += [self.refused.eq(1), replier.put.eq(1), receiver.release.eq(1)]
        with m.If(receiver.release):
            m.d.sync += [issued.eq(0), answered.eq(0)]

        status = Mux(reads & ours, CompletionStatus.COMPLETER_ABORT, CompletionStatus.UNSUPPORTED_REQUEST)
        self._reply(m, receiver, replier, accesses, status)
        with m.If(accesses):
            for index in range(PAYLOAD):
                for shifted in range(2):
                    unit, half = divmod(index + shifted, 2)
                    with m.If((odd == shifted) & (answered == unit)):
                        m.d.comb += [
                            replier.store[index].eq(answers),
                            replier.words.word_select(index, 32).eq(answer.word_select(half, 32)),
                        ]
        with m.Else():
            told = Cat(receiver.first_be, receiver.last_be, Const(0, 24), request)
            m.d.comb += [replier.store[:5].eq(self.refused.replicate(5)), replier.words.eq(told)]
        self._give_credit(m, receiver, replier)
        return m

    def _strobe(self, receiver: Receiver, unit: Signal, odd: Value) -> Value:
        """Bytes of a unit that the request touches."""
        count = receiver.descriptor.count[:5]
        halves: list[Value] = []
        for half in range(2):
            index = Cat(Const(half, 1), unit) - odd
            inside = (index >= 0) & (index < count)
            enables = Mux(index == 0, receiver.first_be, Mux(index == count - 1, receiver.last_be, 0xF))
            halves.append(Mux(inside, enables, 0)[:4])
        return Cat(halves)

    def _reply(self, m: Module, receiver: Receiver, replier: Replier, accesses: Signal, refusal: Value) -> None:
        """The completion's descriptor."""
        request = receiver.descriptor
        kind = request.kind
        reply = Signal(CcDescriptor)
        is_memory = (kind == RequestType.MEMORY_READ) | (kind == RequestType.LOCKED_READ)
        is_atomic = Cat(kind == each for each in (RequestType.FETCH_ADD, RequestType.SWAP)).any()
        compares = kind == RequestType.COMPARE_SWAP
        ends = Mux(request.count == 1, receiver.first_be, receiver.last_be)[:4]
        before = Mux(receiver.first_be.any(), lowest(m, receiver.first_be, "before"), 0)
        after = lowest(m, Cat(reversed(list(ends))), "after")
        empty = (request.count == 1) & ~receiver.first_be.any()
        size = (request.count << 2)[:13]
        m.d.comb += [
            reply.lower_address.eq(Mux(is_memory, Cat(before[:2], request.address[:5]), 0)),
            reply.address_type.eq(Mux(is_memory | is_atomic | compares, request.address_type, 0)),
            reply.byte_count.eq(4),
            reply.locked.eq(kind == RequestType.LOCKED_READ),
            reply.count.eq(Mux(accesses, request.count, 0)),
            reply.status.eq(Mux(accesses, CompletionStatus.SUCCESSFUL, refusal)),
            *(getattr(reply, name).eq(getattr(request, name)) for name in ("requester", "tag", "function")),
            *(getattr(reply, name).eq(getattr(request, name)) for name in ("traffic_class", "attributes")),
            replier.descriptor.eq(reply),
            replier.count.eq(Mux(accesses, request.count, 5)),
        ]
        with m.If(is_memory):
            m.d.comb += reply.byte_count.eq(Mux(empty, 1, size - before - after))
        with m.Elif(is_atomic):
            m.d.comb += reply.byte_count.eq(size)
        with m.Elif(compares):
            m.d.comb += reply.byte_count.eq(size >> 1)

    def _give_credit(self, m: Module, receiver: Receiver, replier: Replier) -> None:
        """A pulse for each non-posted request, and another one if the hard block did not see it."""
        rest = Signal(range(_CREDIT_REST + 1))
        gives = Signal()
        room = ~receiver.nonposted & ~receiver.begins & ~replier.busy
        m.d.comb += gives.eq(room & (rest == 0) & (self.np_req_count == 0))
        # From a register, so that none is given in a reset that the hard block has no part in.
        m.d.sync += self.np_req.eq(gives)
        with m.If(gives):
            m.d.sync += rest.eq(_CREDIT_REST)
        with m.Elif(receiver.begins):
            m.d.sync += rest.eq(0)
        with m.Elif(self.np_req_count != 0):
            m.d.sync += rest.eq(_CREDIT_REST)
        with m.Elif((rest != 0) & ~self.cq.valid):
            m.d.sync += rest.eq(rest - 1)
