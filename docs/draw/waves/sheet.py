"""Draws rows of a waveform. All lengths are points."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise
from pathlib import Path

from matplotlib.axes import Axes

from ..style import FAINT, INK, LINE, new_sheet, save_svg
from .rows import Measure, Row, changes, kept_cycles
from .scale import CUT, LEFT, RIGHT, WIDTH, Scale, text_width

__all__ = ["draw_rows"]

_GUTTER = 46.0
_ROW, _HALF, _GAP = 17.0, 5.6, 6.0
_TITLE, _AXIS, _BOTTOM = 20.0, 13.0, 6.0
_TOP = _TITLE + _AXIS
_SLOPE = 1.4
_HEADING, _NAME, _NOTE, _SMALL = 10.5, 8.4, 7.4, 6.4
_MEASURED = "#b4232c"

Texts = list[tuple[float, str]]
"""Left edge of each text, and the text."""


def draw_rows(name: str, title: str, rows: Sequence[Row], length: int, measures: Sequence[Measure] = ()) -> Path:
    """Draws a picture into docs/pictures/.

    Parameters
    ----------
    name
        Of the file.
    rows
        From top to bottom; those of a group stand together.
    length
        Cycles of the story.
    measures
        What is measured below the rows.
    """
    scale = Scale(kept_cycles(rows, length))
    tops = [_TOP + _GAP / 2]
    for above, row in pairwise(rows):
        tops.append(tops[-1] + _ROW + (_GAP if row.group != above.group else 0))
    below = tops[-1] + _ROW
    axes = new_sheet(WIDTH, below + (_GAP + _ROW * len(measures) if measures else 0) + _BOTTOM)
    axes.text(RIGHT, _TITLE / 2 + 2, title, fontsize=_HEADING, color=INK, va="center")
    _draw_axis(axes, scale, changes(rows), below)
    for row, top in zip(rows, tops, strict=True):
        middle = top + _ROW / 2
        axes.text(LEFT - 7, middle, row.name, fontsize=_NAME, color=INK, ha="right", va="center")
        texts = _draw_marks(axes, scale, row, middle) if row.marks else _draw_spans(axes, scale, row, middle)
        for cut in scale.cuts:
            if not any(left - 4 < cut < left + _width(text) + 4 for left, text in texts):
                _draw_cut(axes, cut, middle)
    for group, run in groupby(zip(rows, tops, strict=True), lambda pair: pair[0].group):
        places = [top for _, top in run]
        _draw_group(axes, group, places[0], places[-1] + _ROW)
    for number, measure in enumerate(measures):
        _draw_measure(axes, scale, measure, below + _GAP + _ROW * (number + 0.5))
    return save_svg(axes, name)


def _draw_axis(axes: Axes, scale: Scale, busy: set[int], below: float) -> None:
    """Numbers each cycle, or, where they do not fit, those in which something changes."""
    middle = _TOP - _AXIS / 2
    crowded = scale.cycle < text_width(str(max(scale.lefts)), _SMALL) + 3
    free = LEFT
    for cycle, x in scale.lefts.items():
        axes.plot([x, x], [_TOP, below], color=LINE, linewidth=0.4, zorder=0)
        half = text_width(str(cycle), _SMALL) / 2
        x += scale.cycle / 2
        near_cut = any(abs(x - cut) < half + CUT / 3 for cut in scale.cuts)
        if cycle >= 0 and x - half >= free and not near_cut and not (crowded and cycle not in busy):
            axes.text(x, middle, str(cycle), fontsize=_SMALL, color=FAINT, ha="center", va="center")
            free = x + half + 2
    for cut in scale.cuts:
        axes.text(cut, middle, "⋯", fontsize=_NOTE, color=FAINT, ha="center", va="center")
    axes.plot([scale.end, scale.end], [_TOP, below], color=LINE, linewidth=0.4, zorder=0)


def _draw_group(axes: Axes, name: str, top: float, bottom: float) -> None:
    axes.plot([_GUTTER, _GUTTER], [top + 2, bottom - 2], color=LINE, linewidth=1.6, solid_capstyle="round")
    axes.text(_GUTTER - 5, (top + bottom) / 2, name, fontsize=_NOTE, color=FAINT, ha="right", va="center")


def _draw_marks(axes: Axes, scale: Scale, row: Row, middle: float) -> Texts:
    low, high = middle + _HALF, middle - _HALF
    xs, ys = [LEFT], [low]
    for mark in row.marks:
        left = scale.left(mark.cycle)
        right = left + scale.cycle
        corners = [left, left + _SLOPE, right, right + _SLOPE]
        axes.fill(corners, [low, high, high, low], color=mark.colour, linewidth=0, zorder=2)
        xs += corners
        ys += [low, high, high, low]
    axes.plot([*xs, scale.end], [*ys, low], color=INK, linewidth=0.8, zorder=3, solid_joinstyle="round")
    texts = next(filter(None, (_place_texts(scale, row, choice) for choice in range(3))), [])
    for x, text in texts:
        _write(axes, x, middle, text)
    return texts


def _place_texts(scale: Scale, row: Row, choice: int) -> Texts | None:
    """Each mark's text of this length where it fits, right of the mark or else left of it; None if one does not."""
    starts = [scale.left(mark.cycle) for mark in row.marks]
    free, places = LEFT, Texts()
    for mark, start, after in zip(row.marks, starts, [*starts[1:], scale.end + RIGHT], strict=True):
        text = mark.texts[min(choice, len(mark.texts) - 1)]
        right, left = start + scale.cycle + 3.5, start - 2 - _width(text)
        if right + _width(text) + 3 <= after:
            places.append((right, text))
            free = right + _width(text)
        elif left >= free + 3:
            places.append((left, text))
            free = start + scale.cycle
        else:
            return None
    return places


