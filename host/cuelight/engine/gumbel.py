"""Random numbers that each belong to a seed, a position and a token, so that no draw depends on another's."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["gumbel", "word_of", "words"]

_ONES = (1 << 64) - 1
_STEP = 2.0**-32


def words(seed: int, position: int, vocabulary: int) -> NDArray[np.uint32]:
    """Philox4x64-10, a counter-based generator, cut in halves: a block of the counter's has words of eight tokens.

    Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.

    Parameters
    ----------
    seed, position
        The generator's key, 64 bits each.
    vocabulary
        How many tokens.

    Returns
    -------
    ndarray
        32 random bits for each token, shape (vocabulary,).
    """
    # numpy counts up before each block, the first one too.
    generator = np.random.Philox(key=np.array([seed, position], np.uint64), counter=np.full(4, _ONES, np.uint64))
    halves: NDArray[np.uint32] = generator.random_raw((vocabulary + 1) // 2).astype("<u8", copy=False).view("<u4")
    return halves[:vocabulary]


def gumbel(words: NDArray[np.uint32] | np.uint32) -> NDArray[np.float64]:
    """Numbers of the standard Gumbel distribution, -3.2 to 22.9, the higher the higher the word.

    Source: Gumbel, "Statistical theory of extreme values and some practical applications", NBS 1954.

    Parameters
    ----------
    words
        Any shape.
    """
    # Of the middles of 2^32 equal parts: neither 0 nor 1 is reached, and all are exact.
    return -np.log(-np.log((words + 0.5) * _STEP))


def word_of(number: float) -> int:
    """The highest word whose Gumbel number is not above `number`, which is no less than the lowest one's."""
    return max(0, int(math.exp(-math.exp(-number)) / _STEP - 0.5))
