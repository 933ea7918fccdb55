"""`python -m cuelight_push [NAME …]`: plays scripts and random schedules of faults, and prints what they came to."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from random import Random

from .board import Board
from .faults import play
from .scripts import SCRIPTS, cycles_to_push


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m cuelight_push", description="Plays scripts on the push side.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only scripts with this in their name")
    parser.add_argument("--schedules", type=int, default=40, help="random schedules of faults (default: 40)")
    arguments = parser.parse_args()
    chosen = {
        name: script
        for name, script in SCRIPTS.items()
        if not arguments.names or any(part in name for part in arguments.names)
    }
    failed = 0
    print("The first run on a machine compiles the push side, for some minutes.", flush=True)
    for name, script in chosen.items():
        began, board = time.monotonic(), Board(Random(name))
        try:
            script(board)
        except AssertionError as error:
            failed += 1
            traceback.print_exc(limit=-4)
            print(f"FAILED  {name}: {error}")
            continue
        print(f"ok      {name}, {board.cycle} cycles, {time.monotonic() - began:.1f} s")
    print(f"{len(chosen) - failed} scripts passed, {failed} failed")
    print(f"BATCH_DONE on the bus to the first beat of the next dispatch: {cycles_to_push(Board(Random(1)))} cycles")
    counts: Counter[str] = Counter()
    for seed in range(arguments.schedules):
        try:
            counts += play(seed)
        except AssertionError as error:
            failed += 1
            print(f"FAILED  schedule {seed}: {error}")
    print(f"{arguments.schedules} schedules of faults: {', '.join(f'{n} {what}' for what, n in counts.items())}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
