"""The library's FIFO, as the trace and the rejects use it: first in, first out."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import fifo, wiring
from amaranth.lib.wiring import In, Out

from .spec import Spec

__all__ = ["first_in_first_out"]


class Queue(wiring.Component):
    """A SyncFIFOBuffered with its ports as a signature."""

    def __init__(self, depth: int, width: int) -> None:
        self._depth, self._width = depth, width
        super().__init__(
            {
                "w_data": In(width),
                "w_en": In(1),
                "w_rdy": Out(1),
                "r_data": Out(width),
                "r_en": In(1),
                "r_rdy": Out(1),
                "level": Out(range(depth + 1)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = fifo.SyncFIFOBuffered(width=self._width, depth=self._depth)
        m.d.comb += [queue.w_data.eq(self.w_data), queue.w_en.eq(self.w_en), queue.r_en.eq(self.r_en)]
        m.d.comb += [getattr(self, name).eq(getattr(queue, name)) for name in ("w_rdy", "r_data", "r_rdy", "level")]
        return m


def first_in_first_out(depth: int) -> Spec:
    """One entry, whichever, is followed from its entering until it leaves."""
    room = Queue(depth, 2)
    spec = Spec(room)
    m = spec.m
    rows, out = spec.rows("queue.storage"), spec.read_data("queue.storage")
    produce, consume, inner = (spec.inside(f"queue.{name}") for name in ("produce", "consume", "inner_level"))
    inner_depth = len(rows)
    enters, leaves = room.w_en & room.w_rdy, room.r_en & room.r_rdy
    pick, followed = spec.any("pick", 1), Signal()
    ahead, entry = Signal(range(depth + 1)), Signal(2)
    with m.If(~followed & pick & enters):
        m.d.sync += [followed.eq(1), ahead.eq(room.level - leaves), entry.eq(room.w_data)]
    with m.Elif(followed & leaves):
        m.d.sync += [ahead.eq(ahead - 1), followed.eq(ahead != 0)]

    spec.claim(
        "What leaves first is what entered first, as it entered.",
        room.r_data == entry,
        when=followed & (ahead == 0) & room.r_rdy,
    )
    spec.claim("The level counts what entered and has not left.", room.level == spec.past(room.level + enters - leaves))
    spec.claim("Only a full FIFO refuses an entry.", room.level >= inner_depth, when=~room.w_rdy)
    spec.claim(
        "What has entered shows two cycles later at the latest.",
        room.r_rdy,
        when=spec.past(room.level != 0) & (room.level != 0) & ~spec.past(leaves),
    )
    place = Mux(
        consume + (ahead - room.r_rdy) >= inner_depth,
        consume + (ahead - room.r_rdy) - inner_depth,
        consume + (ahead - room.r_rdy),
    )
    at_place = [Mux(place[: len(consume)] == index, row == entry, 1) for index, row in enumerate(rows)]
    spec.lemma(
        "The followed entry is where it should be.",
        Mux(room.r_rdy & (ahead == 0), out == entry, Cat(at_place).all()) & (ahead < room.level),
        when=followed,
    )
    spec.lemma(
        "The pointers are as far apart as the FIFO is long.",
        (produce < inner_depth)
        & (consume < inner_depth)
        & (inner <= inner_depth)
        & (produce == Mux(consume + inner >= inner_depth, consume + inner - inner_depth, consume + inner)),
    )
    spec.lemma("An entry waits a cycle at most while the output is empty.", inner <= 1, when=~room.r_rdy)
    spec.reach("It is full.", room.level == depth)
    return spec
