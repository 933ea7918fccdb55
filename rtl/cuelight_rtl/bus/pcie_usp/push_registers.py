"""PUSH: what the host sets and reads of each lane's mode (rtl/cuelight.rdl)."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ... import regmap
from ...registers import Bus
from ...regmap import FallCause, Push, PushCommand, PushMode, PushStatus
from .mode import LaneMode, Settings

__all__ = ["PushRegisters"]

_TIMES = {
    Push.COMPLETION_TIMEOUT: ("completion_timeout", Push.COMPLETION_TIMEOUT_RESET, 1),
    Push.OVERDUE: ("overdue", 0, 0),
    Push.PERIOD: ("period", Push.PERIOD_RESET, 1),
    Push.STALL: ("stall", Push.STALL_RESET, 0),
    Push.REST: ("rest", Push.REST_RESET, 1),
}
"""Setting, what it is at reset, and the least that it may be."""


class PushRegisters(wiring.Component):
    """A block of registers for each lane, whose mode is one of ``modes``. Reads are answered in the cycle after.

    A register of 32 bits, and each half of one of 64, takes a write with all four of its bytes only. A value that it
    does not take is counted, and changes nothing. ``pushed`` is a strobe for each lane.
    """

    def __init__(self, modes: list[LaneMode]) -> None:
        self._modes = modes
        super().__init__({"bus": In(Bus()), "pushed": In(len(modes)), "settings": Out(Settings).array(len(modes))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus = self.bus
        m.d.comb += bus.ready.eq(1)
        m.d.sync += [bus.answer_valid.eq(bus.valid & ~bus.write), bus.answer.eq(0)]
        for index, mode in enumerate(self._modes):
            m.submodules[f"lane_{index}"] = lane = _LaneRegisters(mode)
            here = bus.address[8:] == (regmap.PUSH + regmap.PUSH_STRIDE * index) >> 8
            m.d.comb += [
                lane.write.eq(Mux(bus.valid & bus.write & here, Cat(bus.strobe[:4].all(), bus.strobe[4:].all()), 0)),
                lane.offset.eq(bus.address[:8]),
                lane.data.eq(bus.data),
                lane.pushed.eq(self.pushed[index]),
                self.settings[index].eq(lane.settings),
            ]
            with m.If(here):
                m.d.sync += bus.answer.eq(lane.answer)
        return m


class _LaneRegisters(wiring.Component):
    """Those of one lane; ``write`` says which halves of the eight bytes at ``offset`` are written."""

    def __init__(self, mode: LaneMode) -> None:
        self._mode = mode
        resets = {name: reset for name, reset, _ in _TIMES.values()} | {"beats": Push.BEATS_RESET}
        super().__init__(
            {
                "write": In(2),
                "offset": In(8),
                "data": In(64),
                "answer": Out(64),
                "pushed": In(1),
                "settings": Out(Settings, init=resets),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._write(m)
        mode, settings = self._mode, self.settings
        values: dict[int, ValueLike] = {offset: settings[name] for offset, (name, _, _) in _TIMES.items()}
        status = Signal(PushStatus)
        m.d.comb += [
            status.mode.eq(mode.mode),
            *(getattr(status, name).eq(getattr(mode, name)) for name in ("reading", "resting", "cause", "needed")),
        ]
        values |= {
            Push.STATUS: status,
            Push.PORT_ADDRESS: settings.port_address,
            Push.HEARTBEAT_ADDRESS: settings.heartbeat_address,
            Push.GENERATION: settings.generation,
            Push.BEATS: settings.beats,
            Push.HEARTBEAT: mode.heartbeat,
            Push.RETURNS: self._count(m, mode.returns, "returns"),
            Push.LATE: self._count(m, mode.late, "late"),
            Push.PUSHED: self._count(m, self.pushed, "pushed"),
            Push.REFUSED: self._count(m, self._refused, "refused"),
        }
        fell = Signal()
        m.d.sync += fell.eq(mode.falls)
        values[Push.FALLS] = self._count(m, fell, "falls")
        for cause in FallCause:
            number = self._count(m, fell & (mode.cause == cause), f"falls_{cause.name.lower()}")
            values[Push.FALLS + Push.FALLS_STRIDE * cause] = number

        words: dict[int, list[Value]] = {}
        for offset, value in values.items():
            padded = Cat(Value.cast(value), Const(0, 32))
            halves = words.setdefault(offset & ~7, [Const(0, 32), Const(0, 32)])
            for half in range(2 if len(Value.cast(value)) > 32 else 1):
                halves[(offset >> 2 & 1) + half] = padded[32 * half : 32 * half + 32]
        with m.Switch(self.offset):
            for offset, halves in words.items():
                with m.Case(offset):
                    m.d.comb += self.answer.eq(Cat(halves))
        return m

    def _write(self, m: Module) -> None:
        mode, settings = self._mode, self.settings
        self._refused = Signal()
        low, high = self.data[:32], self.data[32:]
        rests = mode.mode == PushMode.POLL

        def take(half: int, target: Value, value: Value, fits: ValueLike) -> None:
            with m.If(self.write[half]):
                with m.If(fits):
                    m.d.sync += target.eq(value)
                with m.Else():
                    m.d.comb += self._refused.eq(1)

        with m.Switch(self.offset):
            with m.Case(Push.COMMAND):
                with m.If(self.write[0]):
                    whole = settings.port_address.any() & settings.heartbeat_address.any()
                    with m.If(low == PushCommand.POLL):
                        m.d.comb += mode.poll.eq(1)
                    with m.Elif((low == PushCommand.PROBE) & mode.ready & whole):
                        m.d.comb += mode.probe.eq(1)
                    with m.Elif((low == PushCommand.PUSH) & mode.proven):
                        m.d.comb += mode.push.eq(1)
                    with m.Else():
                        m.d.comb += self._refused.eq(1)
            with m.Case(Push.PORT_ADDRESS):
                take(0, settings.port_address[:32], low, rests & ~low[:12].any())
                take(1, settings.port_address[32:], high, rests)
            with m.Case(Push.HEARTBEAT_ADDRESS):
                take(0, settings.heartbeat_address[:32], low, rests & ~low[:2].any())
                take(1, settings.heartbeat_address[32:], high, rests)
            with m.Case(Push.GENERATION):
                take(0, settings.generation, low, rests)
            with m.Case(Push.BEATS):
                take(0, settings.beats, low, (low != 0) & ~low[8:].any())
            for offset, (name, _, least) in _TIMES.items():
                with m.Case(offset):
                    take(0, settings[name], low, low >= least)

    def _count(self, m: Module, strobe: Value, name: str) -> Signal:
        count = Signal(32, name=f"count_{name}")
        m.d.sync += count.eq(count + strobe)
        return count
