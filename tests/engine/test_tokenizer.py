"""The tokenizer built from GGUF metadata, against byte-level BPE written out in Python."""

from __future__ import annotations

import json
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import regex  # type: ignore[import-untyped]
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cuelight.engine.gguf_tokenizer import tokenizer_from_metadata
from cuelight.engine.tokenizer import Tokenizer
from cuelight.errors import ModelFileError, UnsupportedModel

GPT2_WORDS = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")


@cache
def byte_letters() -> dict[int, str]:
    """GPT-2's letter for each byte: itself if printable, else the next unused code point from 256."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + rank) for rank, byte in enumerate(others)}


class PlainBpe:
    """The SmolLM tokenizer as a specification: cut at digits, cut into words, merge by rank."""

    def __init__(self, directory: Path) -> None:
        described = json.loads((directory / "tokenizer.json").read_text())
        self.vocabulary: dict[str, int] = described["model"]["vocab"]
        self.ranks = {tuple(pair): rank for rank, pair in enumerate(described["model"]["merges"])}
        self.special = sorted((token["content"] for token in described["added_tokens"]), key=len, reverse=True)

    def encode(self, text: str) -> list[int]:
        ids = []
        for piece in regex.split("(" + "|".join(map(regex.escape, self.special)) + ")", text):
            if piece in self.special:
                ids.append(self.vocabulary[piece])
            else:
                for part in regex.findall(r"\p{N}|[^\p{N}]+", piece):
                    for word in GPT2_WORDS.findall(part):
                        ids.extend(self.merge(word))
        return ids

    def merge(self, word: str) -> list[int]:
        # A byte whose letter is not in the vocabulary has no token; its neighbours meet.
        parts = [letter for letter in map(byte_letters().get, word.encode()) if letter in self.vocabulary]
        while len(parts) > 1:
            ranked = [(self.ranks[pair], at) for at, pair in enumerate(pairwise(parts)) if pair in self.ranks]
            if not ranked:
                break
            at = min(ranked)[1]
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return [self.vocabulary[part] for part in parts]


@pytest.fixture(scope="module")
def tokenizer(smollm_directory: Path) -> Tokenizer:
    return Tokenizer(smollm_directory)


@pytest.fixture(scope="module")
def specification(smollm_directory: Path) -> PlainBpe:
    return PlainBpe(smollm_directory)


TEXTS = [
    "",
    "Hello, world!",
    "It's 12:45 on 3 May 2024; we'll pay $1,234.50",
    "  leading,   inner\n\n\ttabs and trailing   ",
    "naïve café – “quotes” … 東京 مرحبا 🎭👩‍👩‍👧",
    "<|im_start|>user\nhi<|im_end|>\n<|endoftext|>",
    "x = [i**2 for i in range(10)]  # squares\r\n",
    "½ Ⅷ ٣ 10⁶",
]


@pytest.mark.parametrize("text", TEXTS)
def test_ids_follow_the_specification(text: str, tokenizer: Tokenizer, specification: PlainBpe) -> None:
    assert tokenizer.encode(text) == specification.encode(text)
    assert tokenizer.decode(tokenizer.encode(text), special=True) == text


@settings(max_examples=300, deadline=None)
@given(
    text=st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from(" '\n\t0123456789abcdest<|>"), max_size=60)
)
@example(text='"\x16{')
def test_ids_of_any_text_follow_the_specification(text: str, tokenizer: Tokenizer, specification: PlainBpe) -> None:
    assert tokenizer.encode(text) == specification.encode(text)


def test_special_tokens_are_hidden_in_text_unless_asked_for(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("<|im_start|>yes<|im_end|>")
    assert tokenizer.decode(ids) == "yes"
    assert tokenizer.decode(ids, special=True) == "<|im_start|>yes<|im_end|>"
    assert tokenizer.text_of(2) == "<|im_end|>"
    assert tokenizer.text_of(10**6) is None
    assert tokenizer.size == 49152


def metadata(**fields: object) -> dict[str, object]:
    letters = [*byte_letters().values()]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": ["<s>", *letters, "th", "the", "<user>"],
        "tokenizer.ggml.token_type": [3, *([1] * 258), 4],
        "tokenizer.ggml.merges": ["t h", "th e"],
        "tokenizer.ggml.bos_token_id": 0,
    } | fields


def test_opening_token_is_put_in_front_where_the_file_says_so() -> None:
    plain = tokenizer_from_metadata(metadata(), Path("a.gguf"))
    opened = tokenizer_from_metadata(metadata(**{"tokenizer.ggml.add_bos_token": True}), Path("a.gguf"))
    assert plain.encode("the").tokens == ["the"]
    assert opened.encode("the").tokens == ["<s>", "the"]
    assert opened.encode("the", add_special_tokens=False).tokens == ["the"]
    assert plain.encode("<user>the").tokens == ["<user>", "the"]
    assert plain.decode(plain.encode("<s><user>the").ids) == "<user>the"


def test_llama3_rule_keeps_three_digits_together() -> None:
    tokens = ["<s>", *byte_letters().values(), "12", "123"]
    fields = {
        "tokenizer.ggml.pre": "llama-bpe",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3, *([1] * 258)],
        "tokenizer.ggml.merges": ["1 2", "12 3"],
    }
    tokenizer = tokenizer_from_metadata(metadata(**fields), Path("a.gguf"))
    assert tokenizer.encode("12312").tokens == ["<s>", "123", "12"]


def test_qwen2_rule_parts_digits_and_composes_accents() -> None:
    tokens = ["<s>", *byte_letters().values(), "12", "\u00c3\u00a9"]
    fields = {
        "tokenizer.ggml.pre": "qwen2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3, *([1] * 258)],
        "tokenizer.ggml.merges": ["1 2", "\u00c3 \u00a9"],
    }
    tokenizer = tokenizer_from_metadata(metadata(**fields), Path("a.gguf"))
    assert tokenizer.encode("12").tokens == ["1", "2"]
    assert tokenizer.encode("e\u0301").tokens == ["\u00c3\u00a9"]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"tokenizer.ggml.model": "llama"}, UnsupportedModel),
        ({"tokenizer.ggml.pre": "unheard-of"}, UnsupportedModel),
        ({"tokenizer.ggml.tokens": None}, ModelFileError),
        ({"tokenizer.ggml.token_type": [1]}, ModelFileError),
        ({"tokenizer.ggml.merges": None}, ModelFileError),
        ({"tokenizer.ggml.merges": ["lonely"]}, ModelFileError),
        ({"tokenizer.ggml.merges": ["q z"]}, ModelFileError),
        ({"tokenizer.ggml.tokens": ["a"] * 260}, ModelFileError),
    ],
)
def test_other_or_damaged_vocabularies_are_refused(fields: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error, match=r"a\.gguf"):
        tokenizer_from_metadata(metadata(**fields), Path("a.gguf"))


@pytest.mark.parametrize("content", [None, "", "{}", '{"model": 3}'])
def test_damaged_tokenizer_file_is_refused(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(ModelFileError, match=r"tokenizer\.json"):
        Tokenizer(tmp_path)
