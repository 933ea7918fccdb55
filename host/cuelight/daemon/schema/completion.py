"""Texts: a prompt in, what goes on from it out."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from cuelight.daemon.schema.sampling import Sampling
from cuelight.daemon.schema.usage import Usage

__all__ = ["TextAnswer", "TextChoice", "TextLogprobs", "TextQuestion"]

TokenId = Annotated[int, Field(ge=0, lt=1 << 31)]


class TextQuestion(Sampling):
    """What POST /v1/completions takes."""

    prompt: str | list[TokenId] | list[str] | list[list[TokenId]]
    max_tokens: Annotated[int | None, Field(ge=1)] = 16
    logprobs: Annotated[int | None, Field(ge=0, le=20)] = None
    echo: Literal[False] | None = None
    best_of: Literal[1] | None = None
    suffix: Literal[""] | None = None

    @property
    def prompts(self) -> list[str] | list[list[int]]:
        """One or several, of one kind."""
        prompt: Any = self.prompt
        several = isinstance(prompt, list) and not all(isinstance(part, int) for part in prompt)
        prompts: list[str] | list[list[int]] = prompt if several else [prompt]
        return prompts


class TextLogprobs(TypedDict):
    """Log probabilities of an answer, or of what is new of it; lists of equal lengths."""

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]


class TextChoice(TypedDict):
    """One of the answers, or what is new of it."""

    index: int
    text: str
    logprobs: TextLogprobs | None
    finish_reason: str | None


class TextAnswer(TypedDict):
    """What POST /v1/completions answers, and each event of a streamed answer."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    service_tier: str
    choices: list[TextChoice]
    usage: NotRequired[Usage | None]
    degraded: NotRequired[bool]
    """It is the tier's cached answer, since the promise could not be kept."""
