"""loop-point.png: the core's states and commits in one loop point."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from matplotlib.axes import Axes

from cuelight.regmap import CommitKind
from cuelight_rtl.model import Commit

from .loop_point import Run, run
from .style import COLOURS, FAINT, INK, LINE, PALE, new_axes, save

__all__ = ["draw_loop_point"]

_SHADES = {
    "SELECT": PALE,
    "STEP": "#a9dbd6",
    "LOOKUP": "#f7d9ae",
    "FETCH": "#f7d9ae",
    "WEIGH": "#f7d9ae",
    "EXECUTE": "#f2a33a",
    "SECOND": "#d8c7ea",
}
_ROWS = {"commits": 0.0, "core": 1.3, "request A": 2.5, "request B": 3.3, "request C": 4.1, "lane": 5.2}
_HALF = 0.32


def draw_loop_point() -> Path:
    shown = run()
    length = len(shown.states)
    axes = new_axes(15.5, 4.6, "One finishes, one has read its prompt, one takes the free seat")
    axes.set_xlim(0, length)
    axes.set_ylim(5.75, -1.35)
    axes.set_yticks(list(_ROWS.values()), list(_ROWS), fontsize=10, color=INK)
    axes.set_xticks([cycle + 0.5 for cycle in range(length)], [str(cycle) for cycle in range(length)])
    axes.tick_params(length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("cycles since BATCH_DONE was accepted", color=FAINT, fontsize=9)
    for cycle in range(length + 1):
        axes.axvline(cycle, color=LINE, linewidth=0.4, zorder=0)
    for cycle, state in enumerate(shown.states):
        _box(axes, "core", cycle, cycle + 1, _SHADES[state], state, size=6.4)
    for commit in shown.commits:
        _mark(axes, commit)
    _mark_silent(axes, shown)
    _draw_requests(axes, shown, length)
    _draw_lane(axes, shown, length)
    return save(axes, "loop-point.png")


def _mark(axes: Axes, commit: Commit) -> None:
    x, low = commit.cycle + 0.5, _ROWS["commits"]
    name = CommitKind(commit.kind).name
    on_lane = name in ("COMPLETE", "DISPATCH")
    axes.plot([x, x], [low, _ROWS["lane" if on_lane else "core"] - _HALF], color=FAINT, linewidth=0.7, zorder=1)
    axes.text(x - 0.1, low, name, rotation=38, fontsize=8.2, color=INK, ha="left", va="bottom", rotation_mode="anchor")


def _mark_silent(axes: Axes, shown: Run) -> None:
    """Cycles in which something is done that is no commit."""
    spoken = {commit.cycle for commit in shown.commits if commit.port == 0}
    for cycle, (state, after) in enumerate(pairwise(shown.states)):
        text = {("EXECUTE", "SELECT"): "shows\nRETIRE_HEAD", ("STEP", "SELECT"): "loop point\nover"}.get((state, after))
        if text and cycle not in spoken:
            place = (cycle + 0.5, _ROWS["core"] - _HALF - 0.12)
            axes.text(*place, text, fontsize=7.5, color=FAINT, ha="center", va="bottom", style="italic")


def _draw_requests(axes: Axes, shown: Run, length: int) -> None:
    """What the commits say becomes of each; the next cycle shows it."""
    at = {CommitKind(commit.kind): commit.cycle + 1 for commit in shown.commits}
    blue, orange, violet, _ = COLOURS
    retired, read, seated = at[CommitKind.RETIRE], at[CommitKind.ADVANCE], at[CommitKind.SEAT]
    planned = at[CommitKind.CHUNK]
    _box(axes, "request A", 0, retired, blue, "seat 0, decodes", light=True)
    _box(axes, "request A", retired, length, PALE, "in the retirement FIFO")
    _box(axes, "request B", 0, read, orange, "seat 1, reads its prompt")
    _box(axes, "request B", read, length, blue, "seat 1, decodes", light=True)
    _box(axes, "request C", 0, seated, PALE, "queued")
    _box(axes, "request C", seated, planned, violet, "seat 0", light=True)
    _box(axes, "request C", planned, length, orange, "chunk")


def _draw_lane(axes: Axes, shown: Run, length: int) -> None:
    complete = next(commit.cycle for commit in shown.commits if commit.kind == CommitKind.COMPLETE)
    dispatch = next(commit for commit in shown.commits if commit.kind == CommitKind.DISPATCH)
    _box(axes, "lane", 0, complete + 1, blue := COLOURS[0], "stage 3", light=True, size=7)
    _box(axes, "lane", complete + 1, dispatch.cycle + 1, "white", "nothing outstanding")
    _box(axes, "lane", dispatch.cycle + 1, length, blue, f"{dispatch.stage}", light=True)


def _box(
    axes: Axes, row: str, start: float, end: float, colour: str, text: str, *, light: bool = False, size: float = 8.5
) -> None:
    middle = _ROWS[row]
    axes.broken_barh(
        [(start, end - start)],
        (middle - _HALF, 2 * _HALF),
        facecolors=colour,
        edgecolors=LINE if colour in (PALE, "white") else "white",
        linewidth=0.8,
        zorder=2,
    )
    ink = "white" if light else INK
    axes.text((start + end) / 2, middle, text, ha="center", va="center", fontsize=size, color=ink, zorder=3)
