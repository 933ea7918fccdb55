"""Details of commits, as docs/registers.md lays them out."""

from __future__ import annotations

__all__ = ["chunk", "plan"]


def plan(rows: int, lanes: int = 1) -> int:
    """Detail of a PLAN with so many decode rows, of a group with so many lanes."""
    return rows | lanes << 16


def chunk(start: int, rows: int, *, first: bool = False, last: bool = False) -> int:
    """Detail of a CHUNK of rows from a position on."""
    return start | rows << 20 | last << 30 | first << 31
