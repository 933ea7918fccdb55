"""Chats: messages in, an answer out."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from cuelight.daemon.schema.sampling import Question, Sampling
from cuelight.daemon.schema.tools import CallAnswer, CallDelta, CallSaid, NamedTool, ResponseFormat, Tool
from cuelight.daemon.schema.usage import Usage

__all__ = ["ChatAnswer", "ChatChunk", "ChatQuestion", "Message"]


class TextPart(Question):
    """A part of a message's content."""

    type: Literal["text"]
    text: str


class Message(Question):
    """A message of a chat."""

    role: Annotated[str, Field(min_length=1, max_length=64)]
    content: str | list[TextPart] | None = None
    name: str | None = None
    tool_calls: list[CallSaid] | None = None
    tool_call_id: str | None = None

    @property
    def text(self) -> str:
        """Content in one piece."""
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""

    @property
    def plain(self) -> dict[str, Any]:
        """As chat templates know it."""
        more: dict[str, Any] = {"name": self.name, "tool_call_id": self.tool_call_id}
        if self.tool_calls:
            more["tool_calls"] = [call.plain for call in self.tool_calls]
        named = {key: value for key, value in more.items() if value is not None}
        return {"role": self.role, "content": self.text, **named}


class ChatQuestion(Sampling):
    """What POST /v1/chat/completions takes."""

    messages: Annotated[list[Message], Field(min_length=1)]
    max_completion_tokens: Annotated[int | None, Field(ge=1)] = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int | None, Field(ge=0, le=20)] = None
    response_format: ResponseFormat | None = None
    tools: Annotated[list[Tool] | None, Field(max_length=128)] = None
    tool_choice: Literal["none", "auto", "required"] | NamedTool | None = None
    parallel_tool_calls: bool | None = None
    suggestions: Annotated[int | None, Field(ge=0, le=16)] = None
    """Follow-up questions to be suggested after the answer; at most as many as its tier has."""

    @property
    def most_new_tokens(self) -> int | None:
        """New tokens at most, by its newer or its older name."""
        return self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens


class TopLogprob(TypedDict):
    """One of the likeliest tokens at a place."""

    token: str
    logprob: float
    bytes: list[int]


class TokenLogprob(TopLogprob):
    """A token of the answer."""

    top_logprobs: list[TopLogprob]


class ChatLogprobs(TypedDict):
    """Log probabilities of an answer, or of what is new of it."""

    content: list[TokenLogprob]


class AnswerMessage(TypedDict):
    """An answer."""

    role: Literal["assistant"]
    content: str | None
    """None if there are calls and nothing else."""
    tool_calls: NotRequired[list[CallAnswer]]


class ChatChoice(TypedDict):
    """One of the answers."""

    index: int
    message: AnswerMessage
    logprobs: ChatLogprobs | None
    finish_reason: str


class ChatAnswer(TypedDict):
    """What POST /v1/chat/completions answers."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    service_tier: str
    choices: list[ChatChoice]
    usage: Usage
    suggestions: NotRequired[list[str]]
    degraded: NotRequired[bool]
    """It is the tier's cached answer, since the promise could not be kept."""


class Delta(TypedDict):
    """What is new of an answer."""

    role: NotRequired[Literal["assistant"]]
    content: NotRequired[str]
    tool_calls: NotRequired[list[CallDelta]]


class ChunkChoice(TypedDict):
    """What is new of one of the answers."""

    index: int
    delta: Delta
    logprobs: ChatLogprobs | None
    finish_reason: str | None


class ChatChunk(TypedDict):
    """One event of a streamed answer."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    service_tier: str
    choices: list[ChunkChoice]
    usage: NotRequired[Usage | None]
    suggestions: NotRequired[list[str]]
    degraded: NotRequired[bool]
