"""Grammars: what they let through is valid for a validator that nobody here wrote, and what cannot be is refused."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuelight.engine.grammar import MAX_DEPTH, MAX_PARTS, Grammar, Grammars
from cuelight.engine.tokenizer import Tokenizer
from cuelight.errors import GrammarError

EOS = (0, 2)
VOCABULARY = 49_152


@pytest.fixture(scope="module")
def tokenizer(smollm_directory: Path) -> Tokenizer:
    return Tokenizer(smollm_directory)


@pytest.fixture(scope="module")
def grammars(tokenizer: Tokenizer) -> Grammars:
    return Grammars(tokenizer, VOCABULARY, EOS)


def allowed(mask: np.ndarray[Any, np.dtype[np.uint32]]) -> list[int]:
    return np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist()


def write(grammar: Grammar, tokenizer: Tokenizer, seed: int, limit: int = 100) -> str | None:
    """Text of random tokens among those allowed, with a liking for what closes it; None if it did not end."""
    closing = [token for token in map(tokenizer.spelling.text, range(2000)) if token and not token.strip(b'"]}')]
    closers = np.array([tokenizer.encode(text.decode())[0] for text in closing])
    random, guide, mask = np.random.default_rng(seed), grammar.guide(), grammar.first_mask
    text = b""
    for _ in range(limit):
        tokens = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
        if np.isin(EOS, tokens).any() and (len(tokens) <= len(EOS) or random.random() < 0.5):
            return text.decode()
        closes = np.intersect1d(closers, tokens)
        choice = closes if len(closes) and random.random() < 0.4 else np.setdiff1d(tokens, EOS)
        token = int(random.choice(choice))
        assert tokenizer.spelling.text(token)
        text += tokenizer.spelling.text(token)
        guide.accept(token)
        mask = guide.mask()
    return None


SCALARS = st.sampled_from(
    [
        {"type": "boolean"},
        {"type": "null"},
        {"type": "integer", "minimum": -5, "maximum": 120},
        {"type": "number"},
        {"type": "string", "maxLength": 8},
        {"type": "string", "pattern": "^[a-c]{2,4}x?$"},
        {"enum": ["red", 3, None, "Grün"]},
        {"const": {"a": [1, "b"]}},
        {"type": ["string", "null"], "maxLength": 5},
    ]
)


def nested(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    def make_object(properties: dict[str, Any], required: int) -> dict[str, Any]:
        names = list(properties)
        return {
            "type": "object",
            "properties": properties,
            "required": names[:required],
            "additionalProperties": False,
        }

    objects = st.builds(
        make_object, st.dictionaries(st.sampled_from(["id", "näme", "a b", "x"]), inner, max_size=3), st.integers(0, 3)
    )
    arrays = st.builds(
        lambda items, low, more: {"type": "array", "items": items, "minItems": low, "maxItems": low + more},
        inner,
        st.integers(0, 2),
        st.integers(0, 2),
    )
    return objects | arrays | st.lists(inner, min_size=1, max_size=3).map(lambda any_of: {"anyOf": any_of})


@settings(max_examples=30, deadline=None)
@given(schema=st.recursive(SCALARS, nested, max_leaves=6), seed=st.integers(0, 1000))
def test_whatever_a_schema_lets_through_is_valid(
    grammars: Grammars, tokenizer: Tokenizer, schema: dict[str, Any], seed: int
) -> None:
    text = write(grammars.json_schema(schema), tokenizer, seed)
    if text is not None:
        jsonschema.validate(json.loads(text), schema)


def test_random_texts_end_often_enough_to_mean_something(grammars: Grammars, tokenizer: Tokenizer) -> None:
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 8},
            "tags": {"type": "array", "items": {"enum": [1, 2]}},
        },
        "required": ["name", "tags"],
        "additionalProperties": False,
    }
    texts = [write(grammars.json_schema(schema), tokenizer, seed) for seed in range(8)]
    ended = [text for text in texts if text is not None]
    assert len(ended) > 4
    assert len(set(ended)) > 3


def test_a_json_object_is_any_object(grammars: Grammars, tokenizer: Tokenizer) -> None:
    for text in ('{"a": [1, {"b": null}], "ü": "\\n"}', '{\n  "x": 1.5e3\n}', "{}"):
        guide = grammars.json_object().guide()
        for token in tokenizer.encode(text):
            assert token in allowed(guide.mask())
            guide.accept(token)
        assert set(allowed(guide.mask())) == set(EOS)
    for text in ("[1]", '"a"', " {}", "x"):
        assert tokenizer.encode(text)[0] not in allowed(grammars.json_object().first_mask)


def test_white_space_has_an_end(grammars: Grammars, tokenizer: Tokenizer) -> None:
    guide = grammars.json_object().guide()
    guide.accept(tokenizer.encode("{")[0])
    for _ in range(30):
        blank = [token for token in allowed(guide.mask()) if tokenizer.spelling.text(token).isspace()]
        if not blank:
            return
        guide.accept(blank[0])
    pytest.fail("It may go on for ever.")


def test_special_tokens_are_never_part_of_a_text(grammars: Grammars, tokenizer: Tokenizer) -> None:
    guide = grammars.json_schema({"type": "string"}).guide()
    guide.accept(tokenizer.encode('"')[0])
    assert len(allowed(guide.mask())) > 40_000
    assert not set(allowed(guide.mask())) & tokenizer.spelling.added


@pytest.mark.parametrize("text", ["<|im_end|>", "a<|im_start|>user", "Größe 東京 e\u0301", " \t 12345", "</s>"])
def test_a_demanded_text_is_spelled_out_as_text(grammars: Grammars, tokenizer: Tokenizer, text: str) -> None:
    written = json.dumps(text, ensure_ascii=False)
    guide, mask = grammars.json_schema({"const": text}).guide(), grammars.json_schema({"const": text}).first_mask
    spelled = b""
    while not set(tokens := allowed(mask)) & set(EOS):
        assert not set(tokens) & tokenizer.spelling.added
        token = max(tokens, key=lambda token: len(tokenizer.spelling.text(token)))
        spelled += tokenizer.spelling.text(token)
        guide.accept(token)
        mask = guide.mask()
    assert json.loads(spelled) == json.loads(written)


def test_guides_of_one_grammar_go_their_own_ways(grammars: Grammars, tokenizer: Tokenizer) -> None:
    grammar = grammars.json_schema({"enum": ["ab", "cd"]})
    first, second = grammar.guide(), grammar.guide()
    for guide, text in ((first, '"a'), (second, '"c')):
        for token in tokenizer.encode(text):
            guide.accept(token)
    assert not set(allowed(first.mask())) & set(allowed(second.mask()))
    assert np.array_equal(grammar.guide().mask(), grammar.first_mask)


def test_a_grammar_may_ask_for_special_tokens(grammars: Grammars, tokenizer: Tokenizer) -> None:
    guide = grammars.lark('start: <[1]> "a"').guide()
    assert allowed(guide.mask()) == [1]
    guide.accept(1)
    assert [tokenizer.spelling.text(token) for token in allowed(guide.mask())] == [b"a"]


CHAIN = {
    "$defs": {
        f"d{at}": {"type": "object", "properties": {"a": {"$ref": f"#/$defs/d{at + 1}"}}, "required": ["a"]}
        for at in range(1200)
    }
    | {"d1200": {"type": "null"}},
    "$ref": "#/$defs/d0",
}


def test_a_long_chain_of_references_does_not_end_the_process(grammars: Grammars, tokenizer: Tokenizer) -> None:
    before = threading.stack_size()
    guide = grammars.json_schema(CHAIN).guide()
    for token in tokenizer.encode('{"a":{"a":'):
        guide.accept(token)
    assert allowed(guide.mask())
    assert threading.stack_size() == before


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"items": schema}
    return schema


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "nonsense"}, "Invalid type"),
        ({"type": "array", "uniqueItems": True}, "uniqueItems"),
        ({"$ref": "https://example.com/schema"}, "not fetch"),
        ({"$ref": "#/nowhere"}, "nowhere"),
        ({"type": "string", "pattern": "("}, "unclosed"),
        ({"anyOf": []}, "Unsatisfiable"),
        (False, "object"),
        ({"type": "integer", "minimum": 5, "maximum": 3}, "minimum"),
        ({"type": "object", "required": ["a"], "additionalProperties": False}, "required"),
        ({"enum": [float("nan")]}, "JSON schema can't be used"),
        ({"enum": [[]] * MAX_PARTS}, "simplify"),
        (deep(MAX_DEPTH), "simplify"),
    ],
)
def test_schemas_that_cannot_be_held_to_are_refused(grammars: Grammars, schema: Any, reason: str) -> None:
    with pytest.raises(GrammarError, match=reason) as refusal:
        grammars.json_schema(schema)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 300


def test_what_is_not_strict_leaves_out_what_it_cannot_hold_to(grammars: Grammars) -> None:
    schema = {"type": "array", "items": {"oneOf": [{"type": "null"}, {"type": "integer"}]}, "uniqueItems": True}
    assert allowed(grammars.json_schema(schema, strict=False).first_mask)
    with pytest.raises(GrammarError):
        grammars.json_schema(schema)


def test_a_model_without_end_of_text_has_no_grammars(tokenizer: Tokenizer) -> None:
    with pytest.raises(GrammarError, match="no end of text"):
        Grammars(tokenizer, VOCABULARY, ()).json_object()


def test_a_token_that_was_not_allowed_is_an_error(grammars: Grammars, tokenizer: Tokenizer) -> None:
    guide = grammars.json_object().guide()
    with pytest.raises(GrammarError, match="format"):
        guide.accept(tokenizer.encode("x")[0])


def test_tokens_beyond_the_tokenizer_are_never_allowed(tokenizer: Tokenizer) -> None:
    wider = Grammars(tokenizer, VOCABULARY + 70, EOS).json_schema({"type": "string"})
    assert wider.first_mask.shape == ((VOCABULARY + 70 + 31) // 32,)
    guide = wider.guide()
    guide.accept(tokenizer.encode('"')[0])
    assert max(allowed(guide.mask())) < VOCABULARY
