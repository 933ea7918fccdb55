"""pipeline.png: two lanes serve one group, with two passes under way."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes

from cuelight import regmap
from cuelight.regmap import DispatchHead, PageSchedAttr, PageSchedCmd
from cuelight_rtl.model import Model
from cuelight_rtl.params import Params

from .style import COLOURS, FAINT, INK, new_axes, save

__all__ = ["draw_pipeline"]

PARAMS = Params(slots=64, seats=16, lanes=2, stages=8)
STAGE_COUNT = 8
FIRST_STAGE = 5
"""Of lane 1."""
PROMPTS = ((0.0, 8), (0.0, 8), (0.0, 8), (0.0, 8), (22.0, 100))
"""When each request comes, in ms, and its rows."""
FROM_MS, TO_MS = 14.5, 38.0
KV_MS, STAGE_MS, ROW_MS = 0.3, 1.0, 0.01


@dataclass(frozen=True, slots=True)
class _Run:
    """A dispatch that a lane runs, and when, in ms."""

    lane: int
    head: DispatchHead
    start: float
    end: float


def draw_pipeline() -> Path:
    axes = new_axes(13.5, 2.5, "Two lanes, one group: while lane 1 has one pass, lane 0 has the other")
    for run in _run():
        _draw(axes, run)
    axes.set_xlim(FROM_MS, TO_MS)
    axes.set_ylim(1.45, -0.75)
    axes.set_yticks([0, 1], ["lane 0", "lane 1"], fontsize=10, color=INK)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("ms", color=FAINT, fontsize=9)
    return save(axes, "pipeline.png")


def _draw(axes: Axes, run: _Run) -> None:
    head, index = run.head, run.head.buffer >> 1
    colour = COLOURS[index]
    span, middle = (run.start, run.end - run.start), (run.start + run.end) / 2
    axes.broken_barh([span], (run.lane - 0.34, 0.68), facecolors=colour, edgecolors="white")
    text = "kv" if head.stage == 1 else "decode" if head.stage == STAGE_COUNT - 1 else f"{head.stage - 1}"
    ink = INK if index else "white"
    size = 8.5 if len(text) < 3 else 6.5
    axes.text(middle, run.lane, text, ha="center", va="center", fontsize=size, color=ink, clip_on=True)
    if head.first:
        rows = f"pass {index}, {head.rows} row{'s' * (head.rows != 1)}"
        axes.text(run.start + 0.05, run.lane - 0.38, rows, va="bottom", fontsize=8, color=FAINT, clip_on=True)


def _run() -> list[_Run]:
    """The RTL with lanes whose pace is a formula; the device's own cycles, some tenths of a µs, are left out."""
    model = Model(PARAMS)
    for offset, value in (
        (regmap.CONTROL + regmap.Control.STAGE_COUNT, STAGE_COUNT),
        (regmap.LANE + regmap.LANE_STRIDE + regmap.Lane.FIRST_STAGE, FIRST_STAGE),
        (regmap.LANE + regmap.Lane.PIPELINE, PARAMS.lanes),
    ):
        model.write(offset, value)
    prompts, now = list(PROMPTS), 0.0
    running: dict[int, _Run] = {}
    runs: list[_Run] = []
    while now < TO_MS:
        while prompts and prompts[0][0] <= now:
            _, rows = prompts.pop(0)
            model.run_until_idle()
            request_id = model.read(regmap.PAGE + regmap.Page.OFFER_ID)
            model.write(regmap.PAGE + regmap.Page.SCHED_ATTR, PageSchedAttr(automatic=1, rows=rows).pack(), width=8)
            model.write(regmap.PAGE + regmap.Page.SCHED_CMD, PageSchedCmd(id=request_id).pack(), width=8)
        model.run_until_idle()
        for lane in range(PARAMS.lanes):
            poll = regmap.POLL + lane * regmap.POLL_STRIDE
            if lane not in running and model.poll_valid >> lane & 1:
                head = DispatchHead.unpack(model.read(poll + regmap.Poll.DISPATCH, width=8))
                model.write(poll + regmap.Poll.POP, head.sequence)
                layer_ms = STAGE_MS + head.rows * ROW_MS
                takes = {1: KV_MS, STAGE_COUNT - 1: STAGE_MS}.get(head.stage, layer_ms)
                running[lane] = _Run(lane, head, now, now + takes)
                runs.append(running[lane])
        first = min(running.values(), key=lambda run: run.end)
        now = first.end
        if prompts and prompts[0][0] < now:
            now = prompts[0][0]
            continue
        del running[first.lane]
        base = regmap.COMPLETION + first.lane * regmap.COMPLETION_STRIDE
        entry = base + first.head.sequence % 16 * regmap.COMPLETION_ENTRY_STRIDE
        model.write(entry + regmap.Completion.BATCH_DONE, first.head.sequence)
    return runs
