"""Token ids of texts that have long parts in common, as a chat has with each of its next turns."""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

import tokenizers

__all__ = ["PartEncoder"]

_PARTS = 1024
_PART_CHARACTERS = 2048
# These see nothing but the part that they are given, and treat its beginning as they would anywhere.
_SAFE_STEPS = {"ByteLevel", "Digits", "NFC", "NFD", "NFKC", "NFKD", "Split"}


class PartEncoder:
    """Encodes each added token with what follows up to the next one, and remembers the latest of these parts.

    Before anything else a tokenizer cuts a text at its added tokens, so that these ids are those of the whole text. A
    tokenizer for which that might not hold gets whole texts: its added tokens heed what is beside them, or it treats
    the beginning of a text in a way of its own.

    Parameters
    ----------
    tokenizer : tokenizers.Tokenizer
        Does the work.
    """

    def __init__(self, tokenizer: tokenizers.Tokenizer) -> None:
        self._mark = _find_mark(tokenizer)
        self._encode = functools.partial(_encode, tokenizer)
        self._remember = functools.lru_cache(_PARTS)(self._encode)

    def encode(self, text: str) -> list[int]:
        """Token ids of `text`; added tokens written in it count as such, and none is put in front."""
        marks = self._mark.finditer(text) if self._mark else ()
        cuts = [0, *[mark.start() for mark in marks], len(text)]
        ids: list[int] = []
        for begin, end in itertools.pairwise(cuts):
            ids += (self._remember if end - begin <= _PART_CHARACTERS else self._encode)(text[begin:end])
        return ids


def _encode(tokenizer: tokenizers.Tokenizer, text: str) -> tuple[int, ...]:
    return tuple(tokenizer.encode(text, add_special_tokens=False).ids)


def _find_mark(tokenizer: tokenizers.Tokenizer) -> re.Pattern[str] | None:
    """Finds the added tokens that the tokenizer cuts at first; None if parts can't be encoded by themselves."""
    added = tokenizer.get_added_tokens_decoder().values()
    steps = {*_steps(tokenizer.normalizer), *_steps(tokenizer.pre_tokenizer)}
    if not steps <= _SAFE_STEPS or any(token.lstrip or token.single_word for token in added):
        return None
    # Of several that begin at one place the tokenizer takes the longest.
    marks = sorted((token.content for token in added if not token.normalized), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, marks))) if marks else None


def _steps(component: Any) -> Iterator[str]:
    """Types of the steps that a normalizer or a pre-tokenizer is made of."""
    waiting = [json.loads(component.__getstate__())] if component else []
    while waiting:
        step = waiting.pop()
        if step["type"] == "Sequence":
            waiting += step.get("normalizers") or step.get("pretokenizers") or []
        else:
            yield step["type"]
