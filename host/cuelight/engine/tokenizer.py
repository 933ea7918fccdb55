"""Text <-> token ids, by a model directory's tokenizer.json."""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Sequence
from pathlib import Path

import tokenizers

from cuelight.detokenize import Detokenizer
from cuelight.engine.parts import PartEncoder
from cuelight.engine.spelling import Spelling
from cuelight.errors import ModelFileError

__all__ = ["Tokenizer"]


class Tokenizer:
    """A model's tokenizer; safe to use from several threads.

    Parameters
    ----------
    directory
        Model directory.

    Raises
    ------
    ModelFileError
        tokenizer.json is missing or damaged.
    """

    def __init__(self, directory: Path) -> None:
        path = directory / "tokenizer.json"
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the package raises plain Exception
            raise ModelFileError(f"{path} cannot be read ({error}); fetch the model again.") from error
        # What a training set-up left behind would cut or stretch prompts without a word.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._parts = PartEncoder(self._tokenizer)

    @property
    def size(self) -> int:
        """Tokens of the vocabulary, added ones included."""
        return self._tokenizer.get_vocab_size()

    @functools.cached_property
    def spelling(self) -> Spelling:
        """Bytes of each token."""
        return Spelling(self._tokenizer)

    def detokenizer(self, shown: Collection[int] = ()) -> Detokenizer:
        """Make what turns the tokens of one text into characters as they come.

        Parameters
        ----------
        shown
            Special tokens that are to be seen in the text; others are left out.
        """
        spelling = self.spelling
        if not shown:
            return Detokenizer(spelling.text, spelling.drops_first_space)
        return Detokenizer(
            lambda token: spelling.written(token) if token in shown else spelling.text(token),
            spelling.drops_first_space,
        )

    def encode(self, text: str, *, opening: bool = True) -> list[int]:
        """Token ids of `text`; special tokens written in it count as such.

        Parameters
        ----------
        text
            Any text.
        opening
            Put the token in front that opens a text, if the model has one.
        """
        return list(self._tokenizer.encode(text, add_special_tokens=opening).ids)

    def encode_chat(self, text: str) -> list[int]:
        """Token ids of what a chat template wrote, which opens the text by itself.

        What it has in common with the latest other chats takes next to no time.
        """
        return self._parts.encode(text)

    def encode_plain(self, text: str) -> list[int]:
        """Token ids of `text` in which nothing counts as more than text: no added token is among them."""
        return list(self._plain.encode(text, add_special_tokens=False).ids)

    @functools.cached_property
    def _plain(self) -> tokenizers.Tokenizer:
        described = json.loads(self._tokenizer.to_str())
        described["added_tokens"] = []
        return tokenizers.Tokenizer.from_str(json.dumps(described))

    def decode(self, ids: Sequence[int], *, special: bool = False) -> str:
        """Text of token ids, with U+FFFD for bytes that are no text.

        Parameters
        ----------
        ids
            Token ids.
        special
            Show special tokens.
        """
        return self._tokenizer.decode(list(ids), skip_special_tokens=not special)

    def id_of(self, text: str) -> int | None:
        """The added token that stands for `text` wherever that is written; None if there is none."""
        token = self._tokenizer.token_to_id(text)
        return token if token in self.spelling.added else None

    def text_of(self, token: int) -> str | None:
        """How the vocabulary writes one token; None where it has no such id."""
        return self._tokenizer.id_to_token(token)

    def show(self, token: int) -> str:
        """One token in quotes for people: its text, or how the vocabulary writes it where it is but part of a text."""
        text = self._tokenizer.decode([token], skip_special_tokens=False)
        return json.dumps(self.text_of(token) or "" if "\ufffd" in text else text, ensure_ascii=False)
