"""Text of an answer, against the whole text looked at character by character."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuelight.daemon.text import Passage, TextAssembler
from cuelight.detokenize import Detokenizer
from cuelight.errors import InvalidArgument
from cuelight.request import Finish, Token

ALPHABET = "ab\né東😀"


class Answer:
    """Tokens whose texts are given, run through an assembler."""

    def __init__(self, spelled: list[bytes], *stop: str, last: Finish | None = Finish.LENGTH) -> None:
        self.spelled = spelled
        self.assembler = TextAssembler(Detokenizer(self.spelled.__getitem__), stop)
        self._last = last

    def token(self, index: int) -> Token:
        finish = self._last if index == len(self.spelled) - 1 else None
        return Token(100 + index, index, -0.5, finish, 0)

    def passages(self, *sizes: int) -> list[Passage]:
        """Passages of tokens taken in groups of these sizes, the rest one by one."""
        indexes, taken = iter(range(len(self.spelled))), []
        for size in (*sizes, *[1] * len(self.spelled)):
            if group := [self.token(index) for _, index in zip(range(size), indexes, strict=False)]:
                taken.append(self.assembler.add(group))
        return taken


def cut_of(text: str, stop: list[str]) -> int:
    """Where the text ends: in front of the stop string that is complete first."""
    for end in range(1, len(text) + 1):
        if sizes := [len(one) for one in stop if text[:end].endswith(one)]:
            return end - max(sizes)
    return len(text)


def withheld(text: str, stop: list[str]) -> int:
    """Characters at the end of `text` that could begin a stop string."""
    return max(size for size in range(len(text) + 1) for one in stop if one[:-1][:size] == text[len(text) - size :])


@st.composite
def answers(draw: st.DrawFn) -> tuple[list[bytes], list[str]]:
    text = draw(st.text(ALPHABET, max_size=14)).encode()
    stop = draw(st.lists(st.text(ALPHABET, min_size=1, max_size=4), max_size=3))
    cuts = sorted(draw(st.sets(st.integers(0, len(text)))) | {0, len(text)})
    spelled = [text[start:end] for start, end in itertools.pairwise(cuts)] or [b""]
    return spelled, stop


@settings(deadline=None)
@given(answers(), st.lists(st.integers(1, 4), max_size=4))
def test_any_split_gives_the_text_in_front_of_the_first_stop_string(
    answer: tuple[list[bytes], list[str]], sizes: list[int]
) -> None:
    spelled, stop = answer
    text = b"".join(spelled).decode()
    run = Answer(spelled, *stop)
    passages = run.passages(*sizes)
    cut = cut_of(text, stop)
    assert "".join(passage.text for passage in passages) == text[:cut]
    assert (run.assembler.stopped is not None) == any(one in text for one in stop)
    assert run.assembler.stopped is None or text[cut:].startswith(run.assembler.stopped)
    assert run.assembler.length == cut
    # Each token once, where its first byte lies.
    placed = [one for passage in passages for one in passage.tokens]
    starts = [len(b"".join(spelled[:index]).decode("utf-8", "ignore")) for index in range(len(spelled))]
    kept = [index for index, start in enumerate(starts) if start < cut or run.assembler.stopped is None]
    assert [(token.token, offset) for token, offset in placed] == [(index, starts[index]) for index in kept]


@settings(deadline=None)
@given(answers())
def test_only_what_may_become_a_stop_string_is_held_back(answer: tuple[list[bytes], list[str]]) -> None:
    spelled, stop = answer
    run = Answer([*spelled, b""], *stop)
    given_out = ""
    for index in range(len(spelled)):
        given_out += run.assembler.add([run.token(index)]).text
        so_far = b"".join(spelled[: index + 1]).decode("utf-8", "ignore")
        if run.assembler.stopped is not None:
            break
        assert given_out == so_far[: len(so_far) - withheld(so_far, [*stop, "x"])]


STOP_CASES = [("Größe 東京 ende", "東京"), ("x😀y😀z", "😀z"), ("aaab", "aab"), ("ab\n\nc", "\n\n")]


@pytest.mark.parametrize(("text", "stop"), STOP_CASES)
def test_stop_string_is_found_with_a_token_border_at_every_byte(text: str, stop: str) -> None:
    data = text.encode()
    for border in range(1, len(data)):
        passages = Answer([data[:border], data[border:]], stop).passages()
        assert "".join(passage.text for passage in passages) == text[: text.index(stop)]
    single = Answer([data[at : at + 1] for at in range(len(data))], stop)
    assert "".join(passage.text for passage in single.passages()) == text[: text.index(stop)]
    assert single.assembler.stopped == stop


def test_of_two_stop_strings_the_one_that_is_complete_first_counts() -> None:
    run = Answer([b"xabc"], "abc", "b")
    assert [passage.text for passage in run.passages()] == ["xa"]
    assert run.assembler.stopped == "b"


def test_of_two_that_end_together_the_longer_counts() -> None:
    run = Answer([b"xa", b"bc"], "bc", "abc")
    assert [passage.text for passage in run.passages()] == ["x", ""]
    assert run.assembler.stopped == "abc"


def test_nothing_comes_after_a_stop_string() -> None:
    run = Answer([b"a.", b"b", b"c"], ".")
    first, *later = run.passages()
    assert (first.text, [offset for _, offset in first.tokens]) == ("a", [0])
    assert later == [Passage("", ())] * 2
    assert run.assembler.end() == Passage("", ())


def test_end_of_text_is_no_text() -> None:
    run = Answer([b"a", b"</s>"], last=Finish.END_OF_TEXT)
    passages = run.passages()
    assert "".join(passage.text for passage in passages) == "a"
    assert [token.token for passage in passages for token, _ in passage.tokens] == [0]


def test_what_is_held_back_comes_out_when_the_answer_is_cut_off() -> None:
    run = Answer([b"a\n", "é".encode()[:1]], "\n\n", last=None)
    assert [passage.text for passage in run.passages()] == ["a", ""]
    assert run.assembler.end().text == "\n\ufffd"
    assert run.assembler.end() == Passage("", ())


def test_empty_stop_string_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="stop string"):
        Answer([b"a"], "b", "")
