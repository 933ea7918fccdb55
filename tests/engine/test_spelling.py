"""Bytes of tokens, against the text that the tokenizers package makes of whole sequences."""

from __future__ import annotations

from pathlib import Path

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, decoders, models

from cuelight.engine.spelling import Spelling
from cuelight.engine.tokenizer import Tokenizer

SENTENCEPIECE = decoders.Sequence(
    [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
)


def make_tokenizer(decoder: decoders.Decoder | None, *words: str) -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab={word: at for at, word in enumerate(words)}, merges=[]))
    if decoder is not None:
        tokenizer.decoder = decoder
    return tokenizer


@pytest.fixture(scope="module")
def smollm(smollm_directory: Path) -> Tokenizer:
    return Tokenizer(smollm_directory)


@settings(max_examples=50, deadline=None)
@given(ids=st.lists(st.integers(0, 49151), max_size=40))
def test_byte_level_tokens_add_up_to_what_the_package_decodes(smollm: Tokenizer, ids: list[int]) -> None:
    spelled = b"".join(map(smollm.spelling.text, ids))
    assert spelled.decode("utf-8", "replace") == smollm.decode(ids)
    written = b"".join(map(smollm.spelling.written, ids))
    assert written.decode("utf-8", "replace") == smollm.decode(ids, special=True)


@settings(max_examples=50, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back_through_the_detokenizer(smollm: Tokenizer, text: str) -> None:
    detokenizer = smollm.detokenizer()
    pieces = [detokenizer.add(token) for token in smollm.encode(text)]
    assert "".join(pieces) + detokenizer.flush() == smollm.decode(smollm.encode(text))


def test_special_tokens_are_no_text(smollm: Tokenizer) -> None:
    assert smollm.spelling.special == frozenset(range(17))
    assert smollm.spelling.text(2) == b""
    assert smollm.spelling.written(2) == b"<|im_end|>"
    assert smollm.spelling.text(10**6) == smollm.spelling.written(10**6) == b""


def test_added_tokens_of_a_byte_level_vocabulary_are_what_they_say() -> None:
    tokenizer = make_tokenizer(decoders.ByteLevel(), "\u0120a", "\u00c3")
    tokenizer.add_tokens([AddedToken("<a b>", special=False), AddedToken("\u00e9 ", special=False)])
    tokenizer.add_special_tokens([AddedToken("<end>", special=True)])
    spelling = Spelling(tokenizer)
    assert [spelling.text(token) for token in range(5)] == [b" a", b"\xc3", b"<a b>", "\u00e9 ".encode(), b""]
    assert not spelling.drops_first_space
    for token in range(5):
        assert spelling.text(token).decode("utf-8", "replace") == tokenizer.decode([token])


def test_sentencepiece_tokens_have_marks_for_spaces_and_names_for_bytes() -> None:
    tokenizer = make_tokenizer(SENTENCEPIECE, "\u2581Hello", "\u2581", "<0xC3>", "<0xA9>", "<0x0A>", "<0xG0>!", "s")
    spelling = Spelling(tokenizer)
    assert [spelling.text(token) for token in range(7)] == [b" Hello", b" ", b"\xc3", b"\xa9", b"\n", b"<0xG0>!", b"s"]
    assert spelling.drops_first_space
    for ids in ([0, 6, 0, 4, 2, 3], [1, 1, 6], [2, 3, 0]):
        spelled = b"".join(map(spelling.text, ids)).decode()
        assert spelled.removeprefix(" ") == tokenizer.decode(ids)


def test_metaspace_alone_marks_spaces() -> None:
    spelling = Spelling(make_tokenizer(decoders.Metaspace(), "\u2581Hello", "<0x0A>"))
    assert [spelling.text(token) for token in range(2)] == [b" Hello", b"<0x0A>"]
    assert spelling.drops_first_space


def test_without_a_decoder_tokens_are_what_they_say() -> None:
    spelling = Spelling(make_tokenizer(None, "\u2581a", "<0x0A>"))
    assert [spelling.text(token) for token in range(2)] == ["\u2581a".encode(), b"<0x0A>"]
    assert not spelling.drops_first_space
