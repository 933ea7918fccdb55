"""Messages of a chat -> prompt, by the model's own template, which is run in a sandbox."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

import jinja2
import jinja2.meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from cuelight.engine.config import read_json
from cuelight.errors import ChatTemplateError

__all__ = ["ChatTemplate"]


class ChatTemplate:
    """A model's chat template.

    Parameters
    ----------
    source
        Jinja text.
    tokens
        What templates may ask for: bos_token, eos_token, ….

    Attributes
    ----------
    source : str
        Jinja text.
    takes_tools : bool
        Whether it can tell a model of functions to call.

    Raises
    ------
    ChatTemplateError
        The text is no template.
    """

    def __init__(self, source: str, tokens: Mapping[str, str]) -> None:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _refuse
        environment.globals["strftime_now"] = _now
        self.source = source
        try:
            self._template = environment.from_string(source)
            # In one dictionary, as rendering copies them.
            self._template.globals = {**self._template.globals, **tokens}
            self.takes_tools = "tools" in jinja2.meta.find_undeclared_variables(environment.parse(source))
        except jinja2.TemplateError as error:
            raise ChatTemplateError(
                f"The model's chat template is damaged ({error}); fetch the model again."
            ) from error

    @classmethod
    def load(cls, directory: Path) -> ChatTemplate:
        """Read the template of the model in `directory`.

        Raises
        ------
        ChatTemplateError
            The model has none.
        ModelFileError
            A file is damaged.
        """
        settings: dict[str, Any] = {}
        if (directory / "tokenizer_config.json").exists():
            settings = read_json(directory / "tokenizer_config.json")
        tokens = {}
        for name in ("bos_token", "eos_token", "unk_token", "pad_token"):
            value = settings.get(name)
            tokens[name] = str(value.get("content", "") if isinstance(value, dict) else value or "")
        source = _read_template(directory / "chat_template.jinja") or settings.get("chat_template")
        if isinstance(source, list):
            entries = [entry for entry in source if isinstance(entry, dict)]
            source = next((entry.get("template") for entry in entries if entry.get("name") == "default"), None)
        if not isinstance(source, str):
            raise ChatTemplateError(f"The model in {directory} has no chat template; give it a prompt, not messages.")
        return cls(source, tokens)

    def render(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None = None) -> str:
        """Prompt that asks for the answer to `messages`.

        Parameters
        ----------
        messages
            Each with `role` and `content`, and whatever else the template knows.
        tools
            Functions that the answer may call, in OpenAI's form.

        Raises
        ------
        ChatTemplateError
            A message lacks a part, or the template refuses them.
        """
        for index, message in enumerate(messages):
            if not all(isinstance(message.get(part), str) for part in ("role", "content")):
                raise ChatTemplateError(f"Message {index} lacks role or content; give both as text.")
        if not messages:
            raise ChatTemplateError("A chat needs at least one message; add one with role and content.")
        plain = [dict(message) for message in messages]
        try:
            return self._template.render(messages=plain, tools=tools, add_generation_prompt=True)
        except (jinja2.TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise ChatTemplateError(f"The model's chat template refuses these messages: {error}.") from error


def _read_template(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8") if path.exists() else None
    except (OSError, ValueError) as error:
        raise ChatTemplateError(f"{path} can't be read ({error}); fetch the model again.") from error


def _to_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _refuse(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _now(pattern: str) -> str:
    return datetime.now().strftime(pattern)
