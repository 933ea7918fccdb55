"""policies.png: time to first token of each tier under two settings."""

from __future__ import annotations

from pathlib import Path

from matplotlib.ticker import FuncFormatter

from cuelight_sim.crowd import NAMES, SETTINGS, simulate

from .style import COLOURS, INK, new_axes, save

__all__ = ["draw_policies"]

SHOWN = {"as after reset": ("-", ""), "batch keeps 4 seats, 64 rows": ("--", ", minimums for batch")}


def draw_policies() -> Path:
    axes = new_axes(8.5, 4.2, "Waiting for the first token: what minimums move from tier to tier")
    for setting, (style, remark) in SHOWN.items():
        workload = simulate(SETTINGS[setting])
        for tier, name in enumerate(NAMES):
            first = sorted(outcome.first_us / 1e6 for outcome in workload.outcomes if outcome.arrival.tier == tier)
            if first:
                shares = [(rank + 1) / len(first) for rank in range(len(first))]
                axes.step(first, shares, style, where="post", color=COLOURS[tier], label=name + remark)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: f"{seconds:g}"))
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("time to first token, s", color=INK, fontsize=9)
    axes.set_ylabel("share of the tier's requests", color=INK, fontsize=9)
    axes.legend(frameon=False, fontsize=8.5, labelcolor=INK, loc="upper left", bbox_to_anchor=(1, 1))
    return save(axes, "policies.png")
