"""The form that a chat's answers are to have: any text, JSON, or tool calls."""

from __future__ import annotations

import dataclasses
import functools

from cuelight.daemon.calls import CallParser
from cuelight.daemon.order import Order
from cuelight.daemon.schema.chat import ChatQuestion
from cuelight.daemon.schema.tools import NO_PARAMETERS, NamedTool, ObjectFormat, SchemaFormat
from cuelight.daemon.tools import Function, Tools, call_format
from cuelight.engine.grammar import Grammar
from cuelight.engine.language import Language
from cuelight.errors import InvalidArgument

__all__ = ["Form"]


class Form:
    """What a question says about the form of its answers.

    Parameters
    ----------
    language : Language
        Of the model that is asked.
    question : ChatQuestion
        The question.
    """

    def __init__(self, language: Language, question: ChatQuestion) -> None:
        self._language = language
        self._question = question

    @functools.cached_property
    def tools(self) -> Tools | None:
        """Tools that answers may call, if any.

        Raises
        ------
        InvalidArgument, ChatTemplateError
            The question contradicts itself, or its model can't call tools.
        """
        question = self._question
        choice = question.tool_choice
        if not question.tools:
            if choice not in (None, "none", "auto"):
                raise InvalidArgument("tool_choice asks for a call, and there are no tools; give some or leave it out.")
            return None
        if choice == "none":
            return None
        if isinstance(question.response_format, ObjectFormat | SchemaFormat):
            raise InvalidArgument(
                "An answer can't be a tool call and of a response_format; leave one out, or set tool_choice to none."
            )
        functions = [
            Function(tool.function.name, tool.function.parameters or NO_PARAMETERS, strict=bool(tool.function.strict))
            for tool in question.tools
        ]
        names = [function.name for function in functions]
        if len(set(names)) < len(names):
            raise InvalidArgument("Two tools have the same name; give each function one of its own.")
        if isinstance(choice, NamedTool):
            functions = [function for function in functions if function.name == choice.function.name]
            if not functions:
                raise InvalidArgument(
                    f"tool_choice names {choice.function.name!r}, which is not offered; add it to tools."
                )
        return Tools(
            call_format(self._language.template),
            [tool.plain for tool in question.tools],
            functions,
            required=choice not in (None, "auto"),
            parallel=question.parallel_tool_calls is not False and not isinstance(choice, NamedTool),
        )

    @property
    def shown(self) -> frozenset[int]:
        """Special tokens that are seen in the text."""
        return self.tools.shown(self._language.tokenizer) if self.tools else frozenset()

    def parser(self) -> CallParser | None:
        """Tell calls apart from text in one answer; None if there are none."""
        return self.tools.parser() if self.tools else None

    def demand(self, order: Order) -> Order:
        """The order with this form; takes a while the first time.

        Raises
        ------
        GrammarError
            A schema can't be held to.
        """
        return dataclasses.replace(order, grammar=self._grammar(), shown=self.shown)

    def _grammar(self) -> Grammar | None:
        grammars, asked = self._language.grammars, self._question.response_format
        if self.tools:
            return self.tools.grammar(grammars, self._language.tokenizer) if self.tools.required else None
        if isinstance(asked, SchemaFormat):
            return grammars.json_schema(asked.json_schema.body, strict=bool(asked.json_schema.strict))
        return grammars.json_object() if isinstance(asked, ObjectFormat) else None
