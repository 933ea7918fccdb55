"""loop-points.png: cycles of a loop point against how much changes at it."""

from __future__ import annotations

from pathlib import Path

from cuelight_rtl.params import Params
from cuelight_sim.loop_points import Lane

from .style import COLOURS, FAINT, INK, new_axes, save

__all__ = ["draw_loop_points"]

_LEAST, _EACH = 32, 8


def draw_loop_points() -> Path:
    params = Params()
    axes = new_axes(8.5, 4.4, f"A loop point costs what changes at it: {params.slots:,} slots in use")
    for seats, marker, colour in ((params.seats // 4, "o", COLOURS[1]), (params.seats, "x", COLOURS[0])):
        points = [point for long in (0, 3) for point in Lane(params, seats, depth=2, long=long).loop_points()]
        axes.plot(
            [point.changed for point in points],
            [point.cycles for point in points],
            marker,
            color=colour,
            label=f"{seats} seats, all taken",
            markersize=7,
            fillstyle="none",
            markeredgewidth=1.4,
        )
    most = 36
    axes.plot([0, most], [_LEAST, _LEAST + _EACH * most], color=FAINT, linewidth=1, linestyle="--")
    axes.text(most * 0.6, _LEAST + _EACH * most * 0.62, f"promised: {_LEAST} + {_EACH} a seat", color=FAINT, ha="right")
    axes.set_xlim(-1, most + 1)
    axes.set_ylim(0, 320)
    axes.set_xlabel("seats that joined, left or brought a chunk", color=INK, fontsize=9)
    axes.set_ylabel("cycles, last BATCH_DONE → first dispatch", color=INK, fontsize=9)
    axes.legend(frameon=False, fontsize=9, labelcolor=INK, loc="upper left")
    return save(axes, "loop-points.png")
