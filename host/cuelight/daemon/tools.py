"""Functions that an answer may call: what the model's chat template knows of them, and what a call must look like."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cuelight.daemon.calls import CallFormat, CallParser
from cuelight.engine.chat import ChatTemplate
from cuelight.engine.grammar import Grammar, Grammars, embedded_schema
from cuelight.engine.tokenizer import Tokenizer
from cuelight.errors import InvalidArgument

__all__ = ["Function", "Tools", "call_format"]

_MOST_CALLS = 8
"""In one answer that has to call: a small model would go on for ever."""

_TAGGED = CallFormat("<tool_call>", "</tool_call>", "arguments")
_PLAIN = CallFormat("", "", "parameters")


@dataclass(frozen=True, slots=True)
class Function:
    """A function on offer.

    Parameters
    ----------
    name
        Of letters, digits, dashes and underscores.
    parameters
        JSON schema of its arguments.
    strict
        Refuse a schema that can't be held to.
    """

    name: str
    parameters: Mapping[str, Any]
    strict: bool


def call_format(template: ChatTemplate) -> CallFormat:
    """How the model of a chat template writes calls: as Qwen 2.5 and 3 do, or as Llama 3 does.

    Raises
    ------
    InvalidArgument
        The template knows no tools, or asks for calls in another form.
    """
    source = template.source
    if not template.takes_tools:
        raise InvalidArgument("This model's chat template knows no tools; leave tools out, or ask another model.")
    # Others have tags around a form of their own.
    if "<tool_call>" in source and "<function=" not in source:
        return _TAGGED
    if "<|python_tag|>" in source and '"parameters"' in source:
        return _PLAIN
    raise InvalidArgument("This model writes tool calls in a form that is not known here; leave tools out.")


class Tools:
    """What a question says about tools.

    Parameters
    ----------
    form
        How the model writes calls.
    offered
        All functions, as the question has them.
    functions
        Those that may be called.
    required
        The answer is a call, and nothing else.
    parallel
        It may be several.
    """

    def __init__(
        self,
        form: CallFormat,
        offered: Sequence[Mapping[str, Any]],
        functions: Sequence[Function],
        *,
        required: bool,
        parallel: bool,
    ) -> None:
        self.offered = offered
        self.required = required
        self._form = form
        self._functions = functions
        self._parallel = parallel

    def parser(self) -> CallParser:
        """Tell calls apart from text, in one answer."""
        return CallParser(self._form, [function.name for function in self._functions])

    def shown(self, tokenizer: Tokenizer) -> frozenset[int]:
        """Special tokens that calls are told by."""
        ids = (tokenizer.id_of(tag) for tag in (self._form.opening, self._form.closing))
        return frozenset(token for token in ids if token is not None)

    def grammar(self, grammars: Grammars, tokenizer: Tokenizer) -> Grammar:
        """Form of an answer that has to call.

        Raises
        ------
        GrammarError
            A function's schema can't be held to.
        """
        lines = ["start: body"]
        if self._form.opening:
            opening, closing = (_spell(tag, tokenizer) for tag in (self._form.opening, self._form.closing))
            more = f' ("\\n" call){{0,{_MOST_CALLS - 1}}}' if self._parallel else ""
            lines = [f"start: call{more}", f'call: {opening} "\\n" body "\\n" {closing}']
        lines.append("body: " + " | ".join(f"call{at}" for at in range(len(self._functions))))
        for at, function in enumerate(self._functions):
            head = json.dumps(f'{{"name": "{function.name}", "{self._form.arguments}": ')
            schema = embedded_schema(function.parameters, strict=function.strict)
            lines += [f'call{at}: {head} arguments{at} "}}"', f"arguments{at}: %json {schema}"]
        return grammars.lark("\n".join(lines))


def _spell(tag: str, tokenizer: Tokenizer) -> str:
    token = tokenizer.id_of(tag)
    return json.dumps(tag) if token is None else f"<[{token}]>"
