"""The RTL's native model and the golden model side by side, fed with the same writes."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from cuelight.regmap import CommitKind
from cuelight_rtl.model import Commit

from .golden import Golden
from .registers import Word
from .steps import Divergence, Event

__all__ = [
    "Device",
    "Lockstep",
    "Observer",
    "Operation",
    "Read",
    "Reading",
    "Rest",
    "Run",
    "Spectator",
    "Write",
    "play",
    "shrink",
]

_COMMITS_KEPT = 24
"""Latest commits that a divergence's note shows."""
_WINDOW = 0x1_0000
_REST_CYCLES = 100_000


class Device(Protocol):
    """What lockstep needs of a device; `cuelight_rtl.model.Model` has it."""

    @property
    def commits(self) -> list[Commit]: ...
    @property
    def accepted_at(self) -> int: ...
    def step(self, cycles: int) -> None: ...
    def write(self, offset: int, value: int, width: int = 4, strobe: int | None = None) -> None: ...
    def read(self, offset: int, width: int = 4) -> int: ...
    def run_until_idle(self, limit: int = 100_000) -> object: ...


class Observer(Protocol):
    """Looks at a run for one property, and raises `Divergence` where the device lacks it."""

    def accepted(self, cycle: int, offset: int) -> None:
        """A write to the eight bytes at ``offset`` was accepted in this cycle."""

    def observe(self, commit: Commit) -> None:
        """A commit that the golden model has found legal and followed."""

    def rest(self) -> None:
        """The device is idle."""


class Write(NamedTuple):
    """A write of some bytes of eight."""

    offset: int
    data: int
    strobe: int = 0xFF

    def __str__(self) -> str:
        return f"Write({self.offset:#06x}, {self.data:#018x}, {self.strobe:#04x})"


class Spectator(Protocol):
    """Looks at a run, and at the golden model before and after each step of it."""

    def wrote(self, write: Write) -> None:
        """The device has accepted a write, which the golden model has yet to take in."""

    def before(self, event: Event) -> None:
        """A commit has come, which the golden model has yet to follow."""

    def after(self, event: Event) -> None:
        """The golden model has found the commit legal and followed it."""


class Run(NamedTuple):
    """Some cycles without a transaction."""

    cycles: int


class Read(NamedTuple):
    """A read of 32 bits at any time."""

    offset: int

    def __str__(self) -> str:
        return f"Read({self.offset:#06x})"


class Rest(NamedTuple):
    """Cycles until the device is idle, then a comparison of all registers."""


Operation = Write | Read | Run | Rest


class Reading(NamedTuple):
    """Words from an offset on that the device was asked for, and has not told yet."""

    offset: int
    words: int
    moments: list[tuple[Word, ...]]
    """What they may be, at each moment since the read was accepted."""


