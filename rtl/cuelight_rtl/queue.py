"""Doubly linked lists through the slots: request queues, lists of prefilling seats, the retirement FIFO.

A slot is in one list at most. Links live in two block RAMs, ends in registers, so a push writes each RAM once and
an unlink, wherever the slot stands, writes each once too.
"""

from __future__ import annotations

import enum

from amaranth.hdl import Array, Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from .params import TIERS, Params

__all__ = ["ListOp", "Lists"]


class ListOp(enum.IntEnum):
    """What happens to ``slot`` and ``list`` in this cycle."""

    NONE = 0
    PUSH = 1
    """Append at the tail."""
    PUSH_FRONT = 2
    """Insert at the head."""
    UNLINK = 3
    """Take out; ``fetch`` must have fetched this slot's links."""
    MOVE = 4
    """Take the head, which must be ``slot``, and append it to the list ``onto``; links as for UNLINK."""


class Lists(wiring.Component):
    """All lists of a device.

    ``fetch`` is the slot whose links are read: they stand in ``next`` and ``previous`` two cycles later. ``heads``,
    ``tails`` and ``filled`` show every list's ends at all times.
    """

    def __init__(self, params: Params) -> None:
        self._params = params
        bits = params.slot_bits
        self.count = 2 * params.lanes * TIERS + 1
        super().__init__(
            {
                "fetch": In(bits),
                "next": Out(bits),
                "previous": Out(bits),
                "op": In(ListOp),
                "list": In(range(self.count)),
                "onto": In(range(self.count)),
                "slot": In(bits),
            }
        )
        self.heads = Array(Signal(bits, name=f"head_{i}") for i in range(self.count))
        self.tails = Array(Signal(bits, name=f"tail_{i}") for i in range(self.count))
        self.filled = Signal(self.count)

    def waiting(self, group: int, tier: int) -> int:
        """Index of the list of queued requests."""
        return group * TIERS + tier

    def prefilling(self, group: int, tier: int) -> int:
        """Index of the list of prefilling seats."""
        return (self._params.lanes + group) * TIERS + tier

    @property
    def retired(self) -> int:
        """Index of the retirement FIFO."""
        return self.count - 1

    def elaborate(self, platform: object) -> Module:
        m = Module()
        slots, bits = self._params.slots, self._params.slot_bits
        m.submodules.next_ram = next_ram = memory.Memory(shape=bits, depth=slots, init=[])
        m.submodules.previous_ram = previous_ram = memory.Memory(shape=bits, depth=slots, init=[])
        next_read, next_write = next_ram.read_port(), next_ram.write_port()
        previous_read, previous_write = previous_ram.read_port(), previous_ram.write_port()
        m.d.comb += [next_read.addr.eq(self.fetch), previous_read.addr.eq(self.fetch)]
        m.d.sync += [self.next.eq(next_read.data), self.previous.eq(previous_read.data)]

        head, tail = self.heads[self.list], self.tails[self.list]
        filled = self.filled.bit_select(self.list, 1)
        onto_tail, onto_filled = self.tails[self.onto], self.filled.bit_select(self.onto, 1)
        is_head = head == self.slot
        is_tail = tail == self.slot
        with m.Switch(self.op):
            with m.Case(ListOp.PUSH):
                m.d.sync += [tail.eq(self.slot), filled.eq(1)]
                with m.If(~filled):
                    m.d.sync += head.eq(self.slot)
                m.d.comb += [
                    next_write.en.eq(filled),
                    next_write.addr.eq(tail),
                    next_write.data.eq(self.slot),
                    previous_write.en.eq(1),
                    previous_write.addr.eq(self.slot),
                    previous_write.data.eq(tail),
                ]
            with m.Case(ListOp.PUSH_FRONT):
                m.d.sync += [head.eq(self.slot), filled.eq(1)]
                with m.If(~filled):
                    m.d.sync += tail.eq(self.slot)
                m.d.comb += [
                    next_write.en.eq(1),
                    next_write.addr.eq(self.slot),
                    next_write.data.eq(head),
                    previous_write.en.eq(filled),
                    previous_write.addr.eq(head),
                    previous_write.data.eq(self.slot),
                ]
            with m.Case(ListOp.MOVE):
                # Nothing refers back from the new head, which is known by being the head.
                with m.If(is_tail):
                    m.d.sync += filled.eq(0)
                m.d.sync += [head.eq(self.next), onto_tail.eq(self.slot), onto_filled.eq(1)]
                with m.If(~onto_filled):
                    m.d.sync += self.heads[self.onto].eq(self.slot)
                m.d.comb += [
                    next_write.en.eq(onto_filled),
                    next_write.addr.eq(onto_tail),
                    next_write.data.eq(self.slot),
                    previous_write.en.eq(1),
                    previous_write.addr.eq(self.slot),
                    previous_write.data.eq(onto_tail),
                ]
            with m.Case(ListOp.UNLINK):
                m.d.comb += [
                    next_write.en.eq(~is_head),
                    next_write.addr.eq(self.previous),
                    next_write.data.eq(self.next),
                    previous_write.en.eq(~is_tail),
                    previous_write.addr.eq(self.next),
                    previous_write.data.eq(self.previous),
                ]
                with m.If(is_head):
                    m.d.sync += head.eq(self.next)
                with m.If(is_tail):
                    m.d.sync += tail.eq(self.previous)
                with m.If(is_head & is_tail):
                    m.d.sync += filled.eq(0)
        return m
