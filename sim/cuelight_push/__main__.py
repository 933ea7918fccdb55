"""`python -m cuelight_push [NAME …]`: plays scripts and random schedules of faults, and prints what they came to."""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from random import Random

from rich.console import Console
from rich.table import Table

from cuelight_rtl.build import BuildError

from .board import Board
from .schedule import attempt
from .scripts import SCRIPTS, cycles_to_push
from .tally import Tally

_CHUNK = 5
_ENOUGH = 400
"""Schedules among which everything happens that is counted."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m cuelight_push", description="Plays scripts on the push side.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only scripts with this in their name")
    parser.add_argument("--schedules", type=int, default=40, help="random schedules of faults (default: 40)")
    parser.add_argument("--first", type=int, default=0, help="seed of the first one (default: 0)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="schedules side by side (default: one a core)")
    arguments = parser.parse_args()
    began = time.monotonic()
    try:
        cycles = cycles_to_push(Board(Random(1)))
    except BuildError as trouble:
        print(trouble)
        return 2
    print(f"The endpoint is compiled, or found compiled, in {time.monotonic() - began:.0f} s.")
    failed = _play_scripts(arguments.names)
    print(f"BATCH_DONE on CQ to the first beat of the next dispatch on RQ: {cycles} cycles", flush=True)
    if not arguments.schedules:
        return int(failed > 0)
    began, total = time.monotonic(), Tally()
    seeds = range(arguments.first, arguments.first + arguments.schedules)
    # Not forked: the compiled model has a thread.
    with ProcessPoolExecutor(arguments.jobs, get_context("spawn")) as workers:
        for seed, (tally, error) in zip(seeds, workers.map(attempt, seeds, chunksize=_CHUNK), strict=True):
            total.add(tally)
            if error:
                failed += 1
                print(f"FAILED  schedule {seed}: {error}", flush=True)
    missing = _show(total)
    seconds = time.monotonic() - began
    print(f"{len(seeds)} schedules of faults, {total.cycles:,} cycles, {seconds:.0f} s; {failed} failures")
    if missing:
        print(f"This never happened: {', '.join(missing)}.")
    return int(failed > 0 or (bool(missing) and len(seeds) >= _ENOUGH))


def _play_scripts(names: list[str]) -> int:
    """Returns how many fail."""
    chosen = {name: script for name, script in SCRIPTS.items() if not names or any(part in name for part in names)}
    failed = 0
    for name, script in chosen.items():
        board = Board(Random(name))
        try:
            script(board)
        except AssertionError as error:
            failed += 1
            traceback.print_exc(limit=-4)
            print(f"FAILED  {name}: {error}")
            continue
        print(f"ok      {name}, {board.cycle} cycles")
    print(f"{len(chosen) - failed} scripts passed, {failed} failed")
    return failed


def _show(total: Tally) -> list[str]:
    """Prints how often everything happened; returns what never did."""
    table = Table(box=None, pad_edge=False)
    for heading in ("what", "times"):
        table.add_column(heading, justify="right" if heading == "times" else "left")
    missing = []
    for kind, rows in total.rows().items():
        table.add_section()
        table.add_row(f"[bold]{kind}[/]")
        for name, times in rows.items():
            table.add_row(f"  {name}", f"{times:,}")
            missing += [name] * (not times)
    Console(width=100).print(table)
    return missing


if __name__ == "__main__":
    sys.exit(main())
