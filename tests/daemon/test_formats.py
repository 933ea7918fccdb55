"""Answers in the form that clients ask for: JSON, calls of tools, up to a stop string; with OpenAI's own client."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import openai
import pytest

from cuelight import LLM

from .asking import chat, finishes, text_of

SCHEMA = {
    "type": "object",
    "properties": {"id": {"type": "integer", "minimum": 0, "maximum": 99}, "kind": {"enum": ["a b", "é"]}},
    "required": ["id", "kind"],
    "additionalProperties": False,
}
JSON = {"type": "json_schema", "json_schema": {"name": "thing", "schema": SCHEMA, "strict": True}}


def offer(name: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters, "strict": True}}


ADD = offer(
    "add",
    {
        "type": "object",
        "properties": {"id": {"$ref": "#/$defs/digit"}, "kind": {"const": "x"}},
        "required": ["id", "kind"],
        "additionalProperties": False,
        "$defs": {"digit": {"type": "integer", "minimum": 0, "maximum": 9}},
    },
)
NOW = offer("now")


def calls_of(chunks: list[Any]) -> list[dict[str, str]]:
    """Calls of a streamed answer, put together as clients do."""
    calls: list[dict[str, str]] = []
    for delta in (choice.delta for chunk in chunks for choice in chunk.choices):
        for part in delta.tool_calls or []:
            if part.id:
                assert part.index == len(calls)
                assert part.type == "function"
                calls.append({"name": part.function.name, "arguments": ""})
            calls[part.index]["arguments"] += part.function.arguments or ""
    return calls


@pytest.mark.parametrize("seed", range(2))
def test_a_schema_holds_streamed_and_whole(client: openai.OpenAI, seed: int) -> None:
    fields: dict[str, Any] = {"response_format": JSON, "temperature": 1.5, "seed": seed, "max_tokens": 200}
    (choice,) = chat(client, **fields).choices
    assert choice.finish_reason == "stop"
    jsonschema.validate(json.loads(choice.message.content), SCHEMA)
    chunks = list(chat(client, stream=True, **fields))
    assert text_of(chunks) == choice.message.content
    assert finishes(chunks) == ["stop"]


def test_answers_to_one_question_are_json_each(client: openai.OpenAI) -> None:
    fields: dict[str, Any] = {"response_format": JSON, "temperature": 1.5, "seed": 5, "max_tokens": 200, "n": 3}
    choices = chat(client, **fields).choices
    for choice in choices:
        jsonschema.validate(json.loads(choice.message.content), SCHEMA)
    chunks = list(chat(client, stream=True, **fields))
    assert [text_of(chunks, index) for index in range(3)] == [choice.message.content for choice in choices]


def test_a_json_object_is_one_or_the_beginning_of_one(client: openai.OpenAI) -> None:
    (choice,) = chat(client, response_format={"type": "json_object"}, max_tokens=40, temperature=1.0, seed=1).choices
    assert choice.message.content.startswith("{")
    if choice.finish_reason == "stop":
        assert isinstance(json.loads(choice.message.content), dict)


@pytest.mark.parametrize("seed", range(2))
def test_an_answer_that_has_to_call_does_streamed_and_whole(client: openai.OpenAI, seed: int) -> None:
    fields: dict[str, Any] = {
        "tools": [ADD, NOW],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "temperature": 1.5,
        "seed": seed,
        "max_tokens": 200,
    }
    (choice,) = chat(client, **fields).choices
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", None)
    (call,) = choice.message.tool_calls
    assert call.id
    function = next(tool["function"] for tool in (ADD, NOW) if tool["function"]["name"] == call.function.name)
    jsonschema.validate(json.loads(call.function.arguments), function["parameters"] or {"maxProperties": 0})
    chunks = list(chat(client, stream=True, **fields))
    assert calls_of(chunks) == [{"name": call.function.name, "arguments": call.function.arguments}]
    assert finishes(chunks) == ["tool_calls"]
    assert text_of(chunks) == ""


def test_a_named_tool_is_called_and_no_other(client: openai.OpenAI) -> None:
    choice: Any = {"type": "function", "function": {"name": "now"}}
    for seed in range(2):
        answer = chat(client, tools=[ADD, NOW], tool_choice=choice, temperature=1.5, seed=seed, max_tokens=200)
        assert [call.function.name for call in answer.choices[0].message.tool_calls] == ["now"]


def test_several_calls_may_be_made_at_once(client: openai.OpenAI) -> None:
    # As unlikely as end of text may be made: it comes when nothing else may.
    fields: dict[str, Any] = {
        "tools": [NOW],
        "tool_choice": "required",
        "max_tokens": 600,
        "logit_bias": {"0": -100, "2": -100},
    }
    chunks = list(chat(client, stream=True, **{**fields, "temperature": 1.5, "seed": 1}))
    assert [call["name"] for call in calls_of(chunks)] == ["now"] * 8
    assert finishes(chunks) == ["tool_calls"]


def test_tools_that_nobody_calls_change_nothing_but_the_prompt(client: openai.OpenAI, llm: LLM) -> None:
    tools = [{"type": "function", "function": {"name": "now", "description": "", "parameters": {"type": "object"}}}]
    said = [{"role": "user", "content": "abc"}]
    prompt = llm.encode(said, tools)
    expected = llm.tokenizer.decode([token.token for token in llm.submit(prompt, 30, temperature=0).result()])
    answer = chat(client, tools=tools, max_tokens=30)
    assert answer.usage.prompt_tokens == len(prompt)
    assert answer.choices[0].message.content == expected
    unused = chat(client, tools=tools, tool_choice="none", max_tokens=30)
    assert unused.usage.prompt_tokens == len(llm.encode(said))


def test_calls_and_their_results_are_part_of_the_chat(client: openai.OpenAI, llm: LLM) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    messages = [
        {"role": "user", "content": "abc"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "2"},
    ]
    answer = chat(client, messages=messages, max_tokens=5)
    expected = (
        "<|im_start|>user:abc<|im_end|>"
        '<|im_start|>assistant:<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call><|im_end|>'
        "<|im_start|>tool:2<|im_end|>"
    )
    assert answer.usage.prompt_tokens == len(llm.tokenizer.encode(expected, opening=False))


def test_log_probabilities_come_with_the_text_of_json(client: openai.OpenAI) -> None:
    fields: dict[str, Any] = {"response_format": JSON, "max_tokens": 200, "logprobs": True, "top_logprobs": 2}
    (choice,) = chat(client, **fields).choices
    assert b"".join(bytes(one.bytes) for one in choice.logprobs.content).decode() == choice.message.content
    chunks = list(chat(client, stream=True, **fields))
    told = [chunk.choices[0].logprobs for chunk in chunks]
    streamed = [one for logprobs in told if logprobs for one in logprobs.content or []]
    assert [one.token for one in streamed] == [one.token for one in choice.logprobs.content]
    assert all(len(one.top_logprobs) == 2 for one in streamed)


def test_a_stop_string_ends_json_too(client: openai.OpenAI) -> None:
    for stream in (False, True):
        answer = chat(client, response_format=JSON, max_tokens=200, stop='","', temperature=1.5, seed=3, stream=stream)
        if stream:
            chunks = list(answer)
            text, finish = text_of(chunks), finishes(chunks)
        else:
            text, finish = answer.choices[0].message.content, [answer.choices[0].finish_reason]
        assert '","' not in text
        assert finish == ["stop"]
    full = chat(client, response_format=JSON, max_tokens=200, temperature=1.5, seed=3).choices[0].message.content
    cut = chat(client, response_format=JSON, max_tokens=200, temperature=1.5, seed=3, stop=['"kind"', "zz"])
    assert cut.choices[0].message.content == full[: full.index('"kind"')]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"response_format": {"type": "yaml"}}, "response_format"),
    ({"response_format": {"type": "json_schema"}}, "json_schema"),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"strict": True, "schema": {"not": {}}}}},
        "JSON schema can't be used",
    ),
    ({"response_format": JSON, "tools": [NOW]}, "leave one out"),
    ({"tool_choice": "required"}, "there are no tools"),
    ({"tools": [NOW, NOW]}, "the same name"),
    ({"tools": [NOW], "tool_choice": {"type": "function", "function": {"name": "never"}}}, "is not offered"),
    ({"tools": [offer("no spaces")]}, "name"),
    ({"tools": [{"type": "retrieval"}]}, "tools"),
    ({"tools": [offer("f", {"type": "nonsense"})], "tool_choice": "required"}, "can't be used"),
]


@pytest.mark.parametrize(("fields", "reason"), WRONG)
def test_forms_that_cannot_be_are_the_clients_mistake(
    client: openai.OpenAI, fields: dict[str, Any], reason: str
) -> None:
    with pytest.raises(openai.BadRequestError, match=reason):
        chat(client, max_tokens=5, **fields)


def test_an_answer_that_can_not_go_on_in_its_format_is_no_bad_request(client: openai.OpenAI) -> None:
    """The vocabulary spells but the first half of the word's last letter."""
    form = {"type": "json_schema", "json_schema": {"name": "word", "schema": {"const": "ab\u00ff"}, "strict": True}}
    with pytest.raises(openai.UnprocessableEntityError, match="kept to its format") as refusal:
        chat(client, response_format=form)
    assert refusal.value.code == "format_not_kept"
    with pytest.raises(openai.APIError, match="kept to its format") as cut:
        list(chat(client, response_format=form, stream=True))
    assert cut.value.code == "format_not_kept"
