"""Text of an answer as its tokens come: in whole characters, ended by the first stop string."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cuelight.detokenize import Detokenizer
from cuelight.errors import InvalidArgument
from cuelight.request import Finish, Token

__all__ = ["Passage", "Placed", "TextAssembler"]


Placed = tuple[Token, int]
"""A token of the text, and how many characters of the text come before its own."""


class Passage(NamedTuple):
    """A next part of the text.

    Parameters
    ----------
    text
        Perhaps nothing.
    tokens
        Those whose text begins here, and those without text in between. Over all passages: every token of the text
        once, in order; neither end of text nor what belongs to a stop string only.
    """

    text: str
    tokens: tuple[Placed, ...]


_NOTHING = Passage("", ())


class TextAssembler:
    """Puts the text of one answer together; not for several threads at once.

    A stop string ends the text in front of it, however tokens cut it. The one that is complete first counts, and of
    several that end at the same character the longest: what comes out does not depend on where tokens end. Only text
    that may still turn out to be the beginning of a stop string, or that is no whole character, is held back.

    Parameters
    ----------
    detokenizer
        A fresh one.
    stop
        Stop strings.

    Attributes
    ----------
    stopped : str or None
        The stop string that ended the text; nothing is added after it.
    length : int
        Characters of the text so far, what is held back left out.

    Raises
    ------
    InvalidArgument
        A stop string is empty.
    """

    def __init__(self, detokenizer: Detokenizer, stop: Sequence[str] = ()) -> None:
        if not all(stop):
            raise InvalidArgument("A stop string is empty; give each at least one character, or leave it out.")
        self.stopped: str | None = None
        self.length = 0
        self._detokenizer = detokenizer
        self._stop = tuple(stop)
        self._held = ""
        self._tokens: list[Placed] = []

    def add(self, tokens: Sequence[Token]) -> Passage:
        """Take the next tokens and return what is settled now; the last of the answer settles all."""
        if self.stopped is not None:
            return _NOTHING
        pieces: list[str] = []
        offset = self.length + len(self._held)
        ended = False
        for token in tokens:
            ended = token.finish is not None
            if token.finish is not Finish.END_OF_TEXT:
                self._tokens.append((token, offset))
                pieces.append(self._detokenizer.add(token.token))
                offset += len(pieces[-1])
        if ended:
            pieces.append(self._detokenizer.flush())
        return self._settle("".join(pieces), ended)

    def end(self) -> Passage:
        """Return what is held back: no token follows, though the last one did not say so."""
        return self._settle(self._detokenizer.flush(), ended=True) if self.stopped is None else _NOTHING

    def _settle(self, whole: str, ended: bool) -> Passage:
        text = self._held + whole
        found = [(at + len(stop), at, stop) for stop in self._stop if (at := text.find(stop)) >= 0]
        if found:
            _, keep, self.stopped = min(found)
        else:
            keep = len(text) if ended else len(text) - self._possible_stop(text)
        self._held = text[keep:]
        self.length += keep
        # A character that is not whole yet belongs to this length: its first token waits for it.
        count = len(self._tokens)
        while count and not (ended and not found) and self._tokens[count - 1][1] >= self.length:
            count -= 1
        settled, self._tokens = tuple(self._tokens[:count]), self._tokens[count:]
        return Passage(text[:keep], settled)

    def _possible_stop(self, text: str) -> int:
        """Characters at the end of `text` that a stop string may begin with."""
        longest = max(map(len, self._stop), default=0)
        for size in range(min(longest - 1, len(text)), 0, -1):
            if any(stop.startswith(text[-size:]) for stop in self._stop):
                return size
        return 0
