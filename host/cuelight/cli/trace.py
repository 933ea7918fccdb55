"""`cuelight trace`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from cuelight.recording import Recording
from cuelight.timeline import Phase, Timeline
from cuelight.trace import Event

__all__ = ["run_trace"]


def run_trace(arguments: argparse.Namespace) -> None:
    """Print a recorded run's events or a summary, or draw it."""
    recording = Recording.load(arguments.file)
    if arguments.png:
        from cuelight.picture import draw_timeline

        draw_timeline(recording.timeline(), arguments.png, recording.labels)
        print(json.dumps({"png": str(arguments.png)}) if arguments.json else f"wrote {arguments.png}")
    elif arguments.summary:
        _print_summary(recording, arguments.json)
    else:
        origin_ns = recording.events[0].time_ns if recording.events else 0
        for event in recording.events:
            print(json.dumps(event.to_dict()) if arguments.json else _line(event, origin_ns))


def _line(event: Event, origin_ns: int) -> str:
    fields = "  ".join(f"{name} {value}" for name, value in event.fields.items())
    time_ms = (event.time_ns - origin_ns) / 1e6
    return f"{time_ms:12.4f} ms  {event.kind.name:<12} lane {event.lane}  {event.id:#010x}  {fields}".rstrip()


def _print_summary(recording: Recording, as_json: bool) -> None:
    timeline = recording.timeline()
    rows = [_summarise(timeline, index, recording.labels) for index in range(len(timeline.requests))]
    if as_json:
        for row in rows:
            print(json.dumps(row))
        return
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("request", no_wrap=True, max_width=20)
    for heading in ("lane", "tier", "passes", "rows", "tokens", "first"):
        table.add_column(heading, justify="right", min_width=len(heading))
    table.add_column("end", min_width=len("cancelled"))
    for row in rows:
        first_ms = row["first_token_ms"]
        table.add_row(
            row["label"] or f"{row['id']:#010x}",
            *(str(row[name]) for name in ("lane", "tier", "passes", "prompt_rows", "tokens")),
            "" if first_ms is None else f"{first_ms:.1f} ms",
            row["end"] or "",
        )
    Console(highlight=False).print(table)


def _summarise(timeline: Timeline, index: int, labels: Mapping[int, str]) -> dict[str, Any]:
    request = timeline.requests[index]
    sampled = [bar.end_ns for bar in request.bars if bar.stage == timeline.stage_count - 1]
    chunks = {bar.pass_number: bar.rows for bar in request.bars if bar.phase is Phase.PREFILL}
    start_ns = request.admitted_ns
    return {
        "id": request.id,
        "label": labels.get(request.id),
        "lane": request.lane,
        "tier": request.tier,
        "passes": len({bar.pass_number for bar in request.bars}),
        "prompt_rows": sum(chunks.values()),
        "tokens": len(sampled),
        "first_token_ms": None if not sampled or start_ns is None else (sampled[0] - start_ns) / 1e6,
        "end": request.reason and request.reason.name.lower(),
    }
