"""What it costs to draw tokens, beside softmax and torch.multinomial, which draw others whenever a batch changes.

Both divide by a temperature and draw from logits as wide as the default model's; the peer has no filters, whatever the
engine's are. Time is that of the thread, so that other load on the machine matters less.

Predicted before the first run, for one thread: a row costs 0.25 ms in scaling and in the model's own log probability,
as before Gumbel numbers, 0.15 ms for its random words, and 0.1 ms to find who can win and to compare these; drawing
along cumulated probabilities took 0.3 ms for the latter two. So 0.5 ms a row, no more than before, and 1.0 with top-p,
whose sort costs half. Softmax and multinomial take 0.4 ms.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from functools import partial

import torch

from cuelight.engine.sampling import Choice, sample
from cuelight.filters import Filters

VOCABULARY = 49_152
TEMPERATURE = 0.8
FILTERS = {"": Filters(), "top_k 20": Filters(top_k=20), "top_p 0.9": Filters(top_p=0.9), "min_p": Filters(min_p=0.05)}


def main() -> None:
    """Print a line for each number of rows and each filter."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'rows':>4} {'filter':10}{'drawn':>12}{'softmax and multinomial':>28}")
    for rows in (1, 8, 64):
        logits = 3 * torch.randn(rows, VOCABULARY, generator=torch.Generator().manual_seed(rows))
        for name, filters in FILTERS.items():
            drawn_ms, peer_ms = _measure(logits, filters, options.rounds)
            print(f"{rows:4} {name:10}{drawn_ms:9.2f} ms{peer_ms:25.2f} ms", flush=True)
    print(f"load {os.getloadavg()[0]:.1f}")


def _measure(logits: torch.Tensor, filters: Filters, rounds: int) -> tuple[float, float]:
    drawn_ms, peer_ms = [], []
    for position in range(rounds):
        choices = [Choice(TEMPERATURE, seed, position, filters) for seed in range(len(logits))]
        drawn_ms.append(_took_ms(partial(sample, logits, choices)))
        peer_ms.append(_took_ms(partial(_multinomial, logits)))
    return statistics.median(drawn_ms), statistics.median(peer_ms)


def _multinomial(logits: torch.Tensor) -> torch.Tensor:
    return torch.multinomial(torch.softmax(logits / TEMPERATURE, dim=1), 1)


def _took_ms(call: Callable[[], object]) -> float:
    begun = time.thread_time()
    call()
    return 1000 * (time.thread_time() - begun)


if __name__ == "__main__":
    main()
