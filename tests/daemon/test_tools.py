"""What chat templates know of tools, and answers that have to be calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from tokenizers import AddedToken

from cuelight.daemon.calls import CallFormat
from cuelight.daemon.tools import Function, Tools, call_format
from cuelight.engine.chat import ChatTemplate
from cuelight.engine.grammar import Grammars
from cuelight.engine.tokenizer import Tokenizer
from cuelight.engine.weights import DEFAULT_MODEL, resolve
from cuelight.errors import GrammarError, InvalidArgument

TAGGED = CallFormat("<tool_call>", "</tool_call>", "arguments")
PLAIN = CallFormat("", "", "parameters")
ADD = Function(
    "add",
    {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/digit"}, "b": {"$ref": "#/$defs/digit"}},
        "required": ["a", "b"],
        "additionalProperties": False,
        "$defs": {"digit": {"type": "integer", "minimum": 0, "maximum": 9}},
    },
    strict=True,
)
NOW = Function("now-utc", {"type": "object", "additionalProperties": False}, strict=True)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer(resolve(DEFAULT_MODEL))


@pytest.fixture(scope="module")
def tagging(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """The same with tags that are tokens: one special, one not."""
    import tokenizers

    directory = tmp_path_factory.mktemp("tagging")
    made = tokenizers.Tokenizer.from_file(str(resolve(DEFAULT_MODEL) / "tokenizer.json"))
    made.add_special_tokens([AddedToken("<tool_call>", special=True)])
    made.add_tokens([AddedToken("</tool_call>", special=False)])
    made.save(str(directory / "tokenizer.json"))
    return Tokenizer(Path(directory))


@pytest.fixture(scope="module")
def grammars(tokenizer: Tokenizer) -> Grammars:
    return Grammars(tokenizer, tokenizer.size, (0, 2))


def write(tools: Tools, tokenizer: Tokenizer, grammars: Grammars, seed: int) -> str:
    """A random answer of the form that calls have, as its reader gets it."""
    grammar = tools.grammar(grammars, tokenizer)
    random, guide, mask = np.random.default_rng(seed), grammar.guide(), grammar.first_mask
    detokenizer, text = tokenizer.detokenizer(tools.shown(tokenizer)), ""
    for _ in range(600):
        tokens = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
        if np.isin((0, 2), tokens).any():
            return text
        token = int(random.choice(tokens))
        text += detokenizer.add(token)
        guide.accept(token)
        mask = guide.mask()
    pytest.fail(f"It has no end: {text}")


@pytest.mark.parametrize("form", [TAGGED, PLAIN])
@pytest.mark.parametrize("parallel", [False, True])
def test_an_answer_that_has_to_call_does(
    tokenizer: Tokenizer, grammars: Grammars, form: CallFormat, parallel: bool
) -> None:
    tools = Tools(form, [], [ADD, NOW], required=True, parallel=parallel)
    names = set()
    for seed in range(3):
        text, calls = tools.parser().whole(write(tools, tokenizer, grammars, seed))
        assert (text, len(calls)) == ("", 1)
        names.add(calls[0].name)
        schema = ADD.parameters if calls[0].name == "add" else NOW.parameters
        jsonschema.validate(json.loads(calls[0].arguments), schema)
    assert names == {"add", "now-utc"}


def test_tags_that_are_tokens_are_asked_for_as_such_and_seen(tagging: Tokenizer) -> None:
    tools = Tools(TAGGED, [], [ADD], required=True, parallel=True)
    opening, closing = tagging.id_of("<tool_call>"), tagging.id_of("</tool_call>")
    assert tools.shown(tagging) == {opening, closing}
    grammars = Grammars(tagging, tagging.size, (0, 2))
    grammar = tools.grammar(grammars, tagging)
    assert np.flatnonzero(np.unpackbits(grammar.first_mask.view(np.uint8), bitorder="little")).tolist() == [opening]
    text = write(tools, tagging, grammars, 1)
    assert text.startswith('<tool_call>\n{"name": "add", "arguments": ')
    assert text.endswith("}\n</tool_call>")
    assert [call.name for call in tools.parser().whole(text)[1]] == ["add"]


def test_a_function_whose_schema_cannot_be_held_to_is_refused_if_it_is_strict(
    tokenizer: Tokenizer, grammars: Grammars
) -> None:
    parameters: dict[str, Any] = {"type": "object", "properties": {"a": {"not": {}}}}
    with pytest.raises(GrammarError, match="not"):
        Tools(TAGGED, [], [Function("f", parameters, strict=True)], required=True, parallel=True).grammar(
            grammars, tokenizer
        )
    lenient = Tools(TAGGED, [], [Function("f", parameters, strict=False)], required=True, parallel=True)
    assert lenient.grammar(grammars, tokenizer).first_mask.any()


QWEN = "{% if tools %}{% for tool in tools %}{{ tool | tojson }}{% endfor %}<tool_call></tool_call>{% endif %}"
LLAMA = '{% if tools is not none %}<|python_tag|> {"name": function, "parameters": object} {{ tools }}{% endif %}'


@pytest.mark.parametrize(("source", "form"), [(QWEN, TAGGED), (LLAMA, PLAIN)])
def test_form_of_calls_follows_from_the_template(source: str, form: CallFormat) -> None:
    assert call_format(ChatTemplate(source, {})) == form


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("{{ messages }} <tool_call>", "knows no tools"),
        ("{% set tools = 3 %}{{ tools }}", "knows no tools"),
        ("{{ tools }} [TOOL_CALLS]", "not known here"),
        ("{{ tools }} <tool_call><function=f></tool_call>", "not known here"),
    ],
)
def test_templates_without_tools_or_with_unknown_calls_are_told(source: str, reason: str) -> None:
    with pytest.raises(InvalidArgument, match=reason):
        call_format(ChatTemplate(source, {}))


def test_a_template_is_given_the_tools() -> None:
    tools = [{"type": "function", "function": {"name": "add"}}]
    chat = [{"role": "user", "content": "x"}]
    assert ChatTemplate(QWEN, {}).render(chat, tools) == json.dumps(tools[0]) + "<tool_call></tool_call>"
    assert ChatTemplate(QWEN, {}).render(chat) == ""
