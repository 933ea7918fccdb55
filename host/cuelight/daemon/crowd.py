"""How many connections there are, in all front ends together."""

from __future__ import annotations

import mmap

__all__ = ["Crowd", "table_bytes"]

_WORD = 4


def table_bytes(places: int) -> int:
    """Size of a table with a place for each front end."""
    return places * _WORD


class Crowd:
    """Connections of one front end, counted in its place of a table that all of them share.

    Only this front end writes its place. It writes before it reads the others', so of two that come at once at least
    one sees both: there may be one too few for a moment, never one too many.

    Parameters
    ----------
    table : mmap
        `table_bytes` of shared memory, or of its own where there is one front end only.
    place : int
        Its place.
    """

    def __init__(self, table: mmap.mmap, place: int) -> None:
        self._counts = memoryview(table).cast("I")
        self._place = place

    def join(self) -> int:
        """Count a connection; returns how many there are now."""
        self._counts[self._place] += 1
        return sum(self._counts)

    def leave(self) -> None:
        """Count one less."""
        self._counts[self._place] -= 1

    def clear(self) -> None:
        """Count none: whoever had this place is gone."""
        self._counts[self._place] = 0
