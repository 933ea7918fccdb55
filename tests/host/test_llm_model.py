"""The default model through the twin: alone, and among fifteen others that join, leave and are cancelled."""

import random
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from cuelight import LLM, Finish, Stream

from .checks import WAIT_S, assert_at_rest, until

TIE = 2e-4
"""Where the two best logits are this close, rounding may decide; both then have nearly the same probability."""

QUESTIONS = (
    "What is a cue light in a theatre?",
    "Write one sentence about the sea.",
    "How many legs does a spider have? Answer with a number.",
    "Name three colours of the rainbow.",
    "Zähle auf Deutsch bis fünf.",
    "Explain why the sky is blue, in detail, to a student who knows some physics. " * 8,
)
NEW_TOKENS = 20


@pytest.fixture(scope="module")
def llm() -> Iterator[LLM]:
    with LLM.open(context=1024, kv_positions=8192, threads=1) as llm:
        yield llm


def ask(llm: LLM, question: str, new_tokens: int = NEW_TOKENS, tier: int = 0) -> Stream:
    return llm.generate([{"role": "user", "content": question}], new_tokens, tier=tier)


def assert_same(stream: Stream, alone: Stream) -> None:
    for token, other in zip(stream.request.received, alone.request.received, strict=False):
        if token.token != other.token:
            gap = abs(token.logprob - other.logprob)
            assert gap < TIE
            warnings.warn(f"position {token.position}: {token.token} for {other.token}, {gap:.1e} apart", stacklevel=2)
            return
        assert token.logprob == pytest.approx(other.logprob, abs=1e-3)
    assert stream.finish is alone.finish


def test_a_text_is_the_same_alone_and_among_fifteen_others(llm: LLM) -> None:
    alone = []
    for question in QUESTIONS:
        alone.append(ask(llm, question))
        alone[-1].text(WAIT_S)
    assert all("\ufffd" not in stream.text() for stream in alone)
    chance = random.Random(0)

    def pass_by(index: int) -> None:
        """Join, and leave after a while, cancelled or not."""
        stream = ask(llm, f"{index}? {QUESTIONS[index % len(QUESTIONS)]}", 4 + index, tier=index % 4)
        if index % 3 == 0:
            for _, _ in zip(range(index // 2), stream.request.tokens(WAIT_S), strict=False):
                pass
            stream.cancel()
        stream.text(WAIT_S)

    with ThreadPoolExecutor(15) as pool:
        first = [pool.submit(pass_by, index) for index in range(8)]
        streams = [ask(llm, question, tier=chance.randrange(4)) for question in QUESTIONS]
        until(lambda: len(streams[0].request.received) > 2)
        later = [pool.submit(pass_by, index) for index in range(8, 15)]
        for stream, reference in zip(streams, alone, strict=True):
            stream.text(WAIT_S)
            assert_same(stream, reference)
        for done in first + later:
            done.result(WAIT_S)
    assert_at_rest(llm.device)


def test_an_answer_stops_at_end_of_text(llm: LLM) -> None:
    stream = ask(llm, "Answer with one word: what is the capital of France?", 100)
    text = stream.text(WAIT_S)
    assert "Paris" in text
    assert "<|" not in text
    assert stream.finish is Finish.END_OF_TEXT
    assert stream.metrics.new_tokens < 100
    assert_at_rest(llm.device)
