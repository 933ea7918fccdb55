"""Choosing tokens: greedy or at random under filters, with random numbers that depend on seed and position only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from cuelight.engine.shaping import adjust, restrict, truncate
from cuelight.filters import NO_FILTERS, Filters

__all__ = ["Choice", "likeliest", "philox", "sample", "uniform"]

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_WORD = 0xFFFFFFFF
_NO_TEXT = np.empty(0, np.int32)


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
    filters
        What shapes the choice beyond temperature.
    text
        Token ids so far, shape (position,); looked at only by penalties.
    prompt
        How many of them, from the first, are the prompt.
    allowed
        Tokens it is chosen among, shape (vocabulary,), one at least; None: all.
    """

    temperature: float
    seed: int
    position: int
    filters: Filters = NO_FILTERS
    text: NDArray[np.int32] = _NO_TEXT
    prompt: int = 0
    allowed: NDArray[np.bool_] | None = None

    @property
    def is_likeliest(self) -> bool:
        """Whether it is the model's likeliest token, whatever that is."""
        return not self.temperature and not self.filters.adjusts and self.allowed is None


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
    if shaped := [row for row, choice in enumerate(choices) if not choice.is_likeliest]:
        tokens[shaped] = _choose(logits[shaped].double(), [choices[row] for row in shaped])
    logprobs = logits.gather(1, tokens.unsqueeze(1)).squeeze(1) - logits.logsumexp(dim=1)
    return tokens.tolist(), logprobs.tolist()


@torch.inference_mode()
def likeliest(logits: torch.Tensor, count: int) -> list[list[tuple[int, float]]]:
    """The likeliest tokens of each row under the model itself, before temperature and filters.

    Returns
    -------
    list
        For each row `count` ids, the likeliest first, with the natural logarithms of their probabilities.
    """
    top = logits.topk(min(count, logits.shape[1]), dim=1)
    logprobs = top.values - logits.logsumexp(dim=1, keepdim=True)
    return [list(zip(*row, strict=True)) for row in zip(top.indices.tolist(), logprobs.tolist(), strict=True)]


def _choose(scores: torch.Tensor, choices: Sequence[Choice]) -> torch.Tensor:
    restrict(scores, [choice.allowed for choice in choices])
    if any(choice.filters.adjusts for choice in choices):
        scores = adjust(
            scores,
            [choice.filters for choice in choices],
            [choice.text for choice in choices],
            [choice.prompt for choice in choices],
        )
    tokens = scores.argmax(dim=1)
    if drawn := [row for row, choice in enumerate(choices) if choice.temperature > 0]:
        tokens[drawn] = _draw(scores[drawn], [choices[row] for row in drawn])
    return tokens


def _draw(scores: torch.Tensor, choices: Sequence[Choice]) -> torch.Tensor:
    temperatures = torch.tensor([[choice.temperature] for choice in choices], dtype=torch.float64)
    scores = scores.sub_(scores.amax(dim=1, keepdim=True)).div_(temperatures)
    if any(choice.filters.truncates for choice in choices):
        scores = truncate(scores, [choice.filters for choice in choices])
    cumulated = torch.softmax(scores, dim=1).cumsum(dim=1)
    total = cumulated[:, -1:]
    points = total * torch.tensor([[uniform(choice.seed, choice.position)] for choice in choices], dtype=torch.float64)
    # Rounding must not lift a point to the end: the last tokens may be ones that were left out.
    points = torch.minimum(points, torch.nextafter(total, torch.zeros_like(total)))
    # Logits that are no numbers lead beyond the end; their log probability tells.
    return torch.searchsorted(cumulated, points, right=True).squeeze(1).clamp_(max=scores.shape[1] - 1)
