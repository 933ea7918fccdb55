"""Bytes of each token: text is put together from bytes, for a token may end within a character."""

from __future__ import annotations

import json
from collections.abc import Iterator

import tokenizers

__all__ = ["Spelling"]

_SPACE = "\u2581"


class Spelling:
    """How a vocabulary spells its tokens, as the decoder of its tokenizer.json says.

    Two kinds of decoder are known, as all model families here have one of them: byte-level (a letter for each byte),
    and SentencePiece's (a mark for spaces, tokens like <0x0A> for bytes). Any other is taken to spell tokens as they
    are.

    Attributes
    ----------
    special : frozenset of int
        Tokens that are no text.
    added : frozenset of int
        Tokens that stand for themselves wherever their text is written, the special ones among them.
    drops_first_space : bool
        Whether a space in front of a whole text is a matter of spelling, and not part of it.
    """

    def __init__(self, tokenizer: tokenizers.Tokenizer) -> None:
        described = json.loads(tokenizer.decoder.__getstate__()) if tokenizer.decoder else {}
        kinds = {part["type"] for part in _parts(described)}
        added = tokenizer.get_added_tokens_decoder()
        self.added = frozenset(added)
        self.special = frozenset(token for token, about in added.items() if about.special)
        self.drops_first_space = "ByteLevel" not in kinds and bool(kinds & {"Metaspace", "Strip"})
        self._bytes: dict[int, bytes] = {}
        letters = _byte_of_letter() if "ByteLevel" in kinds else {}
        for written, token in tokenizer.get_vocab(with_added_tokens=True).items():
            if "ByteLevel" in kinds:
                spelled = [letters.get(letter, -1) for letter in written]
                # A letter that stands for no byte makes the whole token plain text.
                self._bytes[token] = written.encode() if -1 in spelled else bytes(spelled)
            elif token in added or not kinds & {"ByteFallback", "Metaspace"}:
                self._bytes[token] = written.encode()
            elif "ByteFallback" in kinds and len(written) == 6 and written.startswith("<0x") and written[5] == ">":
                self._bytes[token] = bytes.fromhex(written[3:5])
            else:
                self._bytes[token] = written.replace(_SPACE, " ").encode()

    def text(self, token: int) -> bytes:
        """What a token adds to a text: nothing if it is special, or not in the vocabulary."""
        return b"" if token in self.special else self._bytes.get(token, b"")

    def written(self, token: int) -> bytes:
        """How a token is written, be it special or not; nothing if it is not in the vocabulary."""
        return self._bytes.get(token, b"")


def _parts(described: dict[str, object]) -> Iterator[dict[str, object]]:
    inner = described.get("decoders")
    if isinstance(inner, list):
        for part in inner:
            yield from _parts(part)
    elif described:
        yield described


def _byte_of_letter() -> dict[str, int]:
    """GPT-2's letters for bytes: a printable byte is itself, the others are the code points from 256 on, in order."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + at): byte for at, byte in enumerate(others)}
