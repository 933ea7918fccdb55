"""The trace file: what Perfetto reads, what we read back, and the picture."""

from __future__ import annotations

import json
import struct
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from cuelight.errors import InvalidArgument
from cuelight.picture import draw_timeline
from cuelight.recording import Recording
from cuelight.timeline import build_timeline

from .recorded_run import FIRST, record_run


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "run.json"
    record_run().save(path)
    return path


def slices(path: Path) -> dict[tuple[int, int], list[dict[str, Any]]]:
    """Complete events by process and thread."""
    tracks = defaultdict(list)
    for event in json.loads(path.read_text())["traceEvents"]:
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append(event)
    return tracks


def test_a_file_reads_back_as_it_was(saved: Path) -> None:
    """Events, stage count and labels."""
    assert Recording.load(saved) == record_run()


def test_slices_of_a_track_nest(saved: Path) -> None:
    """Perfetto drops slices of one thread that overlap without nesting."""
    for track in slices(saved).values():
        open_until: list[float] = []
        for event in sorted(track, key=lambda event: (event["ts"], -event["dur"])):
            while open_until and open_until[-1] <= event["ts"]:
                open_until.pop()
            end = event["ts"] + event["dur"]
            assert not open_until or end <= open_until[-1] + 1e-6, event
            open_until.append(end)


def test_requests_and_lanes_have_their_tracks(saved: Path) -> None:
    """Named threads; passes with their stages inside."""
    events = json.loads(saved.read_text())["traceEvents"]
    names = [event["args"]["name"] for event in events if event["name"] == "thread_name"]
    assert names == ["the first", "request 0x00010001", "lane 0", "commands"]
    lane = [event["name"] for event in slices(saved)[2, 1]]
    assert lane[:4] == ["pass 1", "kv-init", "layer-1", "layer-2"]
    first = [event["name"] for event in slices(saved)[1, 1]]
    assert first[:2] == ["waits", "prefill 256 rows from 0"]
    assert first.count("decode") == 2 + 3


@pytest.mark.parametrize(
    "content",
    ["", "no JSON", "[]", "{}", '{"cuelight": 5}', '{"cuelight": {"format": 2}}', '{"cuelight": {"format": 1}}'],
)
def test_a_foreign_file_is_refused_in_a_sentence(content: str, tmp_path: Path) -> None:
    """Whatever it holds."""
    path = tmp_path / "foreign.json"
    path.write_text(content)
    with pytest.raises(InvalidArgument, match=r"foreign\.json .*\.$"):
        Recording.load(path)


def test_a_missing_file_is_refused_in_a_sentence(tmp_path: Path) -> None:
    """The system's reason is named."""
    with pytest.raises(InvalidArgument, match="No such file"):
        Recording.load(tmp_path / "none.json")


def test_a_place_that_cannot_be_written_is_refused_in_a_sentence(tmp_path: Path) -> None:
    """The trace and the picture alike."""
    with pytest.raises(InvalidArgument, match=r"run\.json can't be written \(No such file or directory\)"):
        record_run().save(tmp_path / "none" / "run.json")
    with pytest.raises(InvalidArgument, match=r"run\.png can't be written \(No such file or directory\)"):
        draw_timeline(record_run().timeline(), tmp_path / "none" / "run.png")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("events", [record_run().events, (), record_run().events[:9]], ids=["run", "empty", "cut"])
def test_a_picture_is_drawn(events: tuple[Any, ...], tmp_path: Path) -> None:
    """A PNG of a sensible size, without a warning, of a whole run and of hardly anything."""
    path = tmp_path / "run.png"
    draw_timeline(build_timeline(events, 5), path, {FIRST: "the first"})
    header = path.read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", header[16:24])
    assert width == 2160
    assert 300 < height < 1500