def _draw_spans(axes: Axes, scale: Scale, row: Row, middle: float) -> Texts:
    low, high = middle + _HALF, middle - _HALF
    axes.plot([LEFT, scale.end], [middle, middle], color=INK, linewidth=0.8, zorder=1)
    texts = Texts()
    for span in row.spans:
        left, right = scale.left(span.start), scale.left(span.end)
        begins, ends = _SLOPE * (left > LEFT), _SLOPE * (right < scale.end)
        xs = [left, left + begins, right - ends, right, right - ends, left + begins]
        ys = [middle, high, high, middle, low, low]
        axes.fill(xs, ys, facecolor=span.colour, edgecolor=INK, linewidth=0.8, zorder=2)
        text = next((text for text in span.texts if _width(text) < right - left - 5), "")
        start, end = max(scale.between_cuts(left, right), key=lambda part: part[1] - part[0])
        if end - start < _width(text) + CUT:
            start, end = left, right
        x = (start + end - _width(text)) / 2
        _write(axes, x, middle, text, behind=span.colour)
        texts.append((x, text))
    return texts


def _draw_cut(axes: Axes, x: float, middle: float) -> None:
    low, high, lean, half = middle + _HALF + 1.5, middle - _HALF - 1.5, 1.8, 1.6
    xs = [x - half - lean, x - half + lean, x + half + lean, x + half - lean]
    axes.fill(xs, [low, high, high, low], color="white", linewidth=0, zorder=4)
    for side in (-half, half):
        axes.plot([x + side - lean, x + side + lean], [low, high], color=FAINT, linewidth=0.7, zorder=5)


def _draw_measure(axes: Axes, scale: Scale, measure: Measure, middle: float) -> None:
    start, end = scale.left(measure.start), scale.left(measure.end)
    for x in (start, end):
        dashes = (0, (3, 2))
        axes.plot([x, x], [_TOP, middle + _HALF], color=_MEASURED, linewidth=0.7, linestyle=dashes, zorder=1)
    arrow = {"arrowstyle": "<|-|>", "color": _MEASURED, "linewidth": 0.8, "mutation_scale": 6}
    axes.annotate("", (end, middle), (start, middle), arrowprops={**arrow, "shrinkA": 0, "shrinkB": 0})
    text = f"{measure.end - measure.start} cycles {measure.name}"
    inside = _width(text) + 22 < end - start
    _write(axes, (start + end - _width(text)) / 2 if inside else end + 4, middle, text, colour=_MEASURED)


def _write(axes: Axes, x: float, y: float, text: str, *, colour: str = INK, behind: str = "white") -> None:
    box = {"facecolor": behind, "edgecolor": "none", "pad": 0.6}
    axes.text(x, y, text, fontsize=_NOTE, color=colour, va="center", zorder=6, bbox=box)


def _width(text: str) -> float:
    return text_width(text, _NOTE)
