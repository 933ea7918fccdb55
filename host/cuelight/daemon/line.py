"""A waiting line that is fair between those who stand in it."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Generic, TypeVar

__all__ = ["Line"]

_T = TypeVar("_T")


class Line(Generic[_T]):
    """First come, first served for each owner; between owners, whoever has the fewest under way is served next.

    Among equals it is the one who was served longest ago, so that none waits behind another's crowd.
    """

    def __init__(self) -> None:
        # In the order in which owners were last served; only those who wait.
        self._waiting: collections.OrderedDict[str, collections.deque[_T]] = collections.OrderedDict()
        self._under_way: collections.Counter[str] = collections.Counter()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[_T]:
        for items in self._waiting.values():
            yield from items

    def waiting(self, owner: str) -> int:
        """How many of an owner wait."""
        return len(self._waiting.get(owner, ()))

    def add(self, owner: str, item: _T, *, ahead: bool = False) -> None:
        """Line up, behind what the owner has here, or ahead of it."""
        items = self._waiting.setdefault(owner, collections.deque())
        (items.appendleft if ahead else items.append)(item)
        self._length += 1

    def take(self) -> tuple[str, _T]:
        """Take who is next; it is under way until `done`, and the line must not be empty."""
        owner = min(self._waiting, key=lambda owner: self._under_way[owner])
        item = self._waiting[owner].popleft()
        self._waiting.move_to_end(owner)
        self._length -= 1
        self._under_way[owner] += 1
        self._tidy(owner)
        return owner, item

    def done(self, owner: str) -> None:
        """What was taken is over, or stands in line again."""
        self._under_way[owner] -= 1
        if not self._under_way[owner]:
            del self._under_way[owner]

    def remove(self, owner: str, item: _T) -> bool:
        """Leave the line; False if it was not in it."""
        items = self._waiting.get(owner)
        if items is None or item not in items:
            return False
        items.remove(item)
        self._length -= 1
        self._tidy(owner)
        return True

    def crowd_out(self, owner: str) -> _T | None:
        """Take the latest out of the longest crowd, for `owner` to have a place; None if its own would be as long."""
        longest = max(self._waiting, key=lambda other: len(self._waiting[other]), default=None)
        if longest is None or len(self._waiting[longest]) <= self.waiting(owner) + 1:
            return None
        item = self._waiting[longest].pop()
        self._length -= 1
        self._tidy(longest)
        return item

    def _tidy(self, owner: str) -> None:
        if not self._waiting[owner]:
            del self._waiting[owner]
