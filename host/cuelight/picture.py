"""A picture of a run: one row per request, one bar per stage, the whole of it above and a closer look below."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap, to_hex
from matplotlib.figure import Figure
from matplotlib.patches import ConnectionPatch, Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from cuelight.errors import InvalidArgument
from cuelight.regmap import RetireReason
from cuelight.timeline import Bar, Phase, RequestRow, Timeline

__all__ = ["draw_timeline"]

INK, FAINT, TRACK, LOAD, ZOOM = "#1f2933", "#7b8794", "#eef1f5", "#c5ccd6", "#d9a860"
KV_INIT, DECODE = "#8d6bb8", "#f2a33a"
LAYERS = LinearSegmentedColormap.from_list("layers", ["#a9dbd6", "#4ba3b0", "#1f6f8b", "#123f5a"])
LABEL_LENGTH = 34
HEIGHT = {Phase.PREFILL: 0.74, Phase.DECODE: 0.42}
ENDS = {RetireReason.FINISHED: "finished", RetireReason.CANCELLED: "cancelled", RetireReason.LANE_LOST: "lane lost"}


def draw_timeline(timeline: Timeline, path: Path, labels: Mapping[int, str] | None = None) -> None:
    """Write the picture of `timeline` as PNG to `path`.

    Parameters
    ----------
    labels
        A title for request ids; others are named by their id.

    Raises
    ------
    InvalidArgument
        The file can't be written.
    """
    rows = list(timeline.requests)
    window = _pick_window(timeline)
    near = [row for row in rows if _overlaps(row, window)]
    row_inches = min(0.55, 24 / (len(rows) + len(near) + 1))
    heights = [max(len(rows) * row_inches, 0.6), 0.45, max(len(near) * row_inches, 0.6)]
    margins = _Margins(top=1.25, bottom=0.4, gaps=(0.1, 0.55))
    figure = Figure(figsize=(15, sum(heights) + margins.total), dpi=144, facecolor="white")
    FigureCanvasAgg(figure)
    whole, load, close = _stack(figure, heights, margins)

    named = labels or {}
    _draw_rows(whole, rows, timeline, named)
    for index, row in enumerate(rows):
        _note_end(whole, index, row, timeline)
    whole.set_xlim(0, max(timeline.duration_ns, 1))
    _label_time(whole, "top")
    _draw_load(load, timeline)
    load.set_xlim(whole.get_xlim())

    _draw_rows(close, near, timeline, named, window)
    _draw_passes(close, timeline, window)
    close.set_xlim(window.start_ns, window.end_ns)
    _label_time(close, "bottom")
    _connect(figure, (whole, load), close, window)
    _title(figure, timeline)
    try:
        figure.savefig(path, format="png", metadata={"Software": "cuelight"})
    except OSError as error:
        raise InvalidArgument(f"{path} can't be written ({error.strerror}); name another file.") from error


@dataclass(frozen=True, slots=True)
class _Margins:
    """Inches above, below and between the three panels."""

    top: float
    bottom: float
    gaps: tuple[float, float]

    @property
    def total(self) -> float:
        return self.top + self.bottom + sum(self.gaps)


@dataclass(frozen=True, slots=True)
class _Window:
    start_ns: int
    end_ns: int


def _stack(figure: Figure, heights: list[float], margins: _Margins) -> list[Axes]:
    total = figure.get_figheight()
    panels, top = [], total - margins.top
    for height, gap in zip(heights, (*margins.gaps, 0.0), strict=True):
        panels.append(figure.add_axes((0.185, (top - height) / total, 0.745, height / total)))
        top -= height + gap
    return panels


def _pick_window(timeline: Timeline) -> _Window:
    """Choose the passes around the one in which a prompt is read while the most others decode."""
    passes = [one for one in timeline.passes if one.stages]
    if not passes:
        return _Window(0, max(timeline.duration_ns, 1))
    merged = [one.decode_rows if one.chunks else 0 for one in passes]
    mixed = merged.index(max(merged))
    shown = passes[max(mixed - 1, 0) : mixed + 3]
    return _Window(shown[0].stages[0].start_ns, shown[-1].stages[-1].end_ns)


def _overlaps(row: RequestRow, window: _Window) -> bool:
    return any(bar.end_ns > window.start_ns and bar.start_ns < window.end_ns for bar in row.bars)


def _label_time(axes: Axes, side: Literal["top", "bottom"]) -> None:
    first, last = axes.get_xlim()
    span = last - first
    unit, ns = ("s", 1e9) if span >= 2e9 else ("ms", 1e6) if span >= 2e6 else ("µs", 1e3)
    axes.xaxis.set_major_locator(MaxNLocator(9, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / ns:g} {unit}"))
    axes.xaxis.set_ticks_position(side)


def _draw_rows(
    axes: Axes, rows: list[RequestRow], timeline: Timeline, labels: Mapping[int, str], window: _Window | None = None
) -> None:
    axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)
    names = [_shorten(labels.get(row.id, f"request {row.id:#010x}")) for row in rows]
    axes.set_yticks(range(len(rows)), names, fontsize=10, color=INK)
    axes.tick_params(axis="y", length=0, pad=8)
    axes.tick_params(axis="x", colors=FAINT, labelsize=8.5, length=3)
    for side in ("top", "left", "right", "bottom"):
        axes.spines[side].set_visible(False)
    for index, row in enumerate(rows):
        start = row.admitted_ns or 0
        end = timeline.duration_ns if row.retired_ns is None else row.retired_ns
        axes.broken_barh([(start, end - start)], (index - 0.43, 0.86), color=TRACK, zorder=1)
        bars = row.bars
        if window:
            bars = [bar for bar in bars if bar.end_ns > window.start_ns and bar.start_ns < window.end_ns]
            _name_bars(axes, index, bars, timeline, window)
        for phase in Phase:
            for stage in sorted({bar.stage for bar in bars if bar.phase is phase}):
                alike = [bar for bar in bars if (bar.stage, bar.phase) == (stage, phase)]
                axes.broken_barh(
                    [(bar.start_ns, bar.end_ns - bar.start_ns) for bar in alike],
                    (index - HEIGHT[phase] / 2, HEIGHT[phase]),
                    facecolors=_stage_colour(timeline, stage),
                    edgecolors="white" if window else "none",
                    linewidth=0.8 if window else 0,
                    zorder=3,
                )


def _shorten(label: str) -> str:
    return label if len(label) <= LABEL_LENGTH else f"{label[: LABEL_LENGTH - 1].rstrip()}…"


def _name_bars(axes: Axes, index: int, bars: list[Bar], timeline: Timeline, window: _Window) -> None:
    last = timeline.stage_count - 1
    for bar in bars:
        text = "decode" if bar.stage == last else "kv" if bar.stage == 1 else f"{bar.stage - 1}"
        if (bar.end_ns - bar.start_ns) / (window.end_ns - window.start_ns) > 0.0055 * (1 + len(text)):
            dark = bar.stage == 1 or last / 2 < bar.stage < last
            middle = (bar.start_ns + bar.end_ns) / 2
            colour = "white" if dark else INK
            axes.text(middle, index, text, ha="center", va="center", fontsize=7.5, color=colour, zorder=4)


def _note_end(axes: Axes, index: int, row: RequestRow, timeline: Timeline) -> None:
    sampled = [bar for bar in row.bars if bar.stage == timeline.stage_count - 1]
    if sampled:
        axes.plot([sampled[0].end_ns], [index - 0.4], marker="v", markersize=5, color=INK, clip_on=False, zorder=5)
    if row.retired_ns is not None and row.reason is not None:
        axes.annotate(
            f"{len(sampled)} tokens,\n{ENDS[row.reason]}" if sampled else ENDS[row.reason],
            (row.retired_ns, index),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
            color=FAINT,
            annotation_clip=False,
        )


def _draw_load(axes: Axes, timeline: Timeline) -> None:
    """Requests that share each pass, as steps under the whole run."""
    for one in timeline.passes:
        if one.stages:
            start, end = one.stages[0].start_ns, one.stages[-1].end_ns
            axes.broken_barh([(start, end - start)], (0, one.decode_rows + one.chunks), color=LOAD, linewidth=0)
    most = max((one.decode_rows + one.chunks for one in timeline.passes), default=1)
    axes.set_ylim(0, most * 1.15)
    axes.set_yticks([most], [f"{most}"], fontsize=8, color=FAINT)
    axes.set_ylabel("requests\nin the pass", rotation=0, ha="right", va="center", labelpad=16, size=8.5, color=FAINT)
    axes.tick_params(axis="y", length=0)
    axes.set_xticks([])
    for side in ("top", "left", "right"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(LOAD)


def _draw_passes(axes: Axes, timeline: Timeline, window: _Window) -> None:
    for one in timeline.passes:
        if not one.stages:
            continue
        start, end = one.stages[0].start_ns, one.stages[-1].end_ns
        if end <= window.start_ns or start >= window.end_ns:
            continue
        if start > window.start_ns:
            axes.axvline(start, color=FAINT, linewidth=0.8, zorder=2)
        # Its name stands over what runs before the next one begins, which may be while this one is alive.
        begins = (other.stages[0].start_ns for other in timeline.passes if other.stages and other.group == one.group)
        until = min((begin for begin in begins if start < begin < end), default=end)
        if (until - start) / (window.end_ns - window.start_ns) < 0.09:
            continue
        axes.annotate(
            f"pass {one.number}: {one.rows} row{'s' * (one.rows != 1)}",
            ((start + until) / 2, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, 5),
            textcoords="offset points",
            ha="center",
            fontsize=8.5,
            color=FAINT,
        )


def _connect(figure: Figure, above: tuple[Axes, Axes], below: Axes, window: _Window) -> None:
    for axes in above:
        axes.axvspan(window.start_ns, window.end_ns, color=ZOOM, alpha=0.25, zorder=2, linewidth=0)
    # Above the names of the passes.
    roof = 1 + 0.26 / (below.get_position().height * figure.get_figheight())
    for edge in (window.start_ns, window.end_ns):
        line = ConnectionPatch((edge, 0), (edge, roof), above[1].transData, below.get_xaxis_transform(), color=ZOOM)
        line.set_linewidth(0.9)
        figure.add_artist(line)


def _title(figure: Figure, timeline: Timeline) -> None:
    cycles = [run.decision_cycles for one in timeline.passes for run in one.stages]
    top = figure.get_figheight()
    text = f"{len(timeline.requests)} requests, {len(timeline.passes)} passes, {len(cycles)} stages dispatched"
    if cycles:
        text += f", each decided in {sum(cycles) / len(cycles):.1f} device cycles (mean)"
    figure.text(0.02, 1 - 0.34 / top, "Cuelight", fontsize=15, fontweight="bold", color=INK, va="center")
    figure.text(0.02, 1 - 0.64 / top, text, fontsize=9.5, color=FAINT, va="center")
    key = "tall: a chunk of the prompt    low: one token    ▾ first token"
    figure.text(0.98, 1 - 0.64 / top, key, fontsize=8.5, color=FAINT, ha="right", va="center")
    last = timeline.stage_count - 1
    used = sorted({run.stage for one in timeline.passes for run in one.stages if 2 <= run.stage < last})
    stages = [1, *(used if len(used) <= 6 else (used[0], used[len(used) // 2], used[-1])), last]
    figure.legend(
        handles=[Patch(color=_stage_colour(timeline, stage), label=timeline.stage_name(stage)) for stage in stages],
        loc="upper right",
        bbox_to_anchor=(0.985, 1 - 0.14 / top),
        ncols=len(stages),
        frameon=False,
        fontsize=8.5,
        labelcolor=INK,
        handlelength=1.1,
        columnspacing=1.2,
    )


def _stage_colour(timeline: Timeline, stage: int) -> str:
    last = timeline.stage_count - 1
    if stage <= 1:
        return KV_INIT
    if stage >= last:
        return DECODE
    return to_hex(LAYERS((stage - 2) / max(last - 3, 1)))
