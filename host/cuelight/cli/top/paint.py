"""Colours, bars and numbers of `cuelight top`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from rich.text import Text

__all__ = [
    "AMBER",
    "BACKGROUND",
    "BAND",
    "DIM",
    "EDGE",
    "GREEN",
    "RED",
    "TEXT",
    "TIERS",
    "bar",
    "cells",
    "columns",
    "count",
    "duration",
    "rate",
    "seconds",
]

BACKGROUND, BAND, TEXT, DIM, EDGE = "#101216", "#191c22", "#d7dae0", "#6b7280", "#343a46"
AMBER, GREEN, RED = "#ffb454", "#7fd962", "#ff6b6b"
TIERS = ("#ff79c6", "#59c2ff", "#7f9cf5", "#e6b450")
"""By tier, the highest first."""

_EMPTY = "#333944"
_EIGHTHS = " ▁▂▃▄▅▆▇█"


def bar(share: float, width: int, colour: str) -> Text:
    """A line of `width` cells, filled by halves of a cell; what is not nothing shows."""
    halves = round(2 * width * min(1.0, max(0.0, share)))
    if share > 0:
        halves = max(1, halves)
    full, half = divmod(halves, 2)
    return Text.assemble(("━" * full, colour), ("╸" * half, colour), ("━" * (width - full - half), _EMPTY))


def cells(parts: Sequence[tuple[int, str, str]], whole: int, width: int) -> Text:
    """A strip of at most `width` cells for `whole` places; each part is a count, a sign and a colour."""
    shown = min(whole, width)
    text = Text()
    left, places = shown, whole
    for number, sign, colour in parts:
        # What is there has a cell at least.
        take = min(left, max(round(number * shown / whole), number > 0)) if whole else 0
        text.append(sign * take, colour)
        left -= take
        places -= number
    return text.append("·" * left, _EMPTY)


def columns(series: Sequence[Sequence[float]], colours: Sequence[str], width: int, height: int) -> tuple[Text, float]:
    """Stacked columns of `height` lines, the latest at the right; and the value at the top.

    Parameters
    ----------
    series : sequence of sequence of float
        Parts of each column, from the bottom up.
    colours : sequence of str
        Of the parts.
    width, height : int
        Cells.
    """
    shown = list(series)[-width:]
    top = _round_up(max((sum(parts) for parts in shown), default=0.0))
    lines = [Text(" " * (width - len(shown))) for _ in range(height)]
    for parts in shown:
        edges = []
        reached = 0.0
        for part in parts:
            reached += part
            edges.append(round(8 * height * reached / top))
        for line in range(height):
            low = 8 * (height - 1 - line)
            # The part that has most of the cell gives it its colour.
            held = [min(8, edge - low) - max(0, before - low) for before, edge in itertools.pairwise([0, *edges])]
            filled = min(8, max(0, edges[-1] - low)) if edges else 0
            colour = colours[max(range(len(held)), key=held.__getitem__)] if filled else ""
            lines[line].append(_EIGHTHS[filled], colour)
    return Text("\n").join(lines), top


def count(value: float) -> str:
    """A count in five signs at most."""
    for power, unit in ((9, "G"), (6, "M"), (4, "k")):
        if value >= 10**power:
            return f"{value / 10 ** (power // 3 * 3):.3g}{unit}"
    return f"{value:,.0f}"


def rate(value: float | None) -> str:
    """A rate in five signs at most."""
    if value is None:
        return "–"
    return f"{value:.1f}" if 0 < value < 100 else count(value)


def seconds(value: float | None) -> str:
    """A latency in six signs at most."""
    if value is None:
        return "–"
    if value < 0.9995:
        return f"{1000 * value:.3g} ms" if value < 0.0995 else f"{1000 * value:.0f} ms"
    return f"{value:.2f} s" if value < 9.995 else f"{value:.0f} s"


def duration(value: float) -> str:
    """How long something has been going on."""
    whole = int(value)
    if whole < 60:
        return f"{value:.1f} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02}"
    return f"{whole // 3600}:{whole % 3600 // 60:02}:{whole % 60:02}"


def _round_up(value: float) -> float:
    """A round number that is not less."""
    power = 1.0
    while power * 10 <= value:
        power *= 10
    return next(power * step for step in (1, 2, 3, 4, 5, 6, 8, 10) if power * step >= value or step == 10)
