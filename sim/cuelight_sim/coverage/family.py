"""Bins of one kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from ..golden import Golden
from ..lockstep import Write
from ..steps import Event

__all__ = ["Family"]


class Family:
    """Bins of one kind, and when a run comes to them.

    A run is what `Lockstep` has seen of the RTL: writes that the device accepted, and commits that the golden model
    found legal. Nothing is counted for having been meant.

    Parameters
    ----------
    golden
        The golden model that follows the run.

    Attributes
    ----------
    title : str
        What the bins have in common.
    bins : sequence of str
        Their names.
    unreachable : mapping of str to str
        Bins that no run comes to, with the name of the proof that shows it (`python -m cuelight_formal NAME`).
    """

    title: ClassVar[str]
    bins: ClassVar[Sequence[str]]
    unreachable: ClassVar[Mapping[str, str]] = {}

    def __init__(self, golden: Golden) -> None:
        self.golden = golden

    @classmethod
    def full(cls, name: str) -> str:
        """A bin's name with the family's in front."""
        return f"{cls.title}: {name}"

    @classmethod
    def reachable(cls) -> list[str]:
        """Full names of the bins that some run comes to."""
        return [cls.full(name) for name in cls.bins if name not in cls.unreachable]

    def wrote(self, write: Write) -> Iterable[str]:
        """Bins that an accepted write comes to, the golden model being as before it."""
        return ()

    def before(self, event: Event) -> Iterable[str]:
        """Bins that a commit comes to, the golden model being as before it."""
        return ()

    def after(self, event: Event) -> Iterable[str]:
        """Bins that a commit comes to, the golden model having followed it."""
        return ()

    def reset(self) -> Iterable[str]:
        """Bins that a reset of the device comes to, the golden model being as before it."""
        return ()
