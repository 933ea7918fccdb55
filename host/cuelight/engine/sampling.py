"""Choosing tokens: greedy or by temperature, with random numbers that depend on seed and position only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

__all__ = ["Choice", "philox", "sample", "uniform"]

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_WORD = 0xFFFFFFFF


class Choice(NamedTuple):
    """How one row is sampled.

    Parameters
    ----------
    temperature
        0 takes the likeliest token, the lowest id among equals.
    seed
        64 bits.
    position
        Position in its sequence of the token to be chosen.
    """

    temperature: float
    seed: int
    position: int


def philox(counter: Sequence[int], key: Sequence[int]) -> tuple[int, int, int, int]:
    """Philox4x32-10, a counter-based generator.

    Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.

    Parameters
    ----------
    counter
        Four 32-bit words.
    key
        Two 32-bit words.
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        product0, product1 = _MULTIPLIERS[0] * c0, _MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (product1 >> 32) ^ c1 ^ k0, product1 & _WORD, (product0 >> 32) ^ c3 ^ k1, product0 & _WORD
        k0, k1 = (k0 + _KEY_STEPS[0]) & _WORD, (k1 + _KEY_STEPS[1]) & _WORD
    return c0, c1, c2, c3


def uniform(seed: int, position: int) -> float:
    """Random number in [0, 1) of a position under a seed, 53 bits."""
    low, high, _, _ = philox((position & _WORD, position >> 32, 0, 0), (seed & _WORD, seed >> 32 & _WORD))
    return ((high << 32 | low) >> 11) * 2.0**-53


@torch.inference_mode()
def sample(logits: torch.Tensor, choices: Sequence[Choice]) -> tuple[list[int], list[float]]:
    """Choose a token for each row.

    Parameters
    ----------
    logits
        Shape (rows, vocabulary), float32.
    choices
        How, for each row.

    Returns
    -------
    tokens
        Ids.
    logprobs
        Natural logarithms of their probabilities under the model, before temperature.
    """
    tokens = logits.argmax(dim=1)
    for row, choice in enumerate(choices):
        if choice.temperature > 0:
            tokens[row] = _draw(logits[row], choice)
    logprobs = logits.gather(1, tokens.unsqueeze(1)).squeeze(1) - logits.logsumexp(dim=1)
    return tokens.tolist(), logprobs.tolist()


def _draw(logits: torch.Tensor, choice: Choice) -> int:
    scaled = (logits.double() - logits.max()) / choice.temperature
    cumulated = torch.softmax(scaled, dim=0).cumsum(dim=0)
    point = uniform(choice.seed, choice.position) * cumulated[-1]
    return int(torch.searchsorted(cumulated, point, right=True).clamp_(max=len(logits) - 1))
