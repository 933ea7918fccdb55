"""Pictures of waveforms: what is read, what is cut out, and that the one of a dispatch shows what the RTL does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cuelight import regmap
from cuelight.regmap import CommitKind, PageSchedAttr, PageSchedCmd
from cuelight_rtl.commit import FIELDS
from cuelight_rtl.model import Model
from draw.draw_waveforms import TITLES
from draw.loop_point import PARAMS
from draw.waves.rows import Mark, Row, Span, kept_cycles
from draw.waves.sheet import draw_rows
from draw.waves.stories import read_stories

ROOT = Path(__file__).parents[2]
QUIET_CYCLES = 70


def test_long_stretches_without_a_change_are_cut_out() -> None:
    rows = [
        Row("writes", "POP", marks=[Mark(0, ("1",), "red"), Mark(8, ("2",), "red")]),
        Row("lane", "head", spans=[Span(3, 30, ("stage 1",), "red")]),
    ]
    assert kept_cycles(rows, 31) == [*range(-1, 10), None, 30, 31, 32, 33]


def test_the_same_rows_give_the_same_drawing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("draw.style.PICTURES", tmp_path)
    marks = [Mark(0, ("the first of two", "1"), "red"), Mark(40, ("the second", "2"), "red")]
    rows = [Row("writes", "POP", marks), Row("lane", "head", spans=[Span(1, 20, ("stage 1",), "red")])]
    first, second = (draw_rows(name, "A title", rows, 41).read_text() for name in ("one.svg", "two.svg"))
    assert first == second
    texts = re.findall(r"<text [^>]*>([^<]*)</text>", first)
    assert {"A title", "POP", "head", "the first of two", "the second", "stage 1", "40"} <= {*texts}
    assert texts.count("⋯") == 2


def test_a_story_is_what_lies_between_two_quiet_stretches(tmp_path: Path) -> None:
    """Two runs of a bench, each of them with a write before the story, two in it and one after it."""
    waves = tmp_path / "waves.vcd"
    waves.write_text(record([run(base) for base in (0x100, 0x200)]))
    stories = read_stories(waves, ["one", "two"], ["level"])
    for base, story in zip((0x100, 0x200), stories.values(), strict=True):
        writes = [(write.cycle, write.offset, write.strobe) for write in story.writes]
        assert writes == [(0, base + 1, 15), (5, base + 2, 15)]
        assert [(commit.cycle, commit.kind, commit.id) for commit in story.commits] == [(2, CommitKind.SEAT, base)]
        assert story.length == 6
        assert story.signals["level"][:6] == [0, 0, 0, 0, 0, base + 2]


@pytest.mark.parametrize("names", [["one"], ["one", "two", "three"]])
def test_runs_that_are_not_the_benches_are_not_read(tmp_path: Path, names: list[str]) -> None:
    waves = tmp_path / "waves.vcd"
    waves.write_text(record([run(0x100), run(0x200)]))
    with pytest.raises(LookupError, match="shows 2 runs"):
        read_stories(waves, names, ["level"])


def test_a_signal_that_is_not_there_is_named(tmp_path: Path) -> None:
    waves = tmp_path / "waves.vcd"
    waves.write_text(record([run(0x100)]))
    with pytest.raises(LookupError, match=r"does not show bench\.twin\.scheduler\.nothing"):
        read_stories(waves, ["one"], ["nothing"])


def test_every_bench_that_is_drawn_has_a_title() -> None:
    benches = (ROOT / "sim" / "benches" / "bench_pictures.py").read_text()
    assert re.findall(r"^@bench\nasync def (\w+)", benches, re.MULTILINE) == [*TITLES]


def test_the_picture_of_a_dispatch_shows_how_many_cycles_it_takes() -> None:
    """If not, `make docs` draws it anew."""
    model = Model(PARAMS)
    model.run_until_idle()
    model.write(regmap.LANE + regmap.Lane.DEPTH, 1)
    model.write(regmap.PAGE + regmap.Page.SCHED_ATTR, PageSchedAttr(automatic=1, rows=40).pack(), 8)
    model.write(regmap.PAGE + regmap.Page.SCHED_CMD, PageSchedCmd(id=1 << 16).pack(), 8)
    model.run_until_idle()
    model.write(regmap.COMPLETION + regmap.COMPLETION_ENTRY_STRIDE + regmap.Completion.BATCH_DONE, 1)
    model.run_until_idle()
    # The head shows it in the cycle after its commit.
    cycles = model.commits[-1].cycle + 1 - model.accepted_at
    assert model.commits[-1].kind == CommitKind.DISPATCH
    picture = (ROOT / "docs" / "pictures" / "wave-next-stage.svg").read_text()
    assert f">{cycles} cycles from BATCH_DONE to the poll head<" in picture


# ------------------------------------------------------------------------------------------------- a recording

WIDTHS = {
    "rst": 1,
    "accepted": 1,
    "req_write": 1,
    "req_addr": 16,
    "req_data": 64,
    "req_strobe": 8,
    "commit_valid": 4,
    **{f"commit_{port}": sum(FIELDS.values()) for port in range(4)},
    "twin.scheduler.level": 32,
}
Cycle = dict[str, int]


def run(base: int) -> list[Cycle]:
    """What signals are in each cycle of a bench, from its reset on; those that are left out are zero."""
    quiet = [Cycle()] * QUIET_CYCLES
    write = [
        {"accepted": 1, "req_write": 1, "req_addr": base + number, "req_strobe": 15, "twin.scheduler.level": level}
        for number, level in enumerate((0, 0, base + 2, 0))
    ]
    seat = {"commit_valid": 1, "commit_0": CommitKind.SEAT | base << 16}
    story = [write[1], {}, seat, {}, {}, write[2]]
    return [{"rst": 1}, {"rst": 1}, {}, write[0], *quiet, *story, *quiet, write[3], {}]


def record(runs: list[list[Cycle]]) -> str:
    """A recording as Verilator makes one: signals change with the clock's rise, strobes are up while it is low."""
    lines = ["$timescale 1ns $end", "$scope module bench $end", "$var wire 1 clk clk $end"]
    for name, width in WIDTHS.items():
        *scopes, last = name.split(".")
        lines += [f"$scope module {scope} $end" for scope in scopes]
        lines += [f"$var wire {width} {name} {last} {f'[{width - 1}:0] ' if width > 1 else ''}$end"]
        lines += ["$upscope $end"] * len(scopes)
    lines += ["$upscope $end", "$enddefinitions $end"]
    time = 0
    for cycle in (cycle for run in runs for cycle in run):
        values = [f"b{cycle.get(name, 0):b} {name}" for name in WIDTHS if name != "accepted"]
        lines += [f"#{time}", "1clk", *values, "b0 accepted"]
        lines += [f"#{time + 5}", "0clk", f"b{cycle.get('accepted', 0)} accepted"]
        time += 10
    return "\n".join([*lines, f"#{time}", "1clk", ""])
