"""Functions that an answer may call, calls, and the forms that answers can be asked to have."""

from __future__ import annotations

import contextlib
import json
from typing import Annotated, Any, Literal, NotRequired

import pydantic
from pydantic import Field
from typing_extensions import TypedDict

from cuelight.daemon.schema.sampling import Question

__all__ = [
    "NO_PARAMETERS",
    "CallAnswer",
    "CallDelta",
    "CallSaid",
    "FunctionDelta",
    "NamedTool",
    "ObjectFormat",
    "ResponseFormat",
    "SchemaFormat",
    "Tool",
]


class FunctionOffer(Question):
    """What may be called."""

    name: Annotated[str, Field(pattern="^[a-zA-Z0-9_-]{1,64}$")]
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(Question):
    """A tool on offer."""

    type: Literal["function"]
    function: FunctionOffer

    @property
    def plain(self) -> dict[str, Any]:
        """As chat templates know it."""
        about = {"name": self.function.name, "description": self.function.description or ""}
        return {"type": "function", "function": {**about, "parameters": self.function.parameters or NO_PARAMETERS}}


NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
"""Schema of a function that takes none."""


class FunctionName(Question):
    """Which function."""

    name: str


class NamedTool(Question):
    """The tool that has to be called."""

    type: Literal["function"]
    function: FunctionName


class FunctionSaid(Question):
    """A call in an earlier message."""

    name: str
    arguments: str


class CallSaid(Question):
    """A tool call in an earlier message."""

    id: str | None = None
    type: Literal["function"] = "function"
    function: FunctionSaid

    @property
    def plain(self) -> dict[str, Any]:
        """As chat templates know it: most write the arguments as JSON themselves."""
        arguments: object = self.function.arguments
        with contextlib.suppress(ValueError, RecursionError):
            arguments = json.loads(self.function.arguments)
        return {"id": self.id, "type": self.type, "function": {"name": self.function.name, "arguments": arguments}}


class TextFormat(Question):
    """Any text."""

    type: Literal["text"]


class ObjectFormat(Question):
    """Some JSON object."""

    type: Literal["json_object"]


class Schema(Question):
    """A JSON schema under a name."""

    name: str | None = None
    # A field of this name would hide one of pydantic's own.
    body: Annotated[dict[str, Any], Field(alias="schema")] = Field(default_factory=dict)
    strict: bool | None = None

    model_config = pydantic.ConfigDict(extra="ignore", frozen=True)


class SchemaFormat(Question):
    """JSON that is valid under a schema."""

    type: Literal["json_schema"]
    json_schema: Schema


ResponseFormat = Annotated[TextFormat | ObjectFormat | SchemaFormat, Field(discriminator="type")]


class FunctionCalled(TypedDict):
    """Name and arguments of a call, which are JSON in text."""

    name: str
    arguments: str


class CallAnswer(TypedDict):
    """A call in an answer."""

    id: str
    type: Literal["function"]
    function: FunctionCalled


class FunctionDelta(TypedDict):
    """What is new of a call."""

    name: NotRequired[str]
    arguments: str


class CallDelta(TypedDict):
    """What is new of one of an answer's calls."""

    index: int
    id: NotRequired[str]
    type: NotRequired[Literal["function"]]
    function: FunctionDelta
