"""`cuelight demo`: three chats that share passes, their figures, and a picture of the run."""

from __future__ import annotations

import argparse
import os
import queue
import statistics
import threading
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from cuelight.cli.opening import open_llm
from cuelight.cli.progress import show_progress
from cuelight.cli.screen import open_screen
from cuelight.errors import CuelightError, InvalidArgument, Timeout
from cuelight.llm import LLM
from cuelight.recording import Recording
from cuelight.stream import Stream
from cuelight.timeline import Timeline

__all__ = ["run_demo"]

PROMPTS = (
    "Why is the sky blue?",
    "Describe a morning by the sea.",
    "How do plants make their food?",
)
NAMES = ("A", "B", "C")
JOIN_AFTER = 12
"""Tokens of a chat after which the next one joins."""


def run_demo(arguments: argparse.Namespace) -> None:
    """Run the chats and write `demo.png` and `demo.json`."""
    console = Console(highlight=False)
    folder = _make_folder(arguments.out)
    with show_progress() as progress:
        llm = open_llm(arguments, progress)
    with llm:
        streams = _chat(llm, console, arguments.max_new_tokens, arguments.timeout)
        labels = {stream.request.id: title for stream, title in zip(streams, _titles(), strict=True)}
        recording = Recording(tuple(llm.device.trace()), llm.device.status().stages, labels)
    timeline = recording.timeline()
    console.print()
    _print_figures(console, streams, timeline)
    picture, trace = folder / "demo.png", folder / "demo.json"
    from cuelight.picture import draw_timeline

    draw_timeline(timeline, picture, labels)
    recording.save(trace)
    console.print(f"\n[bold]picture[/]  {picture}", soft_wrap=True)
    console.print(f"[bold]trace[/]    {trace} [dim](opens in Perfetto: ui.perfetto.dev)[/]", soft_wrap=True)


def _make_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidArgument(f"{folder} can't be made ({error.strerror}); name another folder with --out.") from error
    if not os.access(folder, os.W_OK):
        raise InvalidArgument(f"{folder} can't be written to; name another folder with --out.")
    return folder


def _titles() -> list[str]:
    return [f"{name}: {prompt}" for name, prompt in zip(NAMES, PROMPTS, strict=True)]


def _chat(llm: LLM, console: Console, max_new_tokens: int, timeout_s: float) -> list[Stream]:
    """Run the chats, each joining while the one before is under way; show their texts."""
    streams: list[Stream] = []
    arrivals: queue.SimpleQueue[tuple[int, str | CuelightError | None]] = queue.SimpleQueue()

    def follow(index: int) -> None:
        try:
            for piece in streams[index].pieces(timeout_s):
                arrivals.put((index, piece))
            arrivals.put((index, None))
        except CuelightError as error:
            arrivals.put((index, error))

    with open_screen(console, _titles()) as screen:
        running = 0
        while running or len(streams) < len(PROMPTS):
            if len(streams) < len(PROMPTS) and (not streams or _is_under_way(streams[-1])):
                messages = [{"role": "user", "content": PROMPTS[len(streams)]}]
                streams.append(llm.generate(messages, max_new_tokens, timeout_s=timeout_s))
                threading.Thread(target=follow, args=(len(streams) - 1,), daemon=True).start()
                running += 1
            try:
                # Each follower waits `timeout_s` for a token and then reports.
                index, arrival = arrivals.get(timeout=2 * timeout_s)
            except queue.Empty:
                raise Timeout(f"No chat went on within {2 * timeout_s:g} s; allow more with --timeout.") from None
            if isinstance(arrival, CuelightError):
                raise arrival
            if arrival is None:
                running -= 1
                screen.end(index, _describe_end(streams[index]))
            else:
                screen.add(index, arrival)
    return streams


def _is_under_way(stream: Stream) -> bool:
    return stream.request.done or len(stream.request.received) >= JOIN_AFTER


def _describe_end(stream: Stream) -> str:
    return f"{stream.metrics.new_tokens} tokens, {(stream.finish or 'failed').replace('_', ' ')}"


def _print_figures(console: Console, streams: Sequence[Stream], timeline: Timeline) -> None:
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("chat")
    for heading in ("prompt", "tokens", "first token", "between", "slowest", "decisions", "cycles each"):
        table.add_column(heading, justify="right")
    rows = {row.id: row for row in timeline.requests}
    for name, stream in zip(NAMES, streams, strict=True):
        metrics = stream.metrics
        cycles = [bar.decision_cycles for bar in rows[stream.request.id].bars]
        table.add_row(
            name,
            str(metrics.prompt_tokens),
            str(metrics.new_tokens),
            _milliseconds(metrics.ttft_s),
            _milliseconds(metrics.median_itl_s),
            _milliseconds(max(metrics.itl_s, default=None)),
            str(len(cycles)),
            _mean(cycles),
        )
    runs = [run for one in timeline.passes for run in one.stages]
    total = str(sum(stream.metrics.new_tokens for stream in streams))
    cycles = [run.decision_cycles for run in runs]
    table.add_row("all", "", total, "", "", "", str(len(runs)), _mean(cycles))
    console.print(table)
    shared = sum(one.decode_rows + one.chunks > 1 for one in timeline.passes)
    console.print(
        f"[dim]A decision is a stage the device had a lane run for everyone in a pass: {shared} of "
        f"{len(timeline.passes)} passes were shared. Latencies are medians and maxima as the driver saw them.[/]"
    )


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1000:.1f} ms"


def _mean(values: Sequence[int]) -> str:
    return f"{statistics.mean(values):.1f}" if values else ""
