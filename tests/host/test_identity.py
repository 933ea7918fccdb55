"""Texts come out the same whatever the scheduler's policy does to them meanwhile: pauses, parks, steps, replays."""

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cuelight import LLM, Stream, Tier
from cuelight.regmap import CommitKind

from .checks import WAIT_S, assert_at_rest, assert_identical, kinds, until, vanish

SEATS = 2
PROMPTS = ["cde" * (1 + turn) for turn in range(4)]
LONG = "".join(random.Random(4).choices("abcdefgh,.!?", k=200))
NEW = 150
END_OF_TEXT = (0, 2)


@pytest.fixture(scope="module")
def llm(model: Path) -> Iterator[LLM]:
    # So few rows that a long prompt takes many passes.
    with LLM.open(
        model, kv_positions=4096, layers_per_stage=1, seats=SEATS, rows=SEATS + 16, tiers=[Tier()], threads=1
    ) as llm:
        yield llm


@pytest.fixture(scope="module")
def undisturbed(llm: LLM) -> Callable[..., Stream]:
    """Gives the generation of a prompt that had the device for itself."""
    known: dict[tuple[str, int, int], Stream] = {}

    def generate(prompt: str, new: int, turn: int) -> Stream:
        if (prompt, new, turn) not in known:
            known[prompt, new, turn] = stream = llm.generate(prompt, new, **shape(turn))
            stream.request.result(WAIT_S)
        return known[prompt, new, turn]

    return generate


def shape(turn: int) -> dict[str, Any]:
    """How the generation with this number chooses its tokens; it does not end before its last one."""
    return {**kinds(turn), "logit_bias": dict.fromkeys(END_OF_TEXT, -100.0)}


def came(stream: Stream, count: int) -> None:
    """Wait until so many tokens have come."""
    until(lambda: len(stream.request.received) >= count or stream.request.done)


def test_texts_are_the_same_when_they_are_displaced_time_after_time(
    llm: LLM, undisturbed: Callable[..., Stream]
) -> None:
    alone = [undisturbed(prompt, NEW, turn) for turn, prompt in enumerate(PROMPTS[:SEATS])]
    calls = [undisturbed(prompt, 6, turn) for turn, prompt in enumerate(PROMPTS[2:])]
    assert_at_rest(llm.device)
    before = llm.device.status().counters.pauses
    low = [llm.generate(prompt, NEW, tier=3, **shape(turn)) for turn, prompt in enumerate(PROMPTS[:SEATS])]
    for wave in range(10):
        for stream in low:
            came(stream, 10 * wave + 1)
        # As many as there are seats: both give theirs up.
        high = [llm.generate(prompt, 6, **shape(turn)) for turn, prompt in enumerate(PROMPTS[2:])]
        for stream, call in zip(high, calls, strict=True):
            assert_identical(stream, call)
    for stream, other in zip(low, alone, strict=True):
        assert_identical(stream, other)
    assert llm.device.status().counters.pauses - before >= 10
    assert_at_rest(llm.device)


def test_texts_are_the_same_when_they_are_displaced_amid_their_prompts(
    llm: LLM, undisturbed: Callable[..., Stream]
) -> None:
    alone = [undisturbed(LONG[turn:], 20, turn) for turn in range(SEATS)]
    call = undisturbed("a", 2, 0)
    # Of what was run alone, nothing is found again: there is a prompt to be displaced in.
    llm.device._room.forget(0)
    llm.device.trace()
    low = [llm.generate(LONG[turn:], 20, tier=3, **shape(turn)) for turn in range(SEATS)]
    for _ in range(8):
        for high in [llm.generate("a", 2, **shape(0)) for _ in range(SEATS)]:
            assert_identical(high, call)
    for stream, other in zip(low, alone, strict=True):
        assert_identical(stream, other)
    events = llm.device.trace()
    steps = [[event.kind for event in events if event.id == stream.request.id] for stream in low]
    # Rows of a prompt follow a pause.
    assert any(CommitKind.ADVANCE in life[life.index(CommitKind.PAUSE) :] for life in steps if CommitKind.PAUSE in life)
    assert_at_rest(llm.device)


