"""Producer pages: half commands, attributes, and the slot offered to each page."""

import enum

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, fifo, memory, wiring
from amaranth.lib.wiring import In, Out

from .commit import CommitPort, report
from .encode import lowest
from .params import PAGES, Params
from .regmap import CommitKind, Control, PageSchedAttr, PageSchedCmd

__all__ = ["AttrState", "Pages"]


class AttrState(enum.IntEnum):
    """How much of SCHED_ATTR a page has received."""

    ABSENT = 0
    PARTIAL = 1
    WHOLE = 2


class Free(data.Struct):
    """A free slot and the epoch it is offered with."""

    slot: 16
    epoch: 16


class Pages(wiring.Component):
    """Assembles commands byte by byte and keeps an offer standing on each enabled page (docs/device.md §3).

    ``cmd_write`` and ``attr_write`` carry a bus write to ``page``; ``complete`` rises in the same cycle when it makes
    a command whole. ``accept`` uses up ``accept_page``'s offer; ``release`` gives a slot back to the free list.
    ``settled`` means that no offer is about to change.
    """

    def __init__(self, params: Params) -> None:
        self._params = params
        super().__init__(
            {
                "page": In(3),
                "cmd_write": In(1),
                "attr_write": In(1),
                "data": In(64),
                "strobe": In(8),
                "complete": Out(1),
                "command": Out(PageSchedCmd),
                "attr": Out(PageSchedAttr),
                "attr_state": Out(AttrState),
                "swept": In(1),
                "sweep": In(params.slot_bits),
                "set_enable": In(1),
                "value": In(PAGES),
                "enable": Out(PAGES, init=Control.PAGE_ENABLE_RESET),
                "accept": In(1),
                "accept_page": In(3),
                "release": In(1),
                "release_slot": In(params.slot_bits),
                "release_epoch": In(16),
                "settled": Out(1),
                "offered": Out(PAGES),
                "step": Out(CommitPort()),
            }
        )
        self.offer = Array(Signal(Free, name=f"offer_{page}") for page in range(PAGES))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._assemble(m)
        self._offer(m)
        return m

    def _assemble(self, m: Module) -> None:
        m.submodules.cmd_ram = cmd_ram = memory.Memory(shape=64, depth=PAGES, init=[])
        m.submodules.attr_ram = attr_ram = memory.Memory(shape=64, depth=PAGES, init=[])
        cmd_write, cmd_read = cmd_ram.write_port(granularity=8), cmd_ram.read_port(domain="comb")
        attr_write, attr_read = attr_ram.write_port(granularity=8), attr_ram.read_port(domain="comb")
        cmd_got = Array(Signal(8, name=f"cmd_got_{i}") for i in range(PAGES))
        attr_got = Array(Signal(8, name=f"attr_got_{i}") for i in range(PAGES))
        m.d.comb += [
            cmd_write.addr.eq(self.page),
            cmd_write.data.eq(self.data),
            cmd_read.addr.eq(self.page),
            attr_write.addr.eq(self.page),
            attr_write.data.eq(self.data),
            attr_read.addr.eq(self.page),
            self.attr.eq(attr_read.data),
            self.attr_state.eq(
                Mux(
                    attr_got[self.page] == 0xFF,
                    AttrState.WHOLE,
                    Mux(attr_got[self.page] == 0, AttrState.ABSENT, AttrState.PARTIAL),
                )
            ),
            self.command.as_value().eq(
                Cat(
                    Mux(self.strobe[i], self.data[8 * i : 8 * i + 8], cmd_read.data[8 * i : 8 * i + 8])
                    for i in range(8)
                )
            ),
        ]
        got = Signal(8)
        m.d.comb += got.eq(cmd_got[self.page] | self.strobe)
        with m.If(self.cmd_write):
            m.d.comb += cmd_write.en.eq(self.strobe)
            with m.If(got.all()):
                m.d.comb += self.complete.eq(1)
                m.d.sync += [cmd_got[self.page].eq(0), attr_got[self.page].eq(0)]
            with m.Else():
                m.d.sync += cmd_got[self.page].eq(got)
        with m.If(self.attr_write & self.strobe.any()):
            m.d.comb += attr_write.en.eq(self.strobe)
            m.d.sync += [
                cmd_got[self.page].eq(0),
                attr_got[self.page].eq(Mux(attr_got[self.page] == 0xFF, 0, attr_got[self.page]) | self.strobe),
            ]

    def _offer(self, m: Module) -> None:
        depth = self._params.slots
        m.submodules.free = free = fifo.SyncFIFOBuffered(width=32, depth=depth)
        incoming = Signal(Free)
        lacking, surplus = Signal(PAGES), Signal(PAGES)
        m.d.comb += [
            lacking.eq(self.enable & ~self.offered),
            surplus.eq(~self.enable & self.offered),
            self.settled.eq(self.swept & ~surplus.any() & ~(lacking.any() & (free.level != 0))),
            free.w_data.eq(incoming),
        ]
        give, back = lowest(m, lacking, "give"), lowest(m, surplus, "back")
        with m.If(~self.swept):
            m.d.comb += [free.w_en.eq(1), incoming.slot.eq(self.sweep), incoming.epoch.eq(1)]
        with m.Elif(self.release):
            # Epoch 0 is illegal, so that a blank id never names a request.
            m.d.comb += [
                free.w_en.eq(1),
                incoming.slot.eq(self.release_slot),
                incoming.epoch.eq(Mux(self.release_epoch == 0xFFFF, 1, self.release_epoch + 1)),
            ]
        with m.Elif(surplus.any()):
            m.d.comb += [free.w_en.eq(1), incoming.as_value().eq(self.offer[back].as_value())]
            m.d.sync += self.offered.bit_select(back, 1).eq(0)
            report(m, self.step, CommitKind.UNOFFER, stage=back, id=incoming)
        with m.Elif(lacking.any() & free.r_rdy):
            m.d.comb += free.r_en.eq(1)
            m.d.sync += [self.offered.bit_select(give, 1).eq(1), self.offer[give].as_value().eq(free.r_data)]
            report(m, self.step, CommitKind.OFFER, stage=give, id=free.r_data)
        with m.If(self.accept):
            m.d.sync += self.offered.bit_select(self.accept_page, 1).eq(0)
        with m.If(self.set_enable):
            m.d.sync += self.enable.eq(self.value)
