from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from cuelight.detokenize import Detokenizer

TEXT = "Größe 東京 😀👩‍🚀 naïve …\n"


def pieces_of(tokens: Sequence[int]) -> list[str]:
    detokenizer = Detokenizer(lambda byte: bytes([byte]))
    return [detokenizer.add(token) for token in tokens] + [detokenizer.flush()]


def test_no_piece_ends_within_a_character() -> None:
    pieces = pieces_of(TEXT.encode())
    assert "".join(pieces) == TEXT
    assert "\ufffd" not in "".join(pieces)
    assert [piece for piece in pieces if piece] == list(TEXT)


def test_bytes_that_are_no_text_do_not_stop_what_follows() -> None:
    pieces = pieces_of(b"a\xe2\x82b\xff\xf0\x9f")
    assert pieces == ["a", "", "", "\ufffdb", "\ufffd", "", "", "\ufffd"]


@settings(deadline=None)
@given(st.binary(max_size=40))
def test_pieces_add_up_to_the_text(data: bytes) -> None:
    assert "".join(pieces_of(data)) == data.decode("utf-8", errors="replace")


def test_first_space_is_dropped_only_where_spelling_says_so() -> None:
    words = [b"", b" Hello", b" world"]
    kept, dropped = (Detokenizer(words.__getitem__, drops_first_space=drops) for drops in (False, True))
    assert [kept.add(token) for token in (0, 1, 2)] == ["", " Hello", " world"]
    assert [dropped.add(token) for token in (0, 1, 2)] == ["", "Hello", " world"]
