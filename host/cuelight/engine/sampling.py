"""Choosing tokens: greedy or at random under filters, with random numbers that depend on seed, position and token."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from cuelight.engine.gumbel import gumbel, word_of, words
from cuelight.engine.shaping import adjust, restrict, truncate
from cuelight.filters import NO_FILTERS, Filters

__all__ = ["Choice", "likeliest", "sample"]

_NO_TEXT = np.empty(0, np.int32)

# Far above the rounding of logarithms.
_SLACK = 1e-6


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
        tokens[shaped] = torch.tensor(_choose(logits[shaped].double(), [choices[row] for row in shaped]))
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


def _choose(scores: torch.Tensor, choices: Sequence[Choice]) -> list[int]:
    restrict(scores, [choice.allowed for choice in choices])
    if any(choice.filters.adjusts for choice in choices):
        scores = adjust(
            scores,
            [choice.filters for choice in choices],
            [choice.text for choice in choices],
            [choice.prompt for choice in choices],
        )
    temperatures = torch.tensor([[choice.temperature or 1.0] for choice in choices], dtype=torch.float64)
    scores = scores.sub_(scores.amax(dim=1, keepdim=True)).div_(temperatures)
    if any(choice.temperature and choice.filters.truncates for choice in choices):
        # The likeliest always stays.
        scores = truncate(scores, [choice.filters for choice in choices])
    return [
        _win(row, words(choice.seed, choice.position, len(row))) if choice.temperature else int(row.argmax())
        for row, choice in zip(scores.numpy(), choices, strict=True)
    ]


def _win(scores: NDArray[np.float64], random: NDArray[np.uint32]) -> int:
    """The token whose score with its own Gumbel number added is the highest; the lowest id among equals.

    Each wins with its softmax probability (Maddison, Tarlow and Minka, "A* sampling", NIPS 2014). Rounding of scores
    changes who does only where the best two sums are as close as rounding: unlike in sums of probabilities, no score
    has a part in another's.
    """
    likeliest, luckiest = int(scores.argmax()), int(random.argmax())
    best, luck = scores[likeliest], gumbel(random[luckiest])
    to_beat = max(best + gumbel(random[likeliest]), scores[luckiest] + luck)
    if not math.isfinite(to_beat):
        # Scores are no numbers; the log probability tells.
        return likeliest
    # Nearly all would lose even with all the luck, or the best score, that there is.
    able = np.flatnonzero((scores >= to_beat - luck - _SLACK) & (random >= word_of(to_beat - best - _SLACK)))
    return int(able[(scores[able] + gumbel(random[able])).argmax()])
