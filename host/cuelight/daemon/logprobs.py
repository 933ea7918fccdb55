"""Log probabilities in OpenAI's form."""

from __future__ import annotations

from collections.abc import Iterable

from cuelight.daemon.schema.chat import TokenLogprob, TopLogprob
from cuelight.engine.tokenizer import Tokenizer
from cuelight.request import Token

__all__ = ["token_logprobs"]

_LEAST = -9999.0
"""For what JSON can't say; OpenAI's value for tokens that are all but impossible."""


def token_logprobs(tokenizer: Tokenizer, tokens: Iterable[Token]) -> list[TokenLogprob]:
    """Tokens with their log probabilities and the likeliest ones at their places."""
    return [
        {
            **_entry(tokenizer, token.token, token.logprob),
            "top_logprobs": [_entry(tokenizer, other, logprob) for other, logprob in token.alternatives],
        }
        for token in tokens
    ]


def _entry(tokenizer: Tokenizer, token: int, logprob: float) -> TopLogprob:
    text = tokenizer.decode([token], special=True)
    # A part of a character has no text of its own.
    whole = "\ufffd" not in text
    return {
        "token": text if whole else tokenizer.text_of(token) or "",
        "logprob": max(logprob, _LEAST),
        "bytes": list(text.encode()) if whole else None,
    }