def test_texts_are_the_same_when_they_park_and_are_credited(llm: LLM, undisturbed: Callable[..., Stream]) -> None:
    alone = [undisturbed(prompt, NEW, turn) for turn, prompt in enumerate(PROMPTS)]
    streams = [llm.generate(prompt, NEW, tier=turn, **shape(turn)) for turn, prompt in enumerate(PROMPTS)]

    def disturb(stream: Stream) -> None:
        chance = random.Random(stream.seed)
        while not stream.request.done:
            came(stream, len(stream.request.received) + chance.randrange(1, 20))
            stream.request.park()
            if chance.random() < 0.5:
                until(lambda: stream.request.done or llm.device.status().groups[0].parked > 0)
            stream.request.credit()

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(disturb, stream) for stream in streams]:
            done.result(2 * WAIT_S)
    for stream, other in zip(streams, alone, strict=True):
        assert_identical(stream, other)
    assert_at_rest(llm.device)


def step(stream: Stream) -> None:
    """Decide on each token, as a host would that looks at it first."""
    for _ in stream.request.tokens(WAIT_S):
        stream.request.credit()


def test_texts_are_the_same_step_by_step(llm: LLM, undisturbed: Callable[..., Stream]) -> None:
    alone = [undisturbed(prompt, NEW, turn) for turn, prompt in enumerate(PROMPTS)]
    # More than there are seats: some are paused while they are parked, and seated again.
    streams = [llm.generate(prompt, NEW, tier=turn, stepped=True, **shape(turn)) for turn, prompt in enumerate(PROMPTS)]
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(step, stream) for stream in streams]:
            done.result(2 * WAIT_S)
    for stream, other in zip(streams, alone, strict=True):
        assert_identical(stream, other)
    assert_at_rest(llm.device)


def test_samples_are_the_same_step_by_step(llm: LLM) -> None:
    free = llm.generate_samples("cdef", 3, 12, seed=7)
    stepped = llm.generate_samples("cdef", 3, 12, seed=7, stepped=True)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(step, stepped, timeout=WAIT_S))
    for stream, other in zip(stepped, free, strict=True):
        assert_identical(stream, other)


@pytest.mark.parametrize("paused", [False, True])
def test_texts_are_the_same_on_a_fresh_device_to_which_they_came_parked(
    llm: LLM, undisturbed: Callable[..., Stream], model: Path, paused: bool
) -> None:
    alone = [undisturbed(prompt, NEW, turn) for turn, prompt in enumerate(PROMPTS)]
    with LLM.open(model, kv_positions=4096, layers_per_stage=1, seats=4 if paused else 5, threads=1) as fresh:
        streams = []
        # Two that are stepped, two that are not; greedy and drawn of each.
        for turn, count in enumerate((3, 20, 3, 20)):
            stream = fresh.generate(PROMPTS[turn], NEW, tier=3, stepped=turn < 2, **shape(turn))
            for token in stream.request.tokens(WAIT_S):
                if token.position == stream.request.prompt_tokens + count:
                    break
                if stream.request.stepped:
                    stream.request.credit()
            if not stream.request.stepped:
                stream.request.park()
            streams.append(stream)
        until(lambda: fresh.device.status().groups[0].parked == 4)
        # What the lane gave before has come once these are over, of which none is before all are seated.
        others = [fresh.generate("ab", 3, stepped=True) for _ in range(4 if paused else 1)]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(step, others, timeout=WAIT_S))
        until(lambda: fresh.device.status().groups[0].parked == (0 if paused else 4))
        early = [stream.request.received for stream in streams]
        old = fresh.device.transport
        vanish(old)
        until(lambda: fresh.device.transport is not old)
        fresh.generate("ab", 3).text(WAIT_S)
        assert [stream.request.received for stream in streams] == early
        assert all(stream.request.parked for stream in streams)
        with ThreadPoolExecutor(4) as pool:
            for stream in streams:
                stream.request.credit()
            list(pool.map(step, streams[:2], timeout=2 * WAIT_S))
        for stream, other, tokens in zip(streams, alone, early, strict=True):
            assert_identical(stream, other)
            assert stream.request.received[: len(tokens)] == tokens
            assert stream.request.losses == 1
        assert_at_rest(fresh.device)
