"""What the device knows of each slot, in block RAM."""

import enum

from amaranth.hdl import Module, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from .params import Params

__all__ = ["Life", "Owner", "Slots", "Work"]


class Life(enum.IntEnum):
    """Where a slot's request stands (docs/device.md §3, §4)."""

    FREE = 0
    RUNNING = 1
    """Manual mode, stage pending."""
    WAITING = 2
    """Manual mode, stage done."""
    QUEUED = 3
    SEATED = 4
    RETIRED = 5
    PARKED = 6
    """Parked without a seat."""


class Owner(data.Struct):
    """A slot's request."""

    life: Life
    epoch: 16
    tier: 2
    group: 3
    seat: 8
    reason: 3
    stepped: 1
    credited: 1
    """A CREDIT came early."""


class Work(data.Struct):
    """What a request still has to prefill, and the KV blocks it holds."""

    blocks: 16
    rest: 20
    """Rows left to prefill."""
    start: 20
    """Position of the next row."""
    fresh: 1
    """No chunk has been done."""


class Slots(wiring.Component):
    """Two block RAMs with one row a slot, swept after reset.

    ``fetch`` is the slot to read: ``owner`` and ``work`` show it two cycles later. ``swept`` rises when every row
    has been cleared; before that nothing may be written.
    """

    def __init__(self, params: Params) -> None:
        self._params = params
        bits = params.slot_bits
        super().__init__(
            {
                "fetch": In(bits),
                "owner": Out(Owner),
                "work": Out(Work),
                "slot": In(bits),
                "write_owner": In(1),
                "next_owner": In(Owner),
                "write_work": In(1),
                "next_work": In(Work),
                "swept": Out(1),
            }
        )
        self.sweep = Signal(bits)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        depth = self._params.slots
        m.submodules.owner_ram = owner_ram = memory.Memory(shape=Owner, depth=depth, init=[])
        m.submodules.work_ram = work_ram = memory.Memory(shape=Work, depth=depth, init=[])
        owner_read, owner_write = owner_ram.read_port(), owner_ram.write_port()
        work_read, work_write = work_ram.read_port(), work_ram.write_port()
        m.d.comb += [
            owner_read.addr.eq(self.fetch),
            work_read.addr.eq(self.fetch),
            work_write.addr.eq(self.slot),
            work_write.data.eq(self.next_work),
            work_write.en.eq(self.write_work),
        ]
        m.d.sync += [self.owner.eq(owner_read.data), self.work.eq(work_read.data)]
        with m.If(self.swept):
            m.d.comb += [
                owner_write.addr.eq(self.slot),
                owner_write.data.eq(self.next_owner),
                owner_write.en.eq(self.write_owner),
            ]
        with m.Else():
            m.d.comb += [owner_write.addr.eq(self.sweep), owner_write.en.eq(1)]
            m.d.sync += [self.sweep.eq(self.sweep + 1), self.swept.eq(self.sweep == depth - 1)]
        return m
