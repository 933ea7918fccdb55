"""Tool calls told apart from text, whole and in random pieces."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuelight.daemon.calls import Call, CallFormat, CallParser, CallPart, Said

TAGGED = CallFormat("<tool_call>", "</tool_call>", "arguments")
PLAIN = CallFormat("", "", "parameters")
NAMES = ("weather", "add")


def parse(form: CallFormat, *pieces: str) -> tuple[str, list[tuple[str, str]]]:
    """Text and calls of an answer that comes in pieces; checks what holds for each part."""
    parser = CallParser(form, NAMES)
    said = [*map(parser.add, pieces), parser.end()]
    calls: list[CallPart] = []
    for part in (part for one in said for part in one.calls):
        if part.name is not None:
            assert part.call == len(calls)
            assert part.id
            calls.append(part)
        else:
            assert part.id is None
            assert part.call == len(calls) - 1
            assert part.arguments
            calls[-1] = calls[-1]._replace(arguments=calls[-1].arguments + part.arguments)
    assert parser.calls == len(calls)
    assert len({call.id for call in calls}) == len(calls)
    return "".join(one.text for one in said), [(call.name or "", call.arguments) for call in calls]


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('a"\\{}[]</tool_call>é\n', max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
CALLS = st.tuples(st.sampled_from(NAMES), st.dictionaries(st.text(max_size=4), VALUES, max_size=3))
TEXTS = st.text("ab </tool_call>\n{é", max_size=12).filter(lambda text: "<tool_call>" not in text)


@st.composite
def cut(draw: st.DrawFn, text: str) -> list[str]:
    borders = sorted(draw(st.sets(st.integers(0, len(text)), max_size=12)) | {0, len(text)})
    return [text[start:end] for start, end in itertools.pairwise(borders)]


@settings(max_examples=30, deadline=None)
@given(data=st.data(), parts=st.lists(TEXTS | st.lists(CALLS, min_size=1, max_size=2), max_size=4))
def test_calls_come_out_of_any_pieces_as_they_went_in(data: st.DataObject, parts: list[Any]) -> None:
    indent, ascii_only = data.draw(st.sampled_from([None, 1])), data.draw(st.booleans())
    answer, text, calls = "", "", []
    for part in parts:
        if isinstance(part, str):
            answer += part
            text += part
            continue
        bodies = [
            json.dumps({"name": name, "arguments": arguments}, indent=indent, ensure_ascii=ascii_only)
            for name, arguments in part
        ]
        answer += f"<tool_call>\n{bodies[0] if len(bodies) == 1 else '[' + ', '.join(bodies) + ']'}\n</tool_call>"
        calls += part
    found, made = parse(TAGGED, *data.draw(cut(answer)))
    assert [(name, json.loads(arguments)) for name, arguments in made] == calls
    # White space beside calls is no text.
    assert found.split() == text.split() or "".join(found.split()) == "".join(text.split())
    if not calls:
        assert found == text


@settings(deadline=None)
@given(data=st.data(), text=st.text('{}[]"\\,: abname/tool_call<>rgumentsf\n', max_size=60))
def test_how_any_text_is_cut_makes_no_difference(data: st.DataObject, text: str) -> None:
    for form in (TAGGED, PLAIN):
        assert parse(form, *data.draw(cut(text))) == parse(form, text)


BROKEN = [
    "<tool_call>",
    '<tool_call>\n{"name": "weather"',
    '<tool_call>{"name": "unknown", "arguments": {}}</tool_call>',
    '<tool_call>{"name": 3, "arguments": {}}</tool_call>',
    '<tool_call>{"name": "add", "city": {}}</tool_call> and on',
    "<tool_call>{name: add}</tool_call>",
    "<tool_call>the weather</tool_call>",
    '<tool_call>{"arguments": {}}</tool_call>',
    "<tool_call></tool_call>",
    "a < b <tool",
    " \n ",
]


@pytest.mark.parametrize("text", BROKEN)
def test_what_only_looks_like_a_call_stays_text(text: str) -> None:
    assert parse(TAGGED, text) == (text, [])
    assert parse(TAGGED, *text) == (text, [])


def test_a_call_behind_a_broken_one_counts() -> None:
    text = '<tool_call>{"a"</tool_call>\n<tool_call>{"name": "add", "arguments": {}}</tool_call>\n'
    assert parse(TAGGED, *text) == ('<tool_call>{"a"</tool_call>', [("add", "{}")])


def test_arguments_come_while_they_are_written() -> None:
    parser = CallParser(TAGGED, NAMES)
    assert parser.add("Let me see.\n<tool") == Said("Let me see.", ())
    assert parser.add('_call>\n{"name": "weather", ') == Said("", ())
    begin, part = parser.add('"arguments": {"city": "Par').calls
    assert (begin.call, begin.name, begin.arguments) == (0, "weather", "")
    assert part == CallPart(0, None, None, '{"city": "Par')
    assert parser.add('is"}').calls == (CallPart(0, None, None, 'is"}'),)
    assert parser.add("}\n</tool_call> Done") == Said("Done", ())


def test_an_answer_that_is_cut_off_keeps_what_there_is_of_a_call() -> None:
    text = '<tool_call>{"name": "weather", "arguments": {"city": "Pa'
    assert parse(TAGGED, *text) == ("", [("weather", '{"city": "Pa')])


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ('{"arguments": {"a": 1}, "name": "add"}', ("add", '{"a": 1}')),
        ('{"name": "add", "arguments": "{\\"a\\": 1}"}', ("add", '{"a": 1}')),
        ('{"type": "function", "id": "x</tool_call>", "name": "add"}', ("add", "{}")),
        ('{"name": "add", "arguments": {"a": "}</tool_call>\\""}, "id": 3}', ("add", '{"a": "}</tool_call>\\""}')),
    ],
)
def test_members_may_come_in_any_order_and_hold_anything(text: str, call: tuple[str, str]) -> None:
    for pieces in ([f"<tool_call>{text}</tool_call>"], f"<tool_call>{text}</tool_call>"):
        assert parse(TAGGED, *pieces) == ("", [call])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"name": "add", "parameters": {"a": 1}}', ("", [("add", '{"a": 1}')])),
        (
            '\n{"name": "add", "parameters": {}}; {"name": "weather", "parameters": {"c": [1]}}',
            ("", [("add", "{}"), ("weather", '{"c": [1]}')]),
        ),
        ('[{"name": "add", "parameters": {}}]', ("", [("add", "{}")])),
        ('{"name": "add", "parameters": {}} So it is.', ("So it is.", [("add", "{}")])),
        ('{"answer": 42}', ('{"answer": 42}', [])),
        ("[1, 2]", ("[1, 2]", [])),
        ('No: {"name": "add", "parameters": {}}', ('No: {"name": "add", "parameters": {}}', [])),
        ('  {"name": "add"', ('  {"name": "add"', [])),
    ],
)
def test_a_whole_answer_may_be_calls_without_tags(text: str, expected: tuple[str, list[tuple[str, str]]]) -> None:
    assert parse(PLAIN, text) == expected
    assert parse(PLAIN, *text) == expected


def test_json_that_is_no_call_is_passed_on_as_soon_as_that_shows() -> None:
    parser = CallParser(PLAIN, NAMES)
    assert parser.add('{"answer": ') == Said('{"answer":', ())
    assert parser.add("42}") == Said(" 42}", ())


def test_a_whole_answer_is_parsed_at_once() -> None:
    text = 'Yes. <tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>'
    said, calls = CallParser(TAGGED, NAMES).whole(text)
    assert (said, [call._replace(id="") for call in calls]) == ("Yes.", [Call("", "add", '{"a": 1}')])
