"""Text to token ids and back."""

from __future__ import annotations

from typing import Annotated, Self

import pydantic
from pydantic import Field
from typing_extensions import TypedDict

from cuelight.daemon.schema.chat import Message
from cuelight.daemon.schema.sampling import Question

__all__ = ["DetokenizeQuestion", "Text", "TokenizeQuestion", "Tokens"]


class TokenizeQuestion(Question):
    """What POST /tokenize takes: a text, or the messages of a chat."""

    model: str | None = None
    prompt: str | None = None
    messages: Annotated[list[Message] | None, Field(min_length=1)] = None

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if (self.prompt is None) == (self.messages is None):
            raise ValueError("give either prompt or messages")
        return self


class Tokens(TypedDict):
    """Token ids."""

    count: int
    max_model_len: int
    tokens: list[int]


class DetokenizeQuestion(Question):
    """What POST /detokenize takes."""

    model: str | None = None
    tokens: list[Annotated[int, Field(ge=0, lt=1 << 31)]]


class Text(TypedDict):
    """A text."""

    prompt: str
