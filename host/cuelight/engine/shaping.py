"""Applies masks and `Filters` to logits, all rows at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from cuelight.filters import Filters

__all__ = ["adjust", "restrict", "truncate"]


def restrict(scores: torch.Tensor, allowed: Sequence[NDArray[np.bool_] | None]) -> None:
    """Leave out tokens that are not allowed.

    Parameters
    ----------
    scores
        Logits, shape (rows, vocabulary); minus infinity afterwards where a token is left out.
    allowed
        What each row may have, shape (vocabulary,); None: everything.
    """
    for row, one in enumerate(allowed):
        if one is not None:
            scores[row].masked_fill_(torch.from_numpy(~one), -torch.inf)


def adjust(
    scores: torch.Tensor, filters: Sequence[Filters], texts: Sequence[NDArray[np.int32]], prompts: Sequence[int]
) -> torch.Tensor:
    """Add biases and apply penalties.

    Parameters
    ----------
    scores
        Logits, shape (rows, vocabulary), float64; changed in place.
    filters
        Of each row.
    texts
        Token ids of each row's sequence so far, shape (tokens,); looked at only where the row penalizes.
    prompts
        How many of them, from the first, are the prompt.

    Returns
    -------
    Tensor
        `scores`.
    """
    biased = [(row, *bias) for row, one in enumerate(filters) for bias in one.logit_bias]
    if biased:
        rows, tokens, values = zip(*biased, strict=True)
        scores[list(rows), list(tokens)] += torch.tensor(values, dtype=scores.dtype)
    penalizing = [row for row, one in enumerate(filters) if one.penalizes]
    if penalizing:
        scores[penalizing] = _penalize(
            scores[penalizing],
            [filters[row] for row in penalizing],
            [texts[row] for row in penalizing],
            [prompts[row] for row in penalizing],
        )
    return scores


def truncate(scores: torch.Tensor, filters: Sequence[Filters]) -> torch.Tensor:
    """Leave out what top-k, then top-p of the rest, then min-p do not keep.

    Parameters
    ----------
    scores
        Logits after temperature, shape (rows, vocabulary), float64; changed in place.
    filters
        Of each row.

    Returns
    -------
    Tensor
        `scores`, minus infinity where a token is left out.
    """
    top_k = torch.tensor([one.top_k for one in filters]).clamp_(max=scores.shape[1])
    if bool(top_k.any()):
        kept = scores.topk(int(top_k.max()), dim=1).values
        bound = kept.gather(1, (top_k - 1).clamp_(min=0).unsqueeze(1))
        _drop_below(scores, bound.masked_fill_((top_k == 0).unsqueeze(1), -torch.inf))
    top_p = _column([one.top_p for one in filters])
    if bool((top_p < 1).any()):
        _drop_below(scores, _nucleus_bound(scores, top_p))
    min_p = _column([one.min_p for one in filters])
    if bool(min_p.any()):
        _drop_below(scores, scores.amax(dim=1, keepdim=True) + min_p.log())
    return scores


def _penalize(
    scores: torch.Tensor, filters: Sequence[Filters], texts: Sequence[NDArray[np.int32]], prompts: Sequence[int]
) -> torch.Tensor:
    row_of = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    places = torch.from_numpy(row_of * scores.shape[1] + np.concatenate(texts).astype(np.int64))
    made = np.concatenate([np.arange(len(text)) >= prompt for text, prompt in zip(texts, prompts, strict=True)])
    # Prompt tokens count 0 times, so every token seen is listed once with its count.
    seen, index = torch.unique(places, return_inverse=True)
    counts = torch.zeros(len(seen), dtype=scores.dtype).index_add_(0, index, torch.from_numpy(made.astype(np.float64)))
    row = seen // scores.shape[1]
    flat = scores.view(-1)
    values = flat[seen]
    repetition = _column([one.repetition_penalty for one in filters])[row, 0]
    values = torch.where(values < 0, values * repetition, values / repetition)
    values -= counts * _column([one.frequency_penalty for one in filters])[row, 0]
    values -= (counts > 0) * _column([one.presence_penalty for one in filters])[row, 0]
    flat[seen] = values
    return scores


def _nucleus_bound(scores: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    # numpy sorts seven times as fast as torch.
    values = torch.from_numpy(np.sort(scores.numpy(), axis=1))
    mass = torch.softmax(values, dim=1).cumsum(dim=1)
    # The likeliest stays.
    dropped = (mass <= 1 - top_p).sum(dim=1, keepdim=True).clamp_(max=scores.shape[1] - 1)
    return values.gather(1, dropped).masked_fill_(top_p == 1, -torch.inf)


def _drop_below(scores: torch.Tensor, bound: torch.Tensor) -> None:
    scores.masked_fill_(scores < bound, -torch.inf)


def _column(values: Sequence[float]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64).unsqueeze(1)
