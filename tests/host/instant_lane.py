"""The lane for tests as a process: started as a CPU lane is, but loads no torch and no model."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path

from cuelight.lanes.port import LanePort
from cuelight.lanes.process import LaneProcess
from cuelight.lanes.types import Dispatch

from .lane import STAGES, Answers, Died

__all__ = ["BLOCKS", "POISON", "POSITIONS", "InstantLaneProcess", "prepare"]

BLOCKS, POSITIONS = 320, 16
PACE_S = 0.001
POISON = 5000
"""A prompt with this token kills the lane."""


class InstantLaneProcess(LaneProcess):
    program: tuple[str, ...] = ("-m", "tests.host.instant_lane")


def prepare(_: object = None) -> LaneProcess:
    """Start one."""
    return InstantLaneProcess(Path(), stages=STAGES, blocks=BLOCKS)


def go_slowly(_: Dispatch) -> None:
    """So that requests live for a while."""
    time.sleep(PACE_S)


def die(_: Dispatch) -> None:
    raise Died


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--blocks", type=int)
    parser.add_argument("--broken", action="store_true")
    options, _ = parser.parse_known_args()
    if not (place := sys.stdin.readline()):
        return 0
    where = json.loads(place)
    with LanePort(where["segment"], where["lane"]) as port:
        print(json.dumps({"ready": True}), flush=True)
        lane = Answers(port, options.blocks, POSITIONS, die if options.broken else go_slowly)
        lane.poison = frozenset({POISON})
        try:
            lane.serve()
        except Died:
            os.kill(os.getpid(), signal.SIGKILL)
    return 0


if __name__ == "__main__":
    sys.exit(main())
