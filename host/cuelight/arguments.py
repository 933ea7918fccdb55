"""What a caller may ask of a generation, checked before the device hears of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cuelight.errors import InvalidArgument, PromptTooLong

__all__ = ["check_lengths", "check_mask", "check_prompt", "check_range", "check_sampling"]

_MOST_TOKEN = int(np.iinfo(np.int32).max)
_MOST_TEMPERATURE = float(np.finfo(np.float32).max)


def check_prompt(prompt: Sequence[int]) -> NDArray[np.int32]:
    """Return token ids as an array, shape (prompt,).

    Raises
    ------
    InvalidArgument
        There is none, or one can't be a token id.
    """
    tokens = np.asarray(prompt)
    if tokens.ndim != 1 or not len(tokens) or tokens.dtype.kind not in "iu":
        raise InvalidArgument("A prompt is a sequence of token ids, one at least; give it some text.")
    # All bits that any of them has: the sign of the negative ones too.
    if not 0 <= int(np.bitwise_or.reduce(tokens)) <= _MOST_TOKEN:
        raise InvalidArgument("A prompt's token ids are 0 to 2,147,483,647; encode it with the model's tokenizer.")
    return tokens.astype(np.int32)


def check_lengths(prompt_tokens: int, max_new_tokens: int, context: int) -> None:
    """Check that a generation fits `context` positions.

    Raises
    ------
    InvalidArgument
        `max_new_tokens` is less than 1.
    PromptTooLong
        It does not fit.
    """
    if max_new_tokens < 1:
        raise InvalidArgument(f"max_new_tokens must be at least 1, not {max_new_tokens}.")
    if prompt_tokens + max_new_tokens > context:
        raise PromptTooLong(
            f"A prompt of {prompt_tokens} tokens and {max_new_tokens} new ones exceed the context of {context} "
            "positions; shorten the prompt or ask for fewer new tokens."
        )


def check_mask(mask: NDArray[np.uint32], words: int) -> NDArray[np.uint32]:
    """Return a copy of a token mask, shape (words,).

    Raises
    ------
    InvalidArgument
        It has another shape or kind, or allows no token.
    """
    if not words:
        raise InvalidArgument("The device has no room for token masks; open it with the size of the vocabulary.")
    if mask.shape != (words,) or mask.dtype != np.uint32:
        raise InvalidArgument(
            f"A mask is {words} words of uint32 here, not {mask.dtype} of shape {mask.shape}; token t is bit t mod 32 "
            "of word t / 32."
        )
    if not mask.any():
        raise InvalidArgument("A mask allows no token; let it allow one at least, or cancel the request.")
    return mask.copy()


def check_range(name: str, value: int, low: int, high: int) -> None:
    """Check a whole number.

    Raises
    ------
    InvalidArgument
        It is not from `low` to `high`, or none.
    """
    if not isinstance(value, int) or not low <= value <= high:
        raise InvalidArgument(f"{name} must be {low} to {high}, not {value}.")


def check_sampling(temperature: float, seed: int) -> None:
    """Check sampling parameters.

    Raises
    ------
    InvalidArgument
        One is out of range.
    """
    if not 0 <= temperature <= _MOST_TEMPERATURE:
        raise InvalidArgument(f"temperature must be 0 to {_MOST_TEMPERATURE:.1e}, not {temperature}.")
    if not 0 <= seed < 1 << 64:
        raise InvalidArgument(f"seed must fit 64 bits, unsigned, not {seed}.")
