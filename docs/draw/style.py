"""How the guides' pictures look. The same run gives the same file."""

from __future__ import annotations

from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

__all__ = ["COLOURS", "FAINT", "INK", "LINE", "PALE", "new_axes", "new_sheet", "save", "save_svg"]

INK, FAINT, LINE, PALE = "#1f2933", "#7b8794", "#c5ccd6", "#eef1f5"
COLOURS = ("#1f6f8b", "#f2a33a", "#8d6bb8", "#4ba3b0")
_DARK = "@media (prefers-color-scheme: dark) { :root { filter: invert(0.94) hue-rotate(180deg); } }"
PICTURES = Path(__file__).parents[1] / "pictures"


def new_axes(width: float, height: float, title: str) -> Axes:
    """Axes of a new picture, sizes in inches."""
    figure = Figure(figsize=(width, height), dpi=110, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set_title(title, loc="left", fontsize=11, color=INK, pad=10)
    axes.tick_params(colors=FAINT, labelsize=9)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(LINE)
    return axes


def save(axes: Axes, name: str) -> Path:
    """Writes the picture into docs/pictures/."""
    path = PICTURES / name
    # The program's version would change the file.
    axes.get_figure().savefig(path, metadata={"Software": None})  # type: ignore[union-attr]
    return path


def new_sheet(width: float, height: float) -> Axes:
    """A new drawing, sizes in points; x goes to the right and y down from the upper left corner, in points too."""
    figure = Figure(figsize=(width / 72, height / 72), facecolor="white")
    FigureCanvasSVG(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    return axes


def save_svg(axes: Axes, name: str) -> Path:
    """Writes the drawing into docs/pictures/; where pages are dark, it is."""
    path = PICTURES / name
    # Text stays text; names of parts do not depend on chance.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "cuelight"}):
        axes.get_figure().savefig(path, metadata={"Date": None, "Creator": None})  # type: ignore[union-attr]
    text = path.read_text()
    path.write_text(text.replace("<defs>", f"<style>{_DARK}</style>\n <defs>", 1))
    return path
