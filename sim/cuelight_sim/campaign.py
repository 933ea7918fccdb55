"""Lockstep on many configurations, for hours: sizes, pipelines, budgets and actions by random choice.

    python -m cuelight_sim.campaign --steps 1000000 --log runs/lockstep.txt

Each line of the log is a seed: its atomic steps (commits that both models made alike), its sizes, and `agreed` or what
diverged. The same command goes on where the log
ends. `--seed N` runs one seed again, without the log, and shortens the script on which the models disagree.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from random import Random
from typing import NamedTuple

from cuelight_rtl.params import Params

from .coverage.model import Coverage
from .runs import run_random
from .steps import Divergence

__all__ = ["SIZES", "main"]

SIZES = (
    Params(slots=64, seats=16, lanes=1, stages=4),
    Params(slots=64, seats=16, lanes=2, stages=8),
    Params(slots=64, seats=16, lanes=4, stages=6),
    Params(slots=64, seats=16, lanes=8, stages=8),
    Params(slots=64, seats=256, lanes=2, stages=128),
    Params(slots=128, seats=32, lanes=3, stages=5),
    Params(slots=256, seats=64, lanes=5, stages=16),
    Params(slots=1024, seats=64, lanes=2, stages=128),
    Params(slots=4096, seats=16, lanes=1, stages=32),
    Params(slots=4096, seats=256, lanes=8, stages=128),
)
"""Sizes to draw from; they are few because each has to be compiled."""
_ACTIONS = 2000
"""Of a seed: a life of the device. An action is several writes; a commit or more follow from each."""
_AGREED = "agreed"


class _Outcome(NamedTuple):
    """A line of the log."""

    seed: int
    steps: int
    sizes: str
    result: str

    def __str__(self) -> str:
        return f"{self.seed} {self.steps} {self.sizes} {self.result}"

    @classmethod
    def of(cls, line: str) -> _Outcome:
        seed, steps, sizes, result = line.split(maxsplit=3)
        return cls(int(seed), int(steps), sizes, result)


def _sizes_of(seed: int) -> Params:
    return Random(seed).choice(SIZES)


def _run(seed: int, coverage: Coverage, *, shortest: bool) -> _Outcome:
    params = _sizes_of(seed)
    before, result = coverage.commits, _AGREED
    try:
        run_random(seed, _ACTIONS, params, coverage, shortest=shortest)
    except (Divergence, TimeoutError) as error:
        if shortest:
            raise
        result = str(error).partition("\n")[0]
    return _Outcome(seed, coverage.commits - before, params.tag, result)


def _run_all(steps: int, log: Path, first: int) -> bool:
    """Runs seeds until the log has so many steps; whether all of them agreed."""
    log.parent.mkdir(parents=True, exist_ok=True)
    outcomes = [_Outcome.of(line) for line in log.read_text().splitlines()] if log.exists() else []
    coverage = Coverage()
    began, since = time.monotonic(), sum(outcome.steps for outcome in outcomes)
    done, seed = since, max((outcome.seed + 1 for outcome in outcomes), default=first)
    while done < steps:
        outcome = _run(seed, coverage, shortest=False)
        with log.open("a") as lines:
            lines.write(f"{outcome}\n")
        outcomes.append(outcome)
        done, seed = done + outcome.steps, seed + 1
        pace = (done - since) / (time.monotonic() - began)
        left = max(0, steps - done) / pace / 60
        print(f"{done:,} of {steps:,} steps, {pace:.0f} a second, {left:.0f} min left; {outcome}", flush=True)
    print(f"never reached: {'; '.join(coverage.missing) or 'nothing'}")
    bad = [outcome for outcome in outcomes if outcome.result != _AGREED]
    print(f"{len(outcomes)} seeds, {done:,} steps, {len(bad)} diverged", *bad, sep="\n")
    return not bad


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m cuelight_sim.campaign", description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000_000, help="atomic steps of all seeds (default: a million)")
    parser.add_argument("--log", type=Path, default=Path("runs/lockstep.txt"), help="where seeds are noted")
    parser.add_argument("--first", type=int, default=1, help="first seed of a new log")
    parser.add_argument("--seed", type=int, help="run this one only, and shorten what diverges")
    arguments = parser.parse_args()
    if arguments.seed is not None:
        print(_run(arguments.seed, Coverage(), shortest=True))
        return 0
    return 0 if _run_all(arguments.steps, arguments.log, arguments.first) else 1


if __name__ == "__main__":
    sys.exit(main())
