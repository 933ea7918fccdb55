"""Atomic steps of the device as the commit port shows them (docs/device.md §8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cuelight.regmap import CommitKind

__all__ = ["OF_WRITES", "Divergence", "Event", "Step"]

OF_WRITES = frozenset(
    {
        CommitKind.ADMIT,
        CommitKind.RETARGET,
        CommitKind.CANCEL,
        CommitKind.REJECT,
        CommitKind.STAGE_DONE,
        CommitKind.STAGE_DONE_IGNORED,
        CommitKind.PARK,
        CommitKind.CREDIT,
        CommitKind.FREE,
        CommitKind.POP_IGNORED,
        CommitKind.CONFIG,
        CommitKind.CONFIG_IGNORED,
        CommitKind.GROUP_RESET,
    }
)
"""Commits of the core that a write owes; the others are its background work."""


class Divergence(AssertionError):
    """The device did something that docs/device.md does not allow in its state, or left out what it demands."""


class Event(NamedTuple):
    """What a commit says; the meaning of each field depends on the kind (`commit_kind_e`)."""

    kind: CommitKind
    lane: int = 0
    stage: int = 0
    id: int = 0
    detail: int = 0

    def __str__(self) -> str:
        return f"{self.kind.name}(lane={self.lane}, stage={self.stage}, id={self.id:#x}, detail={self.detail:#x})"


class Step(NamedTuple):
    """A step that is legal now, and what it does to the model's state."""

    event: Event
    effect: Callable[[], None]
