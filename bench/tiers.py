"""A VIP's time to first token while best-effort requests keep the lane busy, beside that on an idle device.

The default model on the CPU lane, through `LLM`: 32 best-effort requests decode, then 200 more are queued besides.
VIPs come one at a time, at random moments. Measured from the call of `generate` to the first piece of text; the
device's trace tells which part was waiting and which was the VIP's own pass. Conditions take turns, so that other
load on the machine meets all of them.

Predicted before the first run, for two cores with nothing else to do. Idle, a pass of 36 rows takes 0.1 s; a decode
pass of 32 rows takes 0.2 s. While one pass is alive a VIP waits for its end, half of it in the median, and then
shares a pass with 31 others: 0.35 s in the median, 0.45 s at p99, 4 to 5 times the idle one. Queued requests change
nothing. With a second pass a VIP would wait for the stages that are dispatched already: two at depth 2, one at depth
1, 0.03 s each. That makes 1.7 times and 1.4 times at p99, but only where it finds a seat: in a full house it waits
for the loop point.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import statistics
import time
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from cuelight import LLM, Tier, regmap
from cuelight.engine.config import LAYERS_PER_STAGE, block_positions, blocks_for, load_config, stage_count
from cuelight.request import Request
from cuelight.tiers import TIERS
from cuelight.timeline import build_timeline

BAR = 2.0
DECODING, QUEUED = 32, 200
CROWD = {
    "nobody": (0, 0),
    f"{DECODING} best-effort": (DECODING, 0),
    f"{DECODING + QUEUED} best-effort": (DECODING, QUEUED),
}
PROMPT = [{"role": "user", "content": "What does a cue light tell the crew?"}]
DECODING_TOKENS, QUEUED_TOKENS = 1000, 100
CROWD_PROMPT = 16
LONGEST_REST_S = 0.3
TIMEOUT_S = 120.0


class Wait(NamedTuple):
    """Parts of a time to first token, in ms."""

    total: float
    before: float
    """From the call to the device's admission."""
    queued: float
    """From admission to the first stage of its pass."""
    run: float
    """Its passes, until the last stage of the one that samples was complete."""
    after: float
    """Until text was there."""


def main() -> None:
    """Print a line for each condition."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--samples", type=int, default=100, help="VIPs in each condition")
    parser.add_argument("--rounds", type=int, default=4, help="turns that each condition takes")
    parser.add_argument("--depth", type=int, choices=(1, 2), default=2, help="dispatches the lane holds at most")
    parser.add_argument("--layers-per-stage", type=int, default=LAYERS_PER_STAGE)
    parser.add_argument("--seat-floor", type=int, default=1, help="seats that best-effort requests leave free")
    options = parser.parse_args()
    random = Random(1)
    waits: dict[str, list[Wait]] = {name: [] for name in CROWD}
    with open_model(options.seat_floor, options.depth, options.layers_per_stage) as llm:
        print(
            f"{options.samples} VIPs each, {DECODING} seats and {options.seat_floor} left free, depth {options.depth}, "
            f"{options.layers_per_stage} layers a stage; load {os.getloadavg()[0]:.1f}"
        )
        measure_one(llm)
        for _ in range(options.rounds):
            for name, sizes in CROWD.items():
                with crowd(llm, *sizes):
                    for _ in range(options.samples // options.rounds):
                        time.sleep(random.uniform(0, LONGEST_REST_S))
                        waits[name].append(measure_one(llm))
    report(waits)


@contextlib.contextmanager
def open_model(seat_floor: int, depth: int, layers_per_stage: int) -> Iterator[LLM]:
    """The default model with KV cache for everybody."""
    positions = DECODING * (CROWD_PROMPT + DECODING_TOKENS + 128) + (QUEUED + 1) * 128
    tiers = [Tier()] * TIERS["best-effort"] + [Tier(seat_floor=seat_floor)]
    with LLM.open(kv_positions=positions, context=2048, layers_per_stage=layers_per_stage, tiers=tiers) as llm:
        config = load_config(llm.directory)
        llm.device.configure(
            stages=stage_count(config, layers_per_stage),
            kv_blocks=blocks_for(config, positions),
            block_positions=block_positions(config),
            seats=DECODING + seat_floor,
            depth=depth,
        )
        yield llm


@contextlib.contextmanager
def crowd(llm: LLM, decoding: int, queued: int) -> Iterator[None]:
    """Best-effort requests for as long as the block lasts; begins when `decoding` of them decode."""
    requests: list[Request] = []

    def submit(count: int, tokens: int) -> None:
        for _ in range(count):
            start = 1000 + CROWD_PROMPT * len(requests)
            prompt = range(start, start + CROWD_PROMPT)
            requests.append(llm.device.submit(list(prompt), tokens, tier=TIERS["best-effort"], ignore_eos=True))

    try:
        submit(decoding, DECODING_TOKENS)
        for request in requests:
            next(request.tokens(TIMEOUT_S))
        submit(queued, QUEUED_TOKENS)
        yield
        if ended := sum(request.done for request in requests[:decoding]):
            raise SystemExit(f"{ended} of the best-effort requests ended meanwhile; measure fewer VIPs in a turn")
    finally:
        for request in requests:
            request.cancel()
        for request in requests:
            request.wait(TIMEOUT_S)


def measure_one(llm: LLM) -> Wait:
    """One VIP, from the call to its end."""
    llm.device.trace()
    called_ns = time.monotonic_ns()
    stream = llm.generate(PROMPT, 1, temperature=0.0, tier=TIERS["vip"])
    next(stream.pieces(TIMEOUT_S))
    seen_ns = time.monotonic_ns()
    stream.request.wait(TIMEOUT_S)
    stages = llm.device.transport.read32(regmap.CONTROL + regmap.Control.STAGE_COUNT)
    timeline = build_timeline(llm.device.trace(), stages)
    row = next(row for row in timeline.requests if row.id == stream.request.id)
    first_token = next(bar for bar in row.bars if bar.stage == stages - 1)
    assert row.admitted_ns is not None
    steps = (row.admitted_ns, row.bars[0].start_ns, first_token.end_ns)
    marks = (called_ns, *(timeline.origin_ns + at for at in steps))
    parts = [(later - sooner) / 1e6 for sooner, later in zip(marks, (*marks[1:], seen_ns), strict=True)]
    return Wait((seen_ns - called_ns) / 1e6, *parts)


def report(waits: dict[str, list[Wait]]) -> None:
    """Medians and p99 in ms, the ratio of the p99s, and medians of the parts."""
    print(f"{'beside':20}{'median':>8}{'p99':>8}{'× idle':>8}   {'before':>8}{'queued':>8}{'own pass':>9}{'after':>8}")
    idle = quantile(waits["nobody"], 0.99)
    for name, values in waits.items():
        p99 = quantile(values, 0.99)
        line = f"{name:20}{quantile(values, 0.5):8.0f}{p99:8.0f}{p99 / idle:8.2f}   "
        parts = (statistics.median(wait[part] for wait in values) for part in range(1, 5))
        line += "".join(f"{part:{width}.1f}" for part, width in zip(parts, (8, 8, 9, 8), strict=True))
        if name != "nobody":
            line += f"   bar {BAR:g}: {'held' if p99 <= BAR * idle else 'MISSED'}"
        print(line)
    print(f"all in ms; parts are medians; load {os.getloadavg()[0]:.1f}")


def quantile(waits: list[Wait], share: float) -> float:
    """The smallest total that at least `share` of them do not exceed."""
    ordered = sorted(wait.total for wait in waits)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


if __name__ == "__main__":
    main()
