"""A chat's text encoded part by part: as a whole, it has the same token ids."""

from __future__ import annotations

from pathlib import Path

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, models, normalizers, pre_tokenizers

from cuelight.engine.parts import PartEncoder
from cuelight.engine.tokenizer import Tokenizer

MARKS = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]


@pytest.fixture(scope="module")
def smollm_tokenizer(smollm_directory: Path) -> Tokenizer:
    return Tokenizer(smollm_directory)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from([*MARKS, " ", "\n", "user\n", "<|", "|>", "12", "’s"]) | st.text(max_size=8)).map("".join)
)
def test_a_chat_has_the_ids_of_its_whole_text(smollm_tokenizer: Tokenizer, text: str) -> None:
    assert smollm_tokenizer.encode_chat(text) == smollm_tokenizer.encode(text, opening=False)


def test_a_long_part_has_them_too(smollm_tokenizer: Tokenizer) -> None:
    text = MARKS[0] + "Lights go. " * 1000 + MARKS[1]
    assert smollm_tokenizer.encode_chat(text) == smollm_tokenizer.encode(text, opening=False)


def make_tokenizer(
    marks: list[AddedToken],
    pre_tokenizer: pre_tokenizers.PreTokenizer | None = None,
    normalizer: normalizers.Normalizer | None = None,
) -> tokenizers.Tokenizer:
    """One with a token for each letter, and one for two letters with a space, or its mark, in front."""
    letters = sorted({*pre_tokenizers.ByteLevel.alphabet(), "▁"})
    vocabulary = {piece: at for at, piece in enumerate([*letters, "Ġa", "▁a", "aa"])}
    merges = [("Ġ", "a"), ("▁", "a"), ("a", "a")]
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.add_tokens(marks)
    return tokenizer


BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False)
TOKENIZERS = {
    "one mark begins another": make_tokenizer(
        [AddedToken(mark, normalized=False) for mark in ("<a>", "<a><b>", "<b>")], BYTES
    ),
    "one mark ends another": make_tokenizer([AddedToken(mark, normalized=False) for mark in ("a>", "<<a>")], BYTES),
    "a space before each part": make_tokenizer(
        [AddedToken("<a>", normalized=False)], pre_tokenizers.ByteLevel(add_prefix_space=True)
    ),
    "marks take spaces behind them": make_tokenizer([AddedToken("<a>", normalized=False, rstrip=True)], BYTES),
    "marks take spaces before them": make_tokenizer([AddedToken("<a>", normalized=False, lstrip=True)], BYTES),
    "marks are words": make_tokenizer([AddedToken("a", normalized=False, single_word=True)], BYTES),
    "marks are found late": make_tokenizer(
        [AddedToken("<a>"), AddedToken("<b>", normalized=False)], BYTES, normalizers.NFC()
    ),
    "the beginning is marked": make_tokenizer(
        [AddedToken("<a>", normalized=False)], pre_tokenizers.Metaspace(prepend_scheme="first")
    ),
    "steps in sequence": make_tokenizer(
        [AddedToken("<a>", normalized=False)],
        pre_tokenizers.Sequence([pre_tokenizers.Digits(), BYTES]),
        normalizers.Sequence([normalizers.NFC()]),
    ),
    "the normalizer strips": make_tokenizer([AddedToken("<a>", normalized=False)], BYTES, normalizers.Strip()),
    "no marks": make_tokenizer([], BYTES),
}


@pytest.mark.parametrize("kind", TOKENIZERS)
@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from(["<a>", "<a><b>", "<<a>", "<b>", "<", "a", "e\N{COMBINING ACUTE ACCENT}", " ", "  ", "1"])
    ).map("".join)
)
def test_ids_do_not_depend_on_how_a_tokenizer_treats_parts(kind: str, text: str) -> None:
    tokenizer = TOKENIZERS[kind]
    assert PartEncoder(tokenizer).encode(text) == tokenizer.encode(text, add_special_tokens=False).ids
