"""How long nobody gets a token after a lane process was killed: with a process that stands by, and without.

Four answers are under way when the lane is killed. Beside the wall clock stands the processor time that the new lane
took from then on up to its first token: that does not depend on who else uses the machine.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from cuelight import LLM
from cuelight.engine.weights import DEFAULT_MODEL

BAR_S = 5.0
REQUESTS = 4
WAIT_S = 120.0
TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--times", type=int, default=5, help="how often to kill the lane in each mode")
    arguments = parser.parse_args()
    for spare in (True, False):
        with LLM.open(arguments.model, spare=spare) as llm:
            gaps, costs = zip(*(kill(llm, spare) for _ in range(arguments.times)), strict=True)
        mode = "a process stands by" if spare else "started from nothing"
        print(
            f"{mode:<21} {statistics.median(gaps):5.2f} s without a token, {max(gaps):5.2f} s at most; bar {BAR_S:g} s"
        )
        print(f"{'':<21} {statistics.median(costs):5.2f} s of processor time")


def kill(llm: LLM, spare: bool) -> tuple[float, float]:
    """Kill the lane; seconds until the next token, and the new lane's processor time from the kill on."""
    waiting = await_spare(llm) if spare else 0
    begun_s = processor_s(waiting) if waiting else 0.0
    requests = [
        llm.device.submit(llm.encode(f"Tell me about the number {number}."), 400, ignore_eos=True)
        for number in range(REQUESTS)
    ]
    until(lambda: all(len(request.received) > 4 for request in requests))
    old = llm.lanes[0].pid
    killed_ns = time.monotonic_ns()
    os.kill(old, signal.SIGKILL)
    # What it had posted is taken first.
    time.sleep(0.05)
    seen = [len(request.received) for request in requests]
    until(lambda: any(len(request.received) > count for request, count in zip(requests, seen, strict=True)))
    fresh = llm.lanes[0].pid
    cost_s = processor_s(fresh) - (begun_s if fresh == waiting else 0.0)
    firsts = [
        one.received[count].time_ns for one, count in zip(requests, seen, strict=True) if len(one.received) > count
    ]
    for request in requests:
        request.cancel()
        request.wait(WAIT_S)
    return (min(firsts) - killed_ns) / 1e9, cost_s


def await_spare(llm: LLM) -> int:
    """Process that stands by, once it has loaded its code and sleeps."""
    until(lambda: llm._crew._spare is not None)
    assert llm._crew._spare
    pid = llm._crew._spare.pid
    before = -1.0
    while (now := processor_s(pid)) != before:
        before = now
        time.sleep(2.0)
    return pid


def processor_s(pid: int) -> float:
    """Processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that must come."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


if __name__ == "__main__":
    main()
