"""Decode speed with the scheduler in the loop, beside the bare engine, transformers and llama.cpp, in one run.

Cuelight, its engine and transformers run the same weights in the same dtype with the same threads. llama.cpp runs the
file those weights come from, four bits a weight, so it reads a seventh of the bytes: a gap to know, not a bar. All take
turns, so that other load on the machine meets each; a ratio is the median of the ratios of the turns.

Predicted before the first run, for two cores with nothing else to do: the bare engine is 1.6 times as fast as
transformers at 1 and at 8 requests (measured earlier). The scheduler's round through seven dispatches, at 0.1 ms each,
costs 2 % of a pass; that the lane's threads spin only for a moment costs a quarter at 1 request and little at 8. So
Cuelight should reach 1.2 and 1.5 times transformers; llama.cpp 3 times Cuelight at 1 request and 2 times at 8.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

import torch

from cuelight import LLM
from cuelight.engine.config import DTYPES
from cuelight.engine.model import Llama
from cuelight.engine.weights import DEFAULT_MODEL, fetch_gguf, resolve
from decoders import LLAMA_CPP, Engine, LlamaCpp, Scheduled, Transformers

BAR = 0.9
PEER = "transformers"
PREFILL_ROWS = 256


def main() -> None:
    """Print a line for each number of requests and each decoder, then prefill."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--dtype", choices=DTYPES, default=DTYPES[0])
    parser.add_argument("--steps", type=int, default=32, help="decode steps a turn")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--position", type=int, default=64, help="positions before the first step")
    parser.add_argument("--requests", type=int, nargs="+", default=[1, 8])
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(options.threads)
    directory, dtype = resolve(DEFAULT_MODEL), getattr(torch, options.dtype)
    engine = Engine(Llama.load(directory, dtype=dtype), options.position, options.steps)
    peer = Transformers(directory, dtype, options.position, options.steps)
    with tempfile.TemporaryDirectory() as folder, LLM.open(dtype=options.dtype, threads=options.threads) as llm:
        decoders = {
            "cuelight": Scheduled(llm, options.position, options.steps).decode,
            "its engine": engine.decode,
            PEER: peer.decode,
        }
        try:
            file = fetch_gguf(DEFAULT_MODEL, Path(folder))
            llama_cpp = LlamaCpp(file, options.threads, options.position, options.steps, max(options.requests))
            decoders["llama.cpp, Q4_1"] = llama_cpp.decode
        except ImportError:
            print(f"llama.cpp is missing here; pip install {LLAMA_CPP} for its lines")
        print(f"{options.threads} threads, {options.dtype}, from position {options.position}, {options.turns} turns")
        for requests in options.requests:
            report(f"decode, {requests} at once", take_turns(options.turns, requests, decoders), {"cuelight": BAR})
    prefills = {"its engine": engine.prefill, PEER: peer.prefill}
    report(f"prefill, {PREFILL_ROWS} rows", take_turns(options.turns, PREFILL_ROWS, prefills), {})


def take_turns(turns: int, size: int, runs: Mapping[str, Callable[[int], float]]) -> dict[str, list[float]]:
    """What each says of `size` requests or rows in each of its turns; a first one that warms up is left out."""
    rates: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(turns + 1):
        for name, run in runs.items():
            rates[name].append(run(size))
    return {name: values[1:] for name, values in rates.items()}


def report(title: str, rates: Mapping[str, list[float]], bars: Mapping[str, float]) -> None:
    """Print medians, and medians of the ratios to the peer's turns; with them how busy the machine was."""
    print(f"{title} (load {os.getloadavg()[0]:.1f})")
    for name, values in rates.items():
        ratios = [value / peer for value, peer in zip(values, rates[PEER], strict=True)]
        line = f"  {name:16} {statistics.median(values):7.1f} tokens/s   {statistics.median(ratios):5.2f} × {PEER}"
        line += f" ({min(ratios):.2f} to {max(ratios):.2f})"
        if bar := bars.get(name):
            line += f"   bar {bar:g}: {'held' if statistics.median(ratios) >= bar else 'MISSED'}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
