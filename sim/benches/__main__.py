"""`make sim`: runs benches side by side and says at the end what was tested.

python -m benches [--sim icarus|verilator] [--bench NAME] [--only REGEX] [--seed N] [--waves] [--full]
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from .build import SIMULATORS, build
from .report import lines_by_size, missing, show_bins, show_lines, summarize
from .run import BENCHES, SMALL, Result, run

_FOLDER = Path(__file__).parents[2] / "build" / "sim"
_STEPS = {"random": 600, "pcie_requests": 300, "pcie_faults": 8}
"""Of random benches: actions, requests, and schedules of faults."""
_ICARUS_STEPS = 100
_FULL_STEPS = {"random": 2000, "pcie_requests": 1000, "pcie_faults": 30}
_FULL_SEEDS = 10


class Job(NamedTuple):
    """One simulation."""

    simulator: str
    name: str
    seed: int
    steps: int
    lines: bool


def main() -> int:
    options = _parse()
    simulators = [options.sim] if options.sim else [sim for sim in SIMULATORS if sim != "icarus" or _has_icarus()]
    jobs = list(_jobs(simulators, options))
    for simulator, design, lines in dict.fromkeys((job.simulator, BENCHES[job.name], job.lines) for job in jobs):
        params, socket = design
        print(f"building {simulator} {socket} {params.tag}{' with line coverage' if lines else ''}", flush=True)
        build(simulator, socket, params, waves=options.waves, lines=lines)
    results: dict[Job, Result] = {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        futures = {pool.submit(_run, job, options.waves, options.only): job for job in jobs}
        for future in as_completed(futures):
            job = futures[future]
            if (result := _outcome(job, future)) is not None:
                results[job] = result
    reached = sum((result.coverage for result in results.values()), Counter[str]())
    complete = not options.bench and not options.only
    if complete:
        show_bins(reached)
    branches = lines_by_size((BENCHES[job.name].params, result.lines) for job, result in results.items())
    if complete:
        show_lines(branches, _FOLDER / "lines.txt")
    summarize([(job.simulator, result) for job, result in results.items()], reached, branches)
    failed = len(results) < len(jobs) or any(result.failed for result in results.values())
    return int(failed or (complete and bool(missing(reached))))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make sim", description=__doc__.splitlines()[0])
    parser.add_argument("--sim", choices=SIMULATORS, help="simulator; both where it is left out")
    parser.add_argument("--bench", choices=sorted(BENCHES), help="module; all where it is left out")
    parser.add_argument("--only", help="regular expression for the names of benches to run")
    parser.add_argument("--seed", type=int, default=1, help="makes every random choice repeatable")
    parser.add_argument("--waves", action="store_true", help="write waveforms")
    parser.add_argument("--full", action="store_true", help="millions of random cycles")
    return parser.parse_args()


def _has_icarus() -> bool:
    if shutil.which("iverilog"):
        return True
    print("Icarus Verilog is not installed, so the benches run on Verilator only; to have it: make sim SIM=icarus")
    return False


def _jobs(simulators: list[str], options: argparse.Namespace) -> Iterator[Job]:
    names = [options.bench] if options.bench else list(BENCHES)
    for simulator in simulators:
        for name in names:
            if not options.bench and simulator not in _simulators(name):
                continue
            full = name in _FULL_STEPS and options.full and simulator == "verilator"
            steps = _ICARUS_STEPS if simulator == "icarus" else (_FULL_STEPS if full else _STEPS).get(name, 0)
            for seed in range(options.seed, options.seed + (_FULL_SEEDS if full else 1)):
                lines = simulator == "verilator" and BENCHES[name] == SMALL
                yield Job(simulator, name, seed, steps, lines)


def _simulators(name: str) -> tuple[str, ...]:
    """On which ones a bench runs unless it is named."""
    # Icarus does 200 cycles a second with the hard block's model.
    return ("verilator",) if BENCHES[name].socket == "pcie" else ("verilator", "icarus")


def _run(job: Job, waves: bool, only: str | None) -> tuple[Result, float]:
    start = time.monotonic()
    result = run(
        job.simulator,
        job.name,
        _FOLDER / job.simulator,
        seed=job.seed,
        steps=job.steps,
        waves=waves,
        lines=job.lines,
        only=only,
    )
    return result, time.monotonic() - start


def _outcome(job: Job, future: Future[tuple[Result, float]]) -> Result | None:
    title = f"{job.simulator:<9} {job.name:<12}" + (f" seed {job.seed}" if job.name in _STEPS else "")
    try:
        result, seconds = future.result()
    except RuntimeError as error:
        print(f"BROKEN  {title}: {error}", flush=True)
        return None
    verdict = "FAILED" if result.failed else "ok"
    counts = f"{len(result.passed):>3} benches {result.cycles:>9,} cycles {seconds:6.1f} s"
    print(f"{verdict:<7} {title:<30} {counts}", flush=True)
    for name in result.failed:
        print(f"        {name}: see {result.log}")
    return result


if __name__ == "__main__":
    sys.exit(main())
