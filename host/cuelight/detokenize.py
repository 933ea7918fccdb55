"""Text from tokens as they come, in whole characters."""

from __future__ import annotations

import codecs
from collections.abc import Callable

__all__ = ["Detokenizer"]

_Decoder = codecs.getincrementaldecoder("utf-8")


class Detokenizer:
    """Turns one request's tokens into pieces of text that never end within a character.

    A token may hold some of a character's bytes only; it is held back until a later one settles it. Bytes that are no
    text become U+FFFD.

    Parameters
    ----------
    spell : callable
        Bytes that a token adds to the text.
    drops_first_space : bool
        Leave out a space that the text begins with.
    """

    def __init__(self, spell: Callable[[int], bytes], drops_first_space: bool = False) -> None:
        self._spell = spell
        self._decoder = _Decoder("replace")
        self._drops_space = drops_first_space
        self._within_character = False

    def add(self, token: int) -> str:
        """Take a token; returns the text that is settled now, perhaps none."""
        spelled = self._spell(token)
        if self._drops_space and spelled:
            self._drops_space = False
            spelled = spelled.removeprefix(b" ")
        # As most are; the decoder takes several times as long.
        if spelled.isascii() and not self._within_character:
            return spelled.decode("ascii")
        text = self._decoder.decode(spelled)
        self._within_character = bool(self._decoder.getstate()[0])
        return text

    def flush(self) -> str:
        """Return what is held back; no token follows."""
        return self._decoder.decode(b"", final=True)
