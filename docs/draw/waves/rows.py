"""What a picture of a waveform consists of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

__all__ = ["AFTER", "EVER", "Mark", "Measure", "Row", "Span", "changes", "kept_cycles"]

AFTER = 3
"""Cycles that are shown after the last event."""
EVER = 1 << 32
"""A cycle after all others; before all others with a minus."""
_IDLE = 7
"""Idle cycles that are not worth a cut."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happens in one cycle, and what may stand beside it, the longest text first."""

    cycle: int
    texts: Sequence[str]
    colour: str


@dataclass(frozen=True, slots=True)
class Span:
    """A value that is shown from one cycle on and no longer in another; the longest text first."""

    start: int
    end: int
    texts: Sequence[str]
    colour: str


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the picture: marks, or spans."""

    group: str
    name: str
    marks: Sequence[Mark] = ()
    spans: Sequence[Span] = ()


@dataclass(frozen=True, slots=True)
class Measure:
    """How long something takes, from the beginning of one cycle to the beginning of another."""

    start: int
    end: int
    name: str


def changes(rows: Sequence[Row]) -> set[int]:
    """Cycles in which something changes."""
    marks = {mark.cycle for row in rows for mark in row.marks}
    return marks | {cycle for row in rows for span in row.spans for cycle in (span.start, span.end)}


def kept_cycles(rows: Sequence[Row], length: int) -> list[int | None]:
    """Cycles that are drawn, and None for each stretch that is cut out because nothing changes in it.

    Parameters
    ----------
    length
        Cycles of the story; one more is drawn before it, and some after it.
    """
    busy = {cycle + step for cycle in changes(rows) for step in (0, 1)}
    columns: list[int | None] = [-1]
    for keep, run in groupby(range(length), lambda cycle: cycle in busy):
        cycles = list(run)
        columns += cycles if keep or len(cycles) <= _IDLE else [None]
    return [*columns, *range(length, length + AFTER)]
