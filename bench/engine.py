"""Decode speed of the engine beside transformers, on the default model; `python bench/engine.py --help`.

Both run the same weights in the same dtype with the same threads, taking turns, so that other load on the machine meets
both.
Bandwidth is that of reading all weights once a step, which is what bounds decode at few rows.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cuelight.engine.batch import Batch, Span
from cuelight.engine.cache import KvCache
from cuelight.engine.config import DTYPES, blocks_for
from cuelight.engine.model import Llama
from cuelight.engine.weights import DEFAULT_MODEL, resolve


def main() -> None:
    """Print one line for each number of requests, and one for prefill."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--dtype", choices=DTYPES, default=DTYPES[0])
    parser.add_argument("--steps", type=int, default=32, help="decode steps a turn")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--position", type=int, default=64, help="positions before the first step")
    parser.add_argument("--requests", type=int, nargs="+", default=[1, 4, 16])
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(options.threads)
    directory = resolve(DEFAULT_MODEL)
    started = time.perf_counter()
    dtype = getattr(torch, options.dtype)
    model = Llama.load(directory, dtype=dtype)
    print(f"load {time.perf_counter() - started:.2f} s, {options.threads} threads, {options.dtype}")
    peer = _peer(directory, dtype)
    bytes_a_step = sum(weight.nbytes for weight in peer.parameters())
    for requests in options.requests:
        ours, theirs = _alternate(
            options.turns,
            _decode(model, requests, options.position, options.steps),
            _decode_peer(peer, requests, options.position, options.steps),
        )
        rate, peer_rate = requests * options.steps / ours, requests * options.steps / theirs
        print(
            f"decode, {requests:2} requests at position {options.position}: {rate:6.1f} tokens/s, "
            f"{bytes_a_step * options.steps / ours / 1e9:4.1f} GB/s; transformers {peer_rate:6.1f}; "
            f"ratio {rate / peer_rate:.2f}"
        )
    rows = 256
    ours, theirs = _alternate(options.turns, _decode(model, 1, 0, 1, rows), _decode_peer(peer, 1, 0, 1, rows))
    rate, peer_rate = rows / ours, rows / theirs
    print(f"prefill, {rows} rows: {rate:6.1f} tokens/s; transformers {peer_rate:6.1f}; ratio {rate / peer_rate:.2f}")


def _alternate(turns: int, ours: Callable[[], float], theirs: Callable[[], float]) -> tuple[float, float]:
    pairs = [(ours(), theirs()) for _ in range(turns + 1)][1:]
    return statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs)


def _decode(model: Llama, requests: int, position: int, steps: int, rows: int = 1) -> Callable[[], float]:
    config = model.config
    count = blocks_for(config, position + steps * rows)
    tables = np.arange(requests * count, dtype=np.int32).reshape(requests, count)
    cache = KvCache(config, requests * count, model.dtype)

    def step(start: int, tokens: Any) -> torch.Tensor:
        spans = [Span(tokens[at], start, table) for at, table in enumerate(tables)]
        batch = Batch(spans, config)
        hidden = model.run_layers(model.embed(batch), range(config.layers), batch, cache)
        return model.logits(hidden[batch.last_rows]).argmax(dim=1)

    def turn() -> float:
        tokens = np.full((requests, rows), 100, np.int32)
        started = time.perf_counter()
        for at in range(steps):
            tokens = np.broadcast_to(step(position + at * rows, tokens).numpy()[:, None].astype(np.int32), tokens.shape)
        return time.perf_counter() - started

    return turn


def _peer(directory: Path, dtype: torch.dtype) -> Any:
    from transformers import LlamaForCausalLM

    os.environ.setdefault("TQDM_DISABLE", "1")
    return LlamaForCausalLM.from_pretrained(directory, dtype=dtype)


def _decode_peer(peer: Any, requests: int, position: int, steps: int, rows: int = 1) -> Callable[[], float]:
    from transformers import DynamicCache

    @torch.inference_mode()
    def turn() -> float:
        cache = DynamicCache(config=peer.config)
        if position:
            peer(torch.full((requests, position), 100), past_key_values=cache, logits_to_keep=1)
        tokens = torch.full((requests, rows), 100)
        started = time.perf_counter()
        for _ in range(steps):
            logits = peer(tokens, past_key_values=cache, logits_to_keep=1).logits
            tokens = logits[:, -1:].argmax(dim=2).expand(requests, rows)
        return time.perf_counter() - started

    return turn


if __name__ == "__main__":
    main()
