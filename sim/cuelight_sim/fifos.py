"""Reject FIFO, event trace and counters (docs/device.md §3, §8)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from cuelight.regmap import CommitKind, RejectReason

from .steps import Event

__all__ = ["Counters", "EventTrace", "Reject", "RejectFifo"]

_UNTRACED = frozenset(
    {
        CommitKind.OFFER,
        CommitKind.UNOFFER,
        CommitKind.TAKEN,
        CommitKind.REOFFERED,
        CommitKind.CONFIG,
        CommitKind.CONFIG_IGNORED,
        CommitKind.STAGE_DONE_IGNORED,
        CommitKind.POP_IGNORED,
        CommitKind.COMPLETE_IGNORED,
    }
)


@dataclass(slots=True)
class Counters:
    """The device's counters, each modulo 2³² in its register."""

    admitted: int = 0
    retired: int = 0
    rejected: int = 0
    rejects_lost: int = 0
    stage_done_ignored: int = 0
    completions_ignored: int = 0
    pops_ignored: int = 0
    config_ignored: int = 0
    passes: int = 0
    dispatches: int = 0
    rows: int = 0
    trace_lost: int = 0
    pauses: int = 0
    decision_cycles: int | None = 0
    """None once a dispatch showed a saturated value: the sum can't be told from the commits any more."""

    def add_decision(self, cycles: int, *, saturated: bool) -> None:
        """Adds a dispatch's decision cycles."""
        if saturated:
            self.decision_cycles = None
        elif self.decision_cycles is not None:
            self.decision_cycles += cycles


@dataclass(frozen=True, slots=True)
class Reject:
    """A refused command as the reject FIFO shows it."""

    id: int
    reason: RejectReason
    page: int


@dataclass(slots=True)
class RejectFifo:
    """Refused commands, 64 at most."""

    CAPACITY = 64
    held: deque[Reject] = field(default_factory=deque)
    index: int = 0

    def push(self, reject: Reject) -> bool:
        """Whether there was room."""
        if len(self.held) == self.CAPACITY:
            return False
        self.held.append(reject)
        return True

    def pop(self, index: int) -> bool:
        """Whether ``index`` was the head's."""
        if not self.held or index != self.index:
            return False
        self.held.popleft()
        self.index = (self.index + 1) & 0xFFFF_FFFF
        return True


@dataclass(slots=True)
class EventTrace:
    """Traced commits, 256 at most."""

    CAPACITY = 256
    held: deque[tuple[Event, int]] = field(default_factory=deque)
    """Events and their cycles."""
    index: int = 0
    _cycle: int = -1
    """Cycle of the latest event."""
    _dispatches: int = 0
    """Dispatches of that cycle, which stand last."""

    def record(self, event: Event, cycle: int) -> bool:
        """Whether no event was lost, this one or a later one of the same cycle."""
        if event.kind in _UNTRACED:
            return True
        place = len(self.held)
        if cycle != self._cycle:
            self._cycle, self._dispatches = cycle, 0
        if event.kind == CommitKind.DISPATCH:
            self._dispatches += 1
        else:
            place -= self._dispatches
        self.held.insert(place, (event, cycle))
        if len(self.held) <= self.CAPACITY:
            return True
        self._dispatches -= self.held.pop()[0].kind == CommitKind.DISPATCH
        return False

    def pop(self, index: int) -> bool:
        """Whether ``index`` was the head's."""
        if not self.held or index != self.index:
            return False
        self.held.popleft()
        self.index = (self.index + 1) & 0xFFFF_FFFF
        return True
