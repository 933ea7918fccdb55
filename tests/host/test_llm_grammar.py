"""Answers of a given form from a random model, which would write anything else: schemas hold, whatever goes wrong."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cuelight import LLM, Finish, Stream
from cuelight.errors import FormatNotKept, GrammarError, InvalidArgument

from .checks import WAIT_S, assert_at_rest, assert_identical, until

# The model's vocabulary has neither spaces nor anything beyond ASCII.
SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 0, "maximum": 999},
        "kind": {"enum": ["red", "green", None]},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 3}, "maxItems": 3},
        "next": {"$ref": "#/$defs/point"},
    },
    "required": ["id", "kind", "tags", "next"],
    "additionalProperties": False,
    "$defs": {
        "point": {
            "type": "object",
            "properties": {"x": {"type": "integer", "minimum": -9, "maximum": 9}, "on": {"type": "boolean"}},
            "required": ["on"],
            "additionalProperties": False,
        }
    },
}


@pytest.fixture(scope="module")
def llm(model: Path) -> Iterator[LLM]:
    with LLM.open(model, kv_positions=4096, layers_per_stage=1, threads=1) as llm:
        yield llm


def check(stream: Stream) -> Any:
    text = stream.text(WAIT_S)
    assert stream.finish is Finish.END_OF_TEXT
    value = json.loads(text)
    jsonschema.validate(value, SCHEMA)
    return value


def begin(llm: LLM, turn: int, **settings: Any) -> Stream:
    temperature = 1.5 * (turn % 2)
    return llm.generate(
        f"say{turn // 2}", 160, temperature=temperature, seed=turn, grammar=llm.grammars.json_schema(SCHEMA), **settings
    )


def test_many_answers_at_once_are_valid_and_each_is_what_it_is_alone(llm: LLM) -> None:
    together = [begin(llm, turn, tier=turn % 4) for turn in range(6)]
    free = [llm.generate("abc", 60, temperature=1.0, seed=turn) for turn in range(4)]
    values = [check(stream) for stream in together]
    assert len({json.dumps(value) for value in values}) > 3
    for turn, stream in enumerate(free):
        stream.text(WAIT_S)
        assert_identical(stream, llm.generate("abc", 60, temperature=1.0, seed=turn))
    for turn, stream in enumerate(together):
        alone = begin(llm, turn)
        check(alone)
        assert_identical(stream, alone)
    assert_at_rest(llm.device)


def test_samples_of_one_prompt_are_valid_each(llm: LLM) -> None:
    prompt = "abcdefgh" * 18
    grammar = llm.grammars.json_schema(SCHEMA)
    samples = llm.generate_samples(prompt, 3, 90, temperature=1.5, seed=7, grammar=grammar)
    values = [check(sample) for sample in samples]
    assert samples[1].request.start > 0
    assert len({json.dumps(value) for value in values}) > 1
    alone = llm.generate(prompt, 90, temperature=1.5, seed=8, grammar=grammar)
    assert check(alone) == values[1]


def test_filters_choose_among_what_is_allowed(llm: LLM) -> None:
    quote = llm.encode('"')[0]
    grammar = llm.grammars.json_schema({"type": "string", "minLength": 3, "maxLength": 30})
    bias = dict.fromkeys(llm.encode("x"), 50.0) | dict.fromkeys(llm.encode("{"), 100.0)
    text = llm.generate("a", 40, temperature=0.0, grammar=grammar, logit_bias=bias, top_k=1).text(WAIT_S)
    # A brace may not come first, however much it is wanted.
    assert text == '"' + "{" * 30 + '"'
    assert quote in llm.encode(text)


def test_a_killed_lane_changes_no_answer(llm: LLM) -> None:
    undisturbed = [begin(llm, turn) for turn in range(6)]
    for stream in undisturbed:
        check(stream)
    disturbed = [begin(llm, turn) for turn in range(6)]
    until(lambda: all(len(one.request.received) >= 5 for one in disturbed))
    os.kill(llm.lanes[0].pid, signal.SIGKILL)
    for stream, other in zip(disturbed, undisturbed, strict=True):
        check(stream)
        assert_identical(stream, other)
    assert max(stream.request.losses for stream in disturbed) > 0
    assert_at_rest(llm.device)


def test_an_answer_is_cut_off_at_its_limit_and_ended_by_a_cancel(llm: LLM) -> None:
    endless = llm.grammars.json_schema({"type": "string", "minLength": 500})
    short = llm.generate("a", 5, grammar=endless)
    assert len(short.text(WAIT_S)) >= 5
    assert short.finish is Finish.LENGTH
    with ThreadPoolExecutor(8) as pool:

        def work(turn: int) -> None:
            stream = llm.generate("a", 200, grammar=endless, seed=turn, temperature=1.0)
            for _, _ in zip(range(turn), stream.request.tokens(WAIT_S), strict=False):
                pass
            stream.cancel()
            stream.text(WAIT_S)
            assert stream.finish is Finish.CANCELLED

        for done in [pool.submit(work, turn) for turn in range(16)]:
            done.result(WAIT_S)
    assert_at_rest(llm.device)


def test_only_end_of_text_may_follow_what_is_complete(llm: LLM) -> None:
    stream = llm.generate("a", 10, grammar=llm.grammars.json_schema({"const": True}))
    assert stream.text(WAIT_S) == "true"
    tokens = stream.request.result(WAIT_S)
    assert [token.finish for token in tokens] == [None] * 4 + [Finish.END_OF_TEXT]


def test_a_format_that_the_vocabulary_cannot_spell_fails_alone(llm: LLM) -> None:
    beside = llm.generate("abc", 100)
    stuck = llm.generate("a", 40, grammar=llm.grammars.json_schema({"const": "ab\u00e9"}))
    with pytest.raises(FormatNotKept, match="format"):
        stuck.text(WAIT_S)
    assert stuck.request.received
    with pytest.raises(GrammarError, match="format"):
        llm.grammars.lark('start: "é"')
    beside.text(WAIT_S)
    assert_at_rest(llm.device)


def test_a_step_is_the_grammars_or_the_hosts(llm: LLM) -> None:
    with pytest.raises(InvalidArgument, match="leave stepped out"):
        llm.generate("a", 5, stepped=True, grammar=llm.grammars.json_object())
