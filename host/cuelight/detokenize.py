"""Text from tokens as they come, in whole characters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["Detokenizer"]

_REPLACEMENT = "\ufffd"


class Detokenizer:
    """Turns one request's tokens into pieces of text that never end within a character.

    A token may hold some of a character's bytes only. What ends in a replacement character may still become
    another one, so it is held back until a later token settles it.

    Parameters
    ----------
    decode : callable
        Text of a sequence of token ids, with U+FFFD for bytes that are no text.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str]) -> None:
        self._decode = decode
        # Tokens whose text was given out last, as context, then those whose text is held back: spaces at the
        # start of a text decode differently.
        self._context: list[int] = []
        self._held: list[int] = []

    def add(self, token: int) -> str:
        """Take a token; returns the text that is settled now, perhaps none."""
        self._held.append(token)
        text = self._held_text()
        if text.endswith(_REPLACEMENT):
            return ""
        if text:
            self._context, self._held = self._held, []
        return text

    def flush(self) -> str:
        """Return what is held back; no token follows."""
        text = self._held_text()
        self._context, self._held = [], []
        return text

    def _held_text(self) -> str:
        before = self._decode(self._context)
        return self._decode(self._context + self._held)[len(before) :]
