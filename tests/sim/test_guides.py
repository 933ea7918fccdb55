"""What the guides show: their programs run as they stand, their change of policy fits, their pictures are there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from cuelight.regmap import CommitKind
from draw.draw_waveforms import TITLES
from draw.loop_point import run

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GUIDES = ("rtl", "inference", "policy")
PROGRAMS = {
    (guide, number): program
    for guide in GUIDES
    for number, program in enumerate(
        re.findall(r"^```python\n(.*?)^```", (DOCS / f"{guide}.md").read_text(), re.DOTALL | re.MULTILINE)
    )
}
SAID = {
    ("rtl", 0): r"   64 slots: .*\n 1024 slots:  24\.3 KiB, most of it in core\.slots, memory\n 4096 slots: .*\n",
    ("rtl", 1): r"(?s).*ADMIT.*SEAT.*PLAN.*CHUNK.*FORM.*DISPATCH.*",
    ("inference", 0): r"Tier\(min_seats=4, min_rows=64, kv_floor=128, seat_floor=4\)\n",
    ("policy", 0): r"seed 1: 142 pauses.* 3\.5 s\nseed 2: 96 .* 5\.5 s\nseed 3: 153 .* 2\.6 s\nseed 4: 140 .* 4\.7 s\n",
    ("policy", 1): r"( ?\d+ seats: a chat waits \d+ ms at most, \d+ pauses\n){3}",
}
WAVES = {f"wave-{bench.replace('_', '-')}.svg" for bench in TITLES}
DRAWN = {
    f"{path.stem.removeprefix('draw_').replace('_', '-')}.png"
    for path in (DOCS / "draw").glob("draw_*.py")
    if path.stem != "draw_waveforms"
}


@pytest.mark.parametrize(("guide", "number"), PROGRAMS)
def test_programs_run_as_they_stand(guide: str, number: int, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(PROGRAMS[guide, number], f"{guide}.md, program {number}", "exec"), {})
    assert re.fullmatch(SAID[guide, number], capsys.readouterr().out)


def test_the_change_of_policy_fits_the_files_it_changes() -> None:
    (diff,) = re.findall(r"^```diff\n(.*?)^```", (DOCS / "policy.md").read_text(), re.DOTALL | re.MULTILINE)
    assert re.findall(r"^\+\+\+ b/(\w+)/", diff, re.MULTILINE) == ["docs", "sim", "rtl"]
    check = ["git", "apply", "--check", "--verbose"]
    result = subprocess.run(check, input=diff, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr


def test_the_loop_point_takes_the_cycles_that_the_guide_names() -> None:
    steps = [(CommitKind(commit.kind).name, commit.cycle) for commit in run().commits]
    assert steps == [
        ("COMPLETE", 1),
        ("LOOP_POINT", 3),
        ("RETIRE", 8),
        ("ADVANCE", 12),
        ("SEAT", 21),
        ("PLAN", 23),
        ("CHUNK", 28),
        ("FORM", 29),
        ("DISPATCH", 30),
        ("DISPATCH", 31),
    ]


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(((?!https?:)[^)#]+)", page.read_text())
    assert not [link for link in links if not (DOCS / link).exists()]


def test_every_picture_is_shown_and_small() -> None:
    pages = "".join(path.read_text() for path in DOCS.glob("*.md"))
    assert {path.name for path in (DOCS / "pictures").iterdir()} == {"demo.png", "top.png", *DRAWN, *WAVES}
    for name in DRAWN | WAVES:
        assert f"(pictures/{name})" in pages
        assert (DOCS / "pictures" / name).stat().st_size < 300_000
