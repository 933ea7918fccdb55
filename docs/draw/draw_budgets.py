"""budgets.png: how long passes take while a long prompt is read, by row budget and by cost budget."""

from __future__ import annotations

from pathlib import Path

from matplotlib.ticker import StrMethodFormatter

from cuelight import regmap
from cuelight_rtl.params import Params
from cuelight_sim.workload import Arrival, Pace, Workload

from .style import COLOURS, INK, new_axes, save

__all__ = ["draw_budgets"]

PARAMS = Params(slots=64, seats=16, lanes=1, stages=8)
PACE = Pace()
PROMPT = 60_000
COST, COST_CHUNK = regmap.GROUP + regmap.Group.COST, regmap.GROUP + regmap.Group.COST_CHUNK
# In µs, as the pace has them: c0 is what a row takes, c1 what each 1,024 positions before it add.
BUDGETS = {
    "ROWS 256": {},
    "ROWS 256, COST 10,000 µs": {COST: 10_000, COST_CHUNK: round(PACE.row_us) | round(PACE.reach_us) << 16},
}


def draw_budgets() -> Path:
    axes = new_axes(8.5, 4.2, f"Passes while a prompt of {PROMPT:,} rows is read beside 8 that decode")
    for (name, settings), colour in zip(BUDGETS.items(), COLOURS, strict=False):
        decoding = [Arrival(0.0, 0, 8, 2000) for _ in range(8)]
        workload = Workload(PARAMS, [*decoding, Arrival(1e6, 1, PROMPT, 1)], settings, PACE)
        workload.run()
        chunks = [
            (run.chunks[0][1], (run.end_us - run.start_us) / 1000)
            for run in workload.passes
            if run.start_us > 1e6 and run.chunks
        ]
        seconds = workload.outcomes[-1].first_us / 1e6
        axes.plot(
            *zip(*chunks, strict=True), color=colour, linewidth=1.6, label=f"{name}: first token after {seconds:.1f} s"
        )
    axes.set_ylim(0)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_xlim(0, PROMPT)
    axes.set_xlabel("position reached in the prompt", color=INK, fontsize=9)
    axes.set_ylabel("pass, ms (= time between tokens)", color=INK, fontsize=9)
    axes.legend(frameon=False, fontsize=9, labelcolor=INK, loc="upper left")
    return save(axes, "budgets.png")