class Lockstep:
    """Drives both models and compares what comes out.

    Parameters
    ----------
    device
        Model of the RTL, just after reset.
    golden
        Golden model of the same sizes and nonce, just after reset.
    observers
        Told of everything.
    """

    def __init__(self, device: Device, golden: Golden, observers: Sequence[Observer] = ()) -> None:
        self.device = device
        self.golden = golden
        self.observers = observers
        self.script: list[Operation] = []
        """All operations so far."""
        self.observe: Callable[[Event], None] = lambda event: None
        """Is told of each commit once it was found legal."""
        self.spectator: Spectator | None = None
        self._latest: deque[Commit] = deque(maxlen=_COMMITS_KEPT)
        self._readings: list[Reading] = []

    def apply(self, operation: Operation) -> None:
        """Does one operation of a script."""
        match operation:
            case Write():
                self.write(*operation)
            case Read():
                self.read(operation.offset)
            case Run():
                self.run(operation.cycles)
            case Rest():
                self.rest()

    def write(self, offset: int, data: int, strobe: int = 0xFF) -> None:
        """Writes the strobed bytes of ``data`` to the eight bytes at ``offset``.

        Raises
        ------
        Divergence
            Here and in the other methods: the models disagree.
        """
        self.device.write(offset, data, width=8, strobe=strobe)
        self.wrote(offset, data, strobe)

    def wrote(self, offset: int, data: int, strobe: int) -> None:
        """Follows a write that the device has accepted."""
        write = Write(offset, data, strobe)
        self.script.append(write)
        # The write before may have its effect in the very cycle in which this one is accepted.
        self.follow(until=self.device.accepted_at)
        if self.spectator is not None:
            self.spectator.wrote(write)
        self._check(lambda: self.golden.write(offset, data, strobe))
        for observer in self.observers:
            observer.accepted(self.device.accepted_at, offset)
        self.follow()

    def run(self, cycles: int) -> None:
        """Lets some cycles pass."""
        if not cycles:
            return
        self.script.append(Run(cycles))
        self.device.step(cycles)
        self.follow()
        self._check(self.golden.written)

    def rest(self) -> None:
        """Lets the device become idle and compares every readable register and record."""
        self.device.run_until_idle(_REST_CYCLES)
        self.rested()
        for offset in self.registers:
            self.compare(offset, self.device.read(offset, width=8))
        self.follow()

    def rested(self) -> None:
        """Follows the device to where it became idle."""
        self.script.append(Rest())
        self.follow()
        self._check(self.golden.check_rest)
        for observer in self.observers:
            self._check(observer.rest)

    def compare_window(self) -> None:
        """Compares all of BAR0, once the device rests."""
        self.rest()
        for offset in range(0, _WINDOW, 8):
            self.compare(offset, self.device.read(offset, width=8))

    def read(self, offset: int) -> int:
        """Reads 32 bits at any time: the answer must fit some moment since the read's acceptance."""
        value = self.device.read(offset, width=4)
        self.did_read(offset, value)
        return value

    def did_read(self, offset: int, *values: int) -> None:
        """Follows a read of words from ``offset`` on; each must fit some moment since its acceptance."""
        self.answered(self.asked(offset, len(values)), *values)

    def asked(self, offset: int, count: int) -> Reading:
        """Follows the acceptance of a read of words from ``offset`` on; others may be accepted before its answer."""
        self.script.extend(Read(offset + 4 * number) for number in range(count))
        self.follow(until=self.device.accepted_at - 1)
        reading = Reading(offset, count, [])
        self._note(reading)
        self._readings.append(reading)
        self.follow(until=self.device.accepted_at)
        self._check(self.golden.written)
        self._note(reading)
        return reading

    def answered(self, reading: Reading, *values: int) -> None:
        """Compares the answer of a read, each word of which must fit some moment since its acceptance."""
        self.follow()
        self._readings.remove(reading)
        for number, value in enumerate(values):
            words = [moment[number] for moment in reading.moments]
            if not any(word.allows(value) for word in words):
                self._fail(f"{reading.offset + 4 * number:#06x} reads {value:#010x}, not {_alternatives(words)}")

    def _note(self, reading: Reading) -> None:
        offsets = range(reading.offset, reading.offset + 4 * reading.words, 4)
        reading.moments.append(tuple(self.golden.read(offset) for offset in offsets))

    # ------------------------------------------------------------------------------------------- comparing

    @property
    def registers(self) -> list[int]:
        """Offsets of the eight bytes that have readable registers."""
        return sorted({offset & ~7 for offset in self.golden.readable})

    def compare(self, offset: int, value: int) -> None:
        """Compares what a device at rest read at ``offset``, a multiple of 8, with what it must read."""
        for half in range(2):
            word = self.golden.read(offset + 4 * half)
            got = value >> 32 * half & 0xFFFF_FFFF
            if not word.allows(got):
                self._fail(f"at rest {offset + 4 * half:#06x} reads {got:#010x}, not {_alternatives([word])}")

    def follow(self, until: int | None = None) -> None:
        """Gives the golden model the new commits, or those ``until`` that cycle, included."""
        commits = self.device.commits
        count = 0
        for commit in commits:
            if until is not None and commit.cycle > until:
                break
            count += 1
            self._latest.append(commit)
            event = Event(CommitKind(commit.kind), commit.lane, commit.stage, commit.id, commit.detail)
            if self.spectator is not None:
                self.spectator.before(event)
            self._check(partial(self.golden.commit, commit))
            for observer in self.observers:
                self._check(partial(observer.observe, commit))
            for reading in self._readings:
                self._note(reading)
            if self.spectator is not None:
                self.spectator.after(event)
            self.observe(event)
        del commits[:count]

    def _check(self, check: Callable[[], None]) -> None:
        try:
            check()
        except Divergence as divergence:
            self._fail(str(divergence))

    def _fail(self, what: str) -> None:
        commits = "\n  ".join(map(_show, self._latest))
        script = "\n  ".join(map(str, self.script[-12:]))
        raise Divergence(f"{what}\nlatest commits:\n  {commits}\nlatest of {len(self.script)} operations:\n  {script}")


def _show(commit: Commit) -> str:
    event = Event(CommitKind(commit.kind), commit.lane, commit.stage, commit.id, commit.detail)
    return f"cycle {commit.cycle} port {commit.port}: {event}"


def _alternatives(words: Sequence[Word]) -> str:
    return " or ".join(
        f"{word.value:#010x}" + ("" if word.known == 0xFFFF_FFFF else f" (mask {word.known:#010x})")
        for word in dict.fromkeys(words)
    )


def play(script: Iterable[Operation], lockstep: Lockstep) -> None:
    """Replays a script on fresh models."""
    for operation in script:
        lockstep.apply(operation)


def shrink(script: Sequence[Operation], fresh: Callable[[], Lockstep]) -> list[Operation]:
    """A short part of ``script`` on which the models disagree in the same way, by delta debugging.

    Parameters
    ----------
    script
        Operations on which they disagree.
    fresh
        Makes models just after reset.
    """

    def outcome(candidate: Sequence[Operation]) -> str:
        try:
            play(candidate, fresh())
        except Divergence as divergence:
            return re.sub(r"0x[0-9a-f]+|\d+", "", str(divergence).partition("\n")[0])
        return ""

    wanted = outcome(script)
    kept = list(script)
    size = len(kept) // 2
    while size:
        start = 0
        while start < len(kept):
            candidate = kept[:start] + kept[start + size :]
            if outcome(candidate) == wanted:
                kept = candidate
            else:
                start += size
        size //= 2
    return kept
