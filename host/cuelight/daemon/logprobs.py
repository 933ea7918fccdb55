"""Log probabilities in the two forms that OpenAI has for them."""

from __future__ import annotations

from collections.abc import Iterable

from cuelight.daemon.schema.chat import TokenLogprob, TopLogprob
from cuelight.daemon.schema.completion import TextLogprobs
from cuelight.daemon.text import Placed
from cuelight.engine.spelling import Spelling

__all__ = ["chat_logprobs", "text_logprobs"]

_LEAST = -9999.0
"""For what JSON can't say; OpenAI's value for tokens that are all but impossible."""


def chat_logprobs(spelling: Spelling, tokens: Iterable[Placed]) -> list[TokenLogprob]:
    """Tokens with their log probabilities and the likeliest ones at their places, as chats have them."""
    return [
        {
            **_entry(spelling, token.token, token.logprob),
            "top_logprobs": [_entry(spelling, other, logprob) for other, logprob in token.alternatives],
        }
        for token, _ in tokens
    ]


def text_logprobs(spelling: Spelling, tokens: Iterable[Placed]) -> TextLogprobs:
    """The same as texts have them, with the place of each token in its text."""
    tokens = list(tokens)
    return {
        "tokens": [_text(spelling, token.token) for token, _ in tokens],
        "token_logprobs": [max(token.logprob, _LEAST) for token, _ in tokens],
        "top_logprobs": [
            {_text(spelling, other): max(logprob, _LEAST) for other, logprob in reversed(token.alternatives)}
            for token, _ in tokens
        ],
        "text_offset": [offset for _, offset in tokens],
    }


def _entry(spelling: Spelling, token: int, logprob: float) -> TopLogprob:
    written = spelling.written(token)
    return {"token": _text(spelling, token), "logprob": max(logprob, _LEAST), "bytes": list(written)}


def _text(spelling: Spelling, token: int) -> str:
    return spelling.written(token).decode("utf-8", "replace")
