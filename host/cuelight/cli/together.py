"""Several generations at once, and what comes of them as it comes."""

from __future__ import annotations

import functools
import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cuelight.errors import CuelightError, DeviceFull, NoKvCredit, Timeout
from cuelight.stream import Stream

__all__ = ["Event", "run_together"]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that came of generation `index`."""

    index: int
    piece: str = ""
    """Text."""
    stream: Stream | None = None
    """It has ended well."""
    error: CuelightError | None = None
    """It has no answer, or no whole one."""


def run_together(count: int, start: Callable[[int], Stream], timeout_s: float) -> Iterator[Event]:
    """Start generations in order, as soon as there is room for each, and yield their events until all have ended.

    Parameters
    ----------
    count : int
        Generations.
    start : callable
        Starts the one with an index.
    timeout_s : float
        Longest wait for a token of one, in seconds.

    Raises
    ------
    Timeout
        Nothing at all came for twice as long.
    """
    events: queue.SimpleQueue[Event | Exception] = queue.SimpleQueue()
    threading.Thread(target=_start_all, args=(count, start, timeout_s, events), daemon=True).start()
    left = count
    while left:
        try:
            event = events.get(timeout=2 * timeout_s)
        except queue.Empty:
            raise Timeout(f"No answer went on within {2 * timeout_s:g} s; allow more with --timeout.") from None
        if isinstance(event, Exception):
            raise event
        left -= event.stream is not None or event.error is not None
        yield event


def _start_all(
    count: int, start: Callable[[int], Stream], timeout_s: float, events: queue.SimpleQueue[Event | Exception]
) -> None:
    followers: list[threading.Thread] = []
    for index in range(count):
        try:
            stream = _start(functools.partial(start, index), followers)
        except CuelightError as error:
            events.put(Event(index, error=error))
            continue
        except Exception as error:
            events.put(error)
            return
        followers.append(threading.Thread(target=_follow, args=(index, stream, timeout_s, events), daemon=True))
        followers[-1].start()


def _start(start: Callable[[], Stream], before: list[threading.Thread]) -> Stream:
    while True:
        alive = any(thread.is_alive() for thread in before)
        try:
            return start()
        except (DeviceFull, NoKvCredit):
            # Those before it will give their room back, however long that takes.
            if not alive:
                raise


def _follow(index: int, stream: Stream, timeout_s: float, events: queue.SimpleQueue[Event | Exception]) -> None:
    try:
        for piece in stream.pieces(timeout_s):
            events.put(Event(index, piece))
        events.put(Event(index, stream=stream))
    except CuelightError as error:
        stream.cancel()
        events.put(Event(index, error=error))
    except Exception as error:
        events.put(error)
