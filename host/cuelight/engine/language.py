"""What a model's directory says about text: it turns into token ids and back, in chats too, and into grammars."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cuelight.engine.chat import ChatTemplate
from cuelight.engine.config import load_config
from cuelight.engine.grammar import Grammars
from cuelight.engine.tokenizer import Tokenizer

__all__ = ["Language"]


class Language:
    """Text of one model, without its weights; safe from several threads.

    Parameters
    ----------
    directory : Path
        Model directory.

    Attributes
    ----------
    directory : Path
        Directory of the model.
    tokenizer : Tokenizer
        The model's.
    grammars : Grammars
        Makes forms that answers can be held to.

    Raises
    ------
    ModelFileError
        A file is missing or damaged.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.tokenizer = Tokenizer(directory)
        config = load_config(directory)
        self.grammars = Grammars(self.tokenizer, config.vocabulary, config.eos_ids)

    @functools.cached_property
    def template(self) -> ChatTemplate:
        """The model's chat template.

        Raises
        ------
        ChatTemplateError
            It has none.
        """
        return ChatTemplate.load(self.directory)

    def encode(
        self, prompt: str | Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None = None
    ) -> list[int]:
        """Token ids of a prompt, or of a chat's messages that ask for an answer.

        Parameters
        ----------
        prompt : str or sequence of mappings
            Text to go on from, or messages with `role` and `content`.
        tools : sequence of mappings, optional
            Functions that an answer to messages may call, in OpenAI's form; templates that know none leave them out.

        Raises
        ------
        ChatTemplateError
            The model has no chat template, or it refuses the messages.
        """
        if isinstance(prompt, str):
            return self.tokenizer.encode(prompt)
        return self.tokenizer.encode_chat(self.template.render(prompt, tools))

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of token ids; special tokens are left out."""
        return self.tokenizer.decode(tokens)
