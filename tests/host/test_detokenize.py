from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models

from cuelight.detokenize import Detokenizer

TEXT = "Größe 東京 😀👩‍🚀 naïve …\n"


def decode_bytes(tokens: Sequence[int]) -> str:
    return bytes(tokens).decode("utf-8", errors="replace")


def pieces_of(tokens: Sequence[int]) -> list[str]:
    detokenizer = Detokenizer(decode_bytes)
    return [detokenizer.add(token) for token in tokens] + [detokenizer.flush()]


def test_no_piece_ends_within_a_character() -> None:
    pieces = pieces_of(TEXT.encode())
    assert "".join(pieces) == TEXT
    assert "\ufffd" not in "".join(pieces)
    assert [piece for piece in pieces if piece] == list(TEXT)


def test_bytes_that_are_no_text_do_not_stop_what_follows() -> None:
    pieces = pieces_of(b"a\xe2\x82b\xff\xf0\x9f")
    assert pieces == ["a", "", "", "\ufffdb", "", "", "", "\ufffd\ufffd"]


@given(st.binary(max_size=40))
def test_pieces_add_up_to_the_text(data: bytes) -> None:
    assert "".join(pieces_of(data)) == data.decode("utf-8", errors="replace")


def test_spaces_at_the_start_of_words_are_kept() -> None:
    words = {"\u2581": 0, "\u2581Hello": 1, "\u2581world": 2, "!": 3}
    tokenizer = Tokenizer(models.BPE(vocab=words, merges=[]))
    tokenizer.decoder = decoders.Metaspace()
    detokenizer = Detokenizer(tokenizer.decode)
    assert [detokenizer.add(token) for token in (1, 2, 3, 2)] == ["Hello", " world", "!", " world"]


@pytest.mark.parametrize("tokens", [[], [3], [3, 3]])
def test_tokens_without_text_give_none(tokens: list[int]) -> None:
    detokenizer = Detokenizer(lambda ids: "".join("x" for token in ids if token != 3))
    assert [detokenizer.add(token) for token in tokens] == [""] * len(tokens)
    assert detokenizer.add(1) == "x"
    assert detokenizer.flush() == ""
