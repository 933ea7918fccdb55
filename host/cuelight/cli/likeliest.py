"""The likeliest tokens at each place of an answer, for people and for programs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.cells import cell_len

from cuelight.engine.tokenizer import Tokenizer
from cuelight.request import Token

__all__ = ["likeliest_lines", "likeliest_objects"]

_GAP = "   "
_LEAST = 0.0005
"""Rounded to a tenth of a percent, what is less would be none."""


def likeliest_lines(tokens: Sequence[Token], tokenizer: Tokenizer, width: int) -> list[str]:
    """A line for each token, or more where its alternatives do not fit `width` columns."""
    chosen = [_describe(token.token, token.logprob, tokenizer) for token in tokens]
    first = max(map(cell_len, ["token", *chosen]))
    lines = [_pad("token", first) + _GAP + "likeliest"]
    for token, name in zip(tokens, chosen, strict=True):
        items = [_describe(*alternative, tokenizer) for alternative in token.alternatives]
        for index, line in enumerate(_fill(items, width - first - len(_GAP))):
            lines.append(_pad("" if index else name, first) + _GAP + line)
    return lines


def likeliest_objects(tokens: Sequence[Token], tokenizer: Tokenizer) -> list[list[dict[str, object]]]:
    """For each token, its alternatives, the likeliest first."""
    return [
        [
            {"token": token, "text": tokenizer.decode([token], special=True), "logprob": logprob}
            for token, logprob in place.alternatives
        ]
        for place in tokens
    ]


def _describe(token: int, logprob: float, tokenizer: Tokenizer) -> str:
    probability = math.exp(logprob)
    return f"{tokenizer.show(token)} {f'{probability:.1%}' if probability >= _LEAST else '<0.1%'}"


def _pad(text: str, width: int) -> str:
    return text + " " * (width - cell_len(text))


def _fill(items: Sequence[str], width: int) -> list[str]:
    lines = [""]
    for item in items:
        if lines[-1] and cell_len(lines[-1]) + len(_GAP) + cell_len(item) > width:
            lines.append("")
        lines[-1] += (_GAP if lines[-1] else "") + item
    return lines
