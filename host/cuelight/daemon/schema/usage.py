"""How many tokens a question and its answers took."""

from __future__ import annotations

from typing_extensions import TypedDict

__all__ = ["PromptDetails", "Usage", "count_usage"]


class PromptDetails(TypedDict):
    """Of the prompt's tokens."""

    cached_tokens: int


class Usage(TypedDict):
    """Tokens."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails


def count_usage(prompt_tokens: int, new_tokens: int, cached_tokens: int) -> Usage:
    """Make a usage.

    Parameters
    ----------
    prompt_tokens, new_tokens
        Lengths; of all answers together, end of text included.
    cached_tokens
        Of the prompt's tokens, those that were in the prefix cache.
    """
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": new_tokens,
        "total_tokens": prompt_tokens + new_tokens,
        "prompt_tokens_details": {"cached_tokens": cached_tokens},
    }
