"""News from the driver's threads to the event loop: any number of them, one wake-up."""

from __future__ import annotations

import asyncio
import collections
import contextlib
from typing import Protocol

__all__ = ["Listener", "Mailbox"]

_LINGER_S = 0.005


class Listener(Protocol):
    """Somebody on the event loop who wants to know that there is something new."""

    noted: bool
    """In the mailbox already."""

    def hear(self) -> None:
        """Look what is new; called on the event loop."""


class Mailbox:
    """Collects who has news, from whichever thread, and tells them on the event loop.

    A pass brings a token to each of its seats, all within microseconds: they are collected and cost one wake-up. A
    listener that was not told yet is not noted again, so what comes faster than the loop can look is looked at
    together. To wake the loop costs both threads, so what is in no hurry waits for what is, or for `deliver`.

    Parameters
    ----------
    loop : asyncio.AbstractEventLoop
        Where listeners are told.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._noted: collections.deque[Listener] = collections.deque()
        self._woken = False
        self._awaited = False

    def note(self, listener: Listener, *, hurry: bool = True) -> None:
        """Have `listener` told soon, or, without hurry, with others; returns at once, from any thread."""
        # No lock: flags are set before, and cleared after, what they guard, and single steps are atomic.
        if not listener.noted:
            listener.noted = True
            self._noted.append(listener)
        if hurry and not self._woken:
            self._woken = True
            # A loop that is closed has nobody to tell.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._wake)

    def deliver(self) -> None:
        """Tell all that is noted; for the event loop."""
        while self._noted:
            listener = self._noted.popleft()
            listener.noted = False
            listener.hear()

    def await_news(self) -> None:
        """Deliver within some milliseconds what will be noted without hurry; for the event loop."""
        if not self._awaited:
            self._awaited = True
            self._loop.call_later(_LINGER_S, self._deliver_awaited)

    def _wake(self) -> None:
        self._woken = False
        self.deliver()

    def _deliver_awaited(self) -> None:
        self._awaited = False
        self.deliver()
