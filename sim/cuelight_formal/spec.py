"""A room, what is assumed of its surroundings, and what is claimed of it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from amaranth.asserts import AnyConst, AnySeq
from amaranth.back import rtlil
from amaranth.hdl import (
    Assert,
    Assume,
    Cat,
    ClockDomain,
    Const,
    Cover,
    Fragment,
    Module,
    Shape,
    Signal,
    Value,
    ValueLike,
)
from amaranth.hdl._mem import MemoryInstance
from amaranth.lib import wiring
from amaranth.utils import ceil_log2

__all__ = ["Claim", "Kind", "Spec"]


class Kind:
    """What a sentence is to its proof."""

    CLAIM = "claim"
    """Holds in every cycle."""
    LEMMA = "lemma"
    """Holds in every cycle, and is there so that the induction of a claim closes."""
    REACH = "reach"
    """Happens in some run."""


@dataclass(frozen=True)
class Claim:
    """A sentence, and where its cover statement is expected to be reached."""

    sentence: str
    kind: str


class Spec:
    """Surrounds a room with assumptions, ghost state and claims.

    The room is elaborated as it is. Its inputs that the specification does not drive take any value in each cycle. It
    starts from its initial state and is never reset.

    Parameters
    ----------
    room
        The component that is proven.
    around
        Signals of other rooms that it reads by itself: they too take any value.
    """

    def __init__(self, room: wiring.Component, around: Iterable[Value] = ()) -> None:
        self.room = room
        self.m = Module()
        self.m.domains.sync = self._clock = ClockDomain("sync", reset_less=True)
        self._fragment = Fragment.get(room, None)
        self.m.submodules.room = self._fragment
        self._around = list(around)
        self.claims: list[Claim] = []

    # ------------------------------------------------------------------------------------------- statements

    def assume(self, condition: ValueLike) -> None:
        """Look at runs only in which ``condition`` holds in every cycle."""
        self.m.d.comb += Assume(_bit(condition))

    def claim(self, sentence: str, then: ValueLike, *, when: ValueLike = 1) -> None:
        """Claim that in every cycle ``then`` holds where ``when`` does, and that ``when`` happens."""
        self._state(Kind.CLAIM, sentence, then, when)

    def lemma(self, sentence: str, then: ValueLike, *, when: ValueLike = 1) -> None:
        """Claim what another claim's induction stands on."""
        self._state(Kind.LEMMA, sentence, then, when)

    def reach(self, sentence: str, happens: ValueLike) -> None:
        """Claim that some run gets to a cycle in which ``happens`` holds."""
        self._cover(happens)
        self.claims.append(Claim(sentence, Kind.REACH))

    def _state(self, kind: str, sentence: str, then: ValueLike, when: ValueLike) -> None:
        condition = _bit(when)
        statement = Assert(~condition | _bit(then))
        statement.src_loc = ("claim", len(self.claims))
        self.m.d.comb += statement
        self._cover(condition)
        self.claims.append(Claim(sentence, kind))

    def _cover(self, condition: ValueLike) -> None:
        statement = Cover(_bit(condition))
        statement.src_loc = ("cover", len(self.claims))
        self.m.d.comb += statement

    # ---------------------------------------------------------------------------------------------- values

    def some(self, name: str, width: int) -> Signal:
        """A value that the solver chooses once for a run; what is claimed of it is claimed of every value."""
        value = Signal(width, name=name)
        self.m.d.comb += value.eq(AnyConst(width))
        return value

    def any(self, name: str, width: int) -> Signal:
        """A value that the solver chooses anew in each cycle."""
        value = Signal(width, name=name)
        self.m.d.comb += value.eq(AnySeq(width))
        return value

    def past(self, value: ValueLike, cycles: int = 1) -> Value:
        """``value`` of some cycles ago; zero before the first."""
        now = Value.cast(value)
        for _ in range(cycles):
            before = Signal(now.shape())
            self.m.d.sync += before.eq(now)
            now = before
        return now

    def inside(self, path: str) -> Signal:
        """The signal that a module of the room drives or reads; names of submodules, and dots, in front."""
        *modules, name = path.split(".")
        statements = self._find(modules).statements.values()
        for signals in ([each._lhs_signals() for each in statements], [each._rhs_signals() for each in statements]):
            found = {id(signal): signal for group in signals for signal in group if signal.name == name}
            if len(found) == 1:
                return next(iter(found.values()))
        raise LookupError(f"{path} names no signal, or several; give the one that is meant a name of its own.")

    def rows(self, path: str) -> list[Signal]:
        """Every row of the room's memory with this name, as they are in this cycle."""
        memory = self._memory(path)
        width, depth = Shape.cast(memory._data.shape).width, memory._data.depth
        rows = [Signal(width, name=f"{path.replace('.', '_')}_{index}") for index in range(depth)]
        for index, row in enumerate(rows):
            address = Const(index, ceil_log2(depth))
            memory.read_port(domain="comb", addr=address, data=row, en=Const(1), transparent_for=())
        return rows

    def read_data(self, path: str) -> Value:
        """What the read port of the room's memory with this name shows."""
        return Value.cast(self._memory(path)._read_ports[0]._data)

    def _memory(self, path: str) -> MemoryInstance:
        memory = self._find(path.split("."))
        if not isinstance(memory, MemoryInstance):
            raise LookupError(f"{path} is no memory.")
        return memory

    def _find(self, path: list[str]) -> Fragment:
        fragment = self._fragment
        for name in path:
            fragment = next(sub for sub, label, _ in fragment.subfragments if label == name)
        return fragment

    # ------------------------------------------------------------------------------------------------ text

    def rtlil(self) -> str:
        """Room and specification as RTLIL; module `top`. Equal specifications give equal text."""
        ports: list[Value] = [self._clock.clk, *self._around]
        for _, member, value in self.room.signature.flatten(self.room):
            # Outputs are left out, so that what no sentence speaks of is left out too.
            if member.flow is wiring.In:
                ports.append(Value.cast(value))
        text: str = rtlil.convert(self.m, name="top", ports=ports)
        # Sources tell where claims stand, and nothing of the machine's folders.
        return re.sub(r'^\s*attribute \\src "(?!claim:|cover:).*\n', "", text, flags=re.MULTILINE)


def _bit(value: ValueLike) -> Value:
    return Cat(value).any()
