"""A room, what is assumed of its surroundings, and what is claimed of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from amaranth.asserts import AnyConst, AnySeq, Initial
from amaranth.back import rtlil
from amaranth.hdl import (
    Assert,
    Assume,
    Cat,
    ClockDomain,
    Const,
    Cover,
    Fragment,
    MemoryData,
    Module,
    Shape,
    Signal,
    Value,
    ValueLike,
)
from amaranth.hdl._mem import MemoryInstance
from amaranth.lib import wiring
from amaranth.sim import Simulator, SimulatorContext
from amaranth.utils import ceil_log2

__all__ = ["Claim", "Condition", "Kind", "Spec"]


Condition: TypeAlias = "ValueLike | list[ValueLike]"
"""One, or several, each with its own."""


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
    cut
        Rooms in it that are taken out: what they show takes any value, but for what is assumed of it.
    keeps
        Whether it is what surrounds other rooms, whose promises it has to keep.
    parts
        Parts of its claims, which are proven one by one.
    part
        Which part of its claims is proven here. Those of the parts before are taken to hold, those of the parts after
        to have held until the cycle before: so every part stands on what is known without it.
    played
        Whether it is simulated, not solved: nothing in it takes any value, but what a script drives.
    lasting
        A claim that did not hold once counts as broken for ever, so that the last cycle of a run tells of all. Covers
        are left to the proof's stories.
    """

    def __init__(
        self,
        room: wiring.Component,
        around: Iterable[Value] = (),
        cut: Iterable[str] = (),
        keeps: bool = False,
        parts: Iterable[str] = (),
        part: str = "",
        played: bool = False,
        lasting: bool = False,
    ) -> None:
        self.room = room
        self._keeps = keeps
        self._played = played
        self._lasting = lasting
        self._obligations: list[Value] = []
        self._situations: list[Value] = []
        self._about = ""
        self._parts = list(parts)
        self._chosen = self._speaking = part
        self.m = Module()
        self.m.domains.sync = self._clock = ClockDomain("sync", reset_less=True, local=True)
        self._fragment = Fragment.get(room, None)
        self.m.submodules.room = self._fragment
        self._around = [*around, *(signal for name in cut for signal in self._take_out(name))]
        self.claims: list[Claim] = []
        self._read: dict[str, list[int]] = {}
        self._opening: Callable[[SimulatorContext], Coroutine[Any, Any, None]] | None = None

    # ------------------------------------------------------------------------------------------- statements

    def assume(self, condition: ValueLike) -> None:
        """Look at runs only in which ``condition`` holds in every cycle."""
        if self._played:
            self._obligations.append(_bit(condition))
        else:
            self.m.d.comb += Assume(_bit(condition))

    def promise(self, sentence: str, then: Condition, *, when: Condition = 1) -> None:
        """What a room's surroundings promise it: assumed where the room is proven, claimed where they are."""
        if self._keeps:
            self._state(Kind.CLAIM, f"{self._about}{sentence}", then, when)
        else:
            self.assume(_implied(then, when))

    @contextmanager
    def about(self, room: str) -> Iterator[None]:
        """What is promised within is promised to ``room``."""
        self._about = f"{room}: "
        yield
        self._about = ""

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """What is claimed within belongs to part ``name``."""
        self._speaking = name if self._chosen else ""
        yield
        self._speaking = self._chosen

    def claim(self, sentence: str, then: Condition, *, when: Condition = 1) -> None:
        """Claim that in every cycle ``then`` holds where ``when`` does, and that ``when`` happens.

        Lists speak of several things alike: of each its ``then`` where its ``when`` holds.
        """
        self._state(Kind.CLAIM, sentence, then, when)

    def lemma(self, sentence: str, then: Condition, *, when: Condition = 1) -> None:
        """Claim what another claim's induction stands on."""
        self._state(Kind.LEMMA, sentence, then, when)

    def reach(self, sentence: str, happens: ValueLike) -> None:
        """Claim that some run gets to a cycle in which ``happens`` holds."""
        if self._speaking != self._chosen:
            return
        self._cover(happens)
        self.claims.append(Claim(sentence, Kind.REACH))

    def _state(self, kind: str, sentence: str, then: Condition, when: Condition) -> None:
        if self._speaking != self._chosen:
            holds = _implied(then, when)
            held = Signal(init=1)
            self.m.d.sync += held.eq(holds)
            first = self._parts.index(self._speaking) < self._parts.index(self._chosen)
            self.assume(holds if first else held)
            return
        if self._played:
            self._obligations.append(_implied(then, when))
        else:
            statement = Assert(self._always(_implied(then, when)))
            statement.src_loc = ("claim", len(self.claims))
            self.m.d.comb += statement
        if self._played or not self._lasting:
            self._cover(Cat(when) if isinstance(when, list) else when)
        self.claims.append(Claim(sentence, kind))

    def _cover(self, condition: ValueLike) -> None:
        if self._played:
            self._situations.append(_bit(condition))
            return
        statement = Cover(_bit(condition))
        statement.src_loc = ("cover", len(self.claims))
        self.m.d.comb += statement

    def _always(self, holds: Value) -> Value:
        """Whether ``holds`` does; in a lasting specification whether it always did."""
        if not self._lasting:
            return holds
        before = Signal(init=1)
        self.m.d.sync += before.eq(before & holds)
        return before & holds

    # ---------------------------------------------------------------------------------------------- values

    def some(self, name: str, width: int) -> Signal:
        """A value that the solver chooses once for a run; what is claimed of it is claimed of every value."""
        value = Signal(width, name=name)
        if not self._played:
            self.m.d.comb += value.eq(AnyConst(width))
        return value

    def any(self, name: str, width: int) -> Signal:
        """A value that the solver chooses anew in each cycle."""
        value = Signal(width, name=name)
        self.m.d.comb += value.eq(AnySeq(width))
        return value

    def first(self) -> Value:
        """Whether this is the first cycle."""
        return ~self.past(Const(1)) if self._played else Initial()

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

    def states(self) -> dict[str, Value]:
        """For each state of the room's state machine, whether it is in it."""
        machine = self._fragment.generated["fsm"]
        return {name: machine.state == number for name, number in machine.encoding.items()}

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

    def _take_out(self, name: str) -> list[Signal]:
        """Removes a room's room; returns the signals that it drove."""
        rooms = self._fragment.subfragments
        (place,) = (index for index, (_, label, _) in enumerate(rooms) if label == name)
        gone, _, _ = rooms.pop(place)
        return _driven(gone)

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

    # ---------------------------------------------------------------------------------------------- simulation

    def play(self, scripts: Sequence[Callable[[SimulatorContext], bool]]) -> list[int]:
        """Simulate it, once for each script, which begins each cycle by driving inputs, until it says that it is over.

        Where it begins after a scene, that is played before each script, and cycles are counted from its end.

        Returns
        -------
        For each claim, the first cycle of a run in which it says something; -1 if there is none.

        Raises
        ------
        AssertionError
            Something that is assumed or claimed does not hold in a cycle of a run.
        """
        reached = [-1] * len(self._situations)
        situations, broken = Signal(len(reached)), Signal(len(self._obligations))
        self.m.d.comb += [situations.eq(Cat(self._situations)), broken.eq(~Cat(self._obligations))]
        upcoming = iter(scripts)

        async def watch(context: SimulatorContext) -> None:
            script, cycle = next(upcoming), 0
            if self._opening:
                await self._opening(context)
            while not script(context):
                seen, wrong = context.get(situations), context.get(broken)
                assert not wrong, f"obligations {[i for i in range(len(broken)) if wrong >> i & 1]} in cycle {cycle}"
                for index, first in enumerate(reached):
                    if seen >> index & 1 and (first < 0 or cycle < first):
                        reached[index] = cycle
                await context.tick()
                cycle += 1

        self._simulate(self.m, watch, times=len(scripts))
        return reached

    def begin_after(self, scene: Callable[[SimulatorContext], Coroutine[Any, Any, None]]) -> None:
        """Let runs begin where the room stands after a testbench, instead of at reset."""
        if self._played:
            self._opening = scene
            return
        states: list[tuple[Signal | MemoryData, Any]] = []

        async def watch(context: SimulatorContext) -> None:
            await scene(context)
            for place, fragment in _within(self._fragment, "top.room"):
                if isinstance(fragment, MemoryInstance):
                    rows = range(fragment._data.depth)
                    states.append((fragment._data, [_number(context.get(fragment._data[row])) for row in rows]))
                    self._read[place] = [_number(context.get(port._data)) for port in fragment._read_ports]
                elif "sync" in fragment.statements:
                    for signal in fragment.statements["sync"]._lhs_signals():
                        states.append((signal, _number(context.get(signal))))

        stage = Module()
        stage.domains.sync = self._clock
        stage.submodules.room = self._fragment
        self._simulate(stage, watch)
        for state, value in states:
            if isinstance(state, Signal):
                state._init = value
            else:
                state._init._raw = value

    def _simulate(
        self,
        design: Module,
        testbench: Callable[[SimulatorContext], Coroutine[Any, Any, None]],
        times: int = 1,
    ) -> None:
        simulator = Simulator(design)
        simulator.add_clock(1e-6, domain=self._clock)
        simulator.add_testbench(testbench)
        simulator.run()
        for _ in range(times - 1):
            simulator.reset()
            simulator.run()

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
        text = re.sub(r'^\s*attribute \\src "(?!claim:|cover:).*\n', "", text, flags=re.MULTILINE)
        return self._with_read(text) if self._read else text

    def _with_read(self, text: str) -> str:
        """What memories' ports have read at first: Amaranth leaves that open, so it is filled in here."""
        ports = {place: iter(values) for place, values in self._read.items()}
        module = memory = ""

        def fill(found: re.Match[str]) -> str:
            nonlocal module, memory
            line = found[0]
            module, memory = found["module"] or module, found["memory"] or memory
            if not found["width"]:
                return line
            return f"{found['value']}{found['width']}'{next(ports[f'{module}.{memory}']):0{int(found['width'])}b}"

        return re.sub(
            r'^module \\(?P<module>\S+)|\\MEMID "\\\\(?P<memory>\w+)"'
            r"|(?P<value>parameter \\INIT_VALUE )(?P<width>\d+)'x+(?=\n)",
            fill,
            text,
            flags=re.MULTILINE,
        )


def _bit(value: ValueLike) -> Value:
    return Cat(value).any()


def _implied(then: Condition, when: Condition) -> Value:
    """Whether ``then`` holds where ``when`` does."""
    thens = then if isinstance(then, list) else [then]
    whens = when if isinstance(when, list) else [when] * len(thens)
    return Cat(~_bit(each) | _bit(follows) for follows, each in zip(thens, whens, strict=True)).all()


def _number(value: Any) -> int:
    """What a simulator shows, as a number."""
    return int(value) if isinstance(value, int) else int(value.as_bits())


def _within(fragment: Fragment, place: str = "") -> Iterator[tuple[str, Fragment]]:
    """A fragment and all those in it, each with its place, in an order that does not change."""
    yield place, fragment
    for inner, name, _ in fragment.subfragments:
        yield from _within(inner, f"{place}.{name}")


def _driven(fragment: Fragment) -> list[Signal]:
    """Signals that a fragment and those in it drive."""
    statements = (each for _, inner in _within(fragment) for each in inner.statements.values())
    signals = {id(signal): signal for each in statements for signal in each._lhs_signals()}
    return list(signals.values())
