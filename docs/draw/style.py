"""How the guides' pictures look. The same run gives the same file."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

__all__ = ["COLOURS", "FAINT", "INK", "LINE", "PALE", "new_axes", "save"]

INK, FAINT, LINE, PALE = "#1f2933", "#7b8794", "#c5ccd6", "#eef1f5"
COLOURS = ("#1f6f8b", "#f2a33a", "#8d6bb8", "#4ba3b0")
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
