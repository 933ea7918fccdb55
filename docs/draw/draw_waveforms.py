"""wave-….svg: what the benches of `benches.bench_pictures` do, as waveforms."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benches.run import run
from cuelight.regmap import CommitKind

from .waves.rows import Measure, Row
from .waves.sheet import draw_rows
from .waves.stories import Story, read_stories
from .waves.story_rows import SIGNALS, StoryRows

__all__ = ["TITLES", "draw_waveforms"]

_FOLDER = Path(__file__).parents[2] / "build" / "docs"
TITLES = {
    "admission": "An automatic request is admitted, seated and dispatched",
    "next_stage": "BATCH_DONE brings the next stage of the pass",
    "dispatch_ahead": "With LANE.DEPTH 2 the next stage waits already",
    "loop_point": "A loop point: A leaves, C joins, B stays",
    "second_pass": "A VIP's second pass goes between the stages of the first",
    "park_and_credit": "B is parked at a loop point, and credited in the pass after it",
    "halves": "A command in two halves, and a half that is discarded",
    "stale_pop": "A pop that is repeated does nothing",
}
"""By bench."""


def draw_waveforms() -> Iterator[Path]:
    """Runs the benches on Verilator and draws each.

    Raises
    ------
    RuntimeError
        A bench failed.
    """
    result = run("verilator", "pictures", _FOLDER, waves=True)
    if result.failed:
        raise RuntimeError(f"{result.failed[0]} failed; read {result.log} to see why.")
    for bench, story in read_stories(result.log.with_suffix(".vcd"), result.passed, SIGNALS).items():
        rows, measures = _tell(bench, story)
        yield draw_rows(f"wave-{bench.replace('_', '-')}.svg", TITLES[bench], rows, story.length, measures)


def _tell(bench: str, story: Story) -> tuple[list[Row], list[Measure]]:
    """The rows that tell a story, and what is measured in it."""
    rows = StoryRows(story)
    writes, commits = rows.writes(), rows.commits()
    match bench:
        case "admission":
            shown = [*writes, *commits, rows.head()]
            return shown, [_until_shown(shown, "SCHED_CMD")]
        case "next_stage" | "loop_point":
            shown = [*writes, *commits, rows.head(), rows.outstanding()]
            return shown, [_until_shown(shown, "BATCH_DONE")]
        case "dispatch_ahead":
            return [*writes, *commits, rows.head(), rows.outstanding()], []
        case "second_pass" | "park_and_credit":
            # Each dispatch is taken at once, and its completion is BATCH_DONE's.
            commits = rows.commits(CommitKind.TAKEN, CommitKind.COMPLETE)
            return [*(row for row in writes if row.name != "POP"), *commits, rows.outstanding()], []
        case "halves":
            return [*writes, rows.got(), *commits], []
        case _:
            return [*writes, *commits, rows.retired()], []


def _until_shown(rows: list[Row], cause: str) -> Measure:
    """From a write's acceptance until the poll head shows what came of it."""
    start = next(row.marks[0].cycle for row in rows if row.name == cause)
    end = next(span.start for row in rows if row.name == "poll head" for span in row.spans if span.start > start)
    return Measure(start, end, f"from {cause} to the poll head")
