"""Where front ends and the core meet; docs/daemon.md tells of both."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from cuelight.daemon.order import Order
from cuelight.errors import CuelightError
from cuelight.request import Finish, Token

__all__ = ["Core", "Facts", "Health", "News", "Work"]


class Facts(NamedTuple):
    """What does not change while the core lives."""

    model: str
    """What clients call the model."""
    directory: str
    """Where it is."""
    began: int
    """When the core began, seconds of the Unix epoch."""
    context: int
    """Positions that a request may have."""
    rtl_hash: str
    """Of the device."""


class Health(NamedTuple):
    """How the service is."""

    ok: bool
    trouble: str
    """One sentence; empty where all is well."""


class News(NamedTuple):
    """What is new of one answer; the first of it says that the device has it, or that it never will."""

    answer: int
    """Which one of the order."""
    tokens: list[Token]
    """Those that have come since the last news."""
    start: int = 0
    """Positions of its prompt that were found in the prefix cache."""
    began_ns: int = 0
    """When the device got it, `time.monotonic_ns`."""
    finish: Finish | None = None
    """How it ended; no news follows."""
    error: CuelightError | None = None
    """Why it failed, after these tokens; no news follows."""


class Work(Protocol):
    """What the core does for one order."""

    def take(self) -> list[News]:
        """What is new, of any answers; each news is told once."""

    def leave(self, answer: int) -> None:
        """Do no more for one answer. Twice is the same as once, and so is leaving what is over."""

    def cancel(self) -> None:
        """Leave all answers; nobody is called back any more."""


class Core(Protocol):
    """Whoever has the device; all of it is for one event loop.

    Attributes
    ----------
    facts : Facts
        What does not change.
    """

    facts: Facts

    def ask(self, order: Order, hear: Callable[[], None]) -> Work:
        """Begin with an order.

        Parameters
        ----------
        order : Order
            What is asked for.
        hear : callable
            Called on the event loop when there is something to take; several news may come with one call.

        Raises
        ------
        CuelightError
            It is not taken.
        """

    async def health(self) -> Health:
        """How the service is now."""

    async def page(self, accept: str) -> tuple[bytes, str]:
        """All metrics in the format that an Accept header asks for, and its content type."""
