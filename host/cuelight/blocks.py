"""KV blocks of a lane group: which ones are free, and who may take them."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["BlockPool"]


class BlockPool:
    """Numbers the KV blocks of one lane group; not thread-safe.

    Parameters
    ----------
    count : int
        Blocks of the group, numbered from 0.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._free = list(range(count - 1, -1, -1))
        self._taken = bytearray(count)

    @property
    def free(self) -> int:
        """Blocks that nobody holds."""
        return len(self._free)

    def take(self, count: int) -> tuple[int, ...] | None:
        """Give out `count` blocks, or None, and nothing, if fewer are free."""
        if count > len(self._free):
            return None
        table = tuple(self._free.pop() for _ in range(count))
        for block in table:
            self._taken[block] = 1
        return table

    def give(self, table: Sequence[int]) -> None:
        """Take blocks back.

        Raises
        ------
        ValueError
            A block is not held; then none is taken back.
        """
        if len(set(table)) != len(table) or not all(0 <= block < self.count and self._taken[block] for block in table):
            raise ValueError(f"blocks must be held, each once, to be given back, not {tuple(table)}")
        for block in table:
            self._taken[block] = 0
        self._free.extend(reversed(table))
