"""A request's tokens do not depend on its company or on how its prompt is cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuelight.engine.config import stage_count

from .play import Part, WatchedLlama, assert_same, play
from .tiny import save_model

PROMPT_ROWS = 150


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> WatchedLlama:
    directory = tmp_path_factory.mktemp("small")
    save_model(directory)
    model = WatchedLlama.load(directory)
    assert isinstance(model, WatchedLlama)
    return model


def prompt(rows: int, seed: int, vocabulary: int) -> list[int]:
    return [int(token) for token in np.random.default_rng(seed).integers(3, vocabulary, rows)]


@pytest.mark.parametrize("chunks", [(1, 7, 64), (8,), (16, 112, 1, 256), (127,), (129,)])
def test_default_model_does_not_see_how_its_prompt_is_cut(
    chunks: tuple[int, ...], smollm: WatchedLlama, record_property: Any
) -> None:
    ids = prompt(PROMPT_ROWS, 5, smollm.config.vocabulary)
    whole, cut = Part(ids, 6), Part(ids, 6, chunks=chunks)
    for part in (whole, cut):
        play(smollm, [part], stages=stage_count(smollm.config))
    record_property("ties", assert_same(cut, whole))


def test_default_model_in_company_of_fifteen_that_join_and_leave(smollm: WatchedLlama, record_property: Any) -> None:
    random = np.random.default_rng(3)

    def parts() -> list[Part]:
        return [
            Part(
                prompt(int(4 + index * 9 % 70), index, smollm.config.vocabulary),
                limit=16 if index == 0 else 2 + index % 7,
                arrival=index // 2,
                chunks=(int(random.integers(8, 40)),),
            )
            for index in range(16)
        ]

    together = parts()
    passes = play(smollm, together, stages=stage_count(smollm.config))
    assert passes < sum(part.limit for part in together)
    ties = []
    for part, alone in zip(together, parts(), strict=True):
        alone.arrival = 0
        play(smollm, [alone], stages=stage_count(smollm.config))
        ties += assert_same(part, alone)
    record_property("ties", ties)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 80), min_size=1, max_size=6), st.integers(1, 200), st.integers(0, 9))
def test_any_cut_of_any_prompt_gives_the_same(small: WatchedLlama, chunks: list[int], rows: int, seed: int) -> None:
    ids = prompt(rows, seed, small.config.vocabulary)
    whole, cut = Part(ids, 4), Part(ids, 4, chunks=chunks)
    for part in (whole, cut):
        play(small, [part], stages=5)
    assert_same(cut, whole)


@st.composite
def companies(draw: st.DrawFn) -> list[Part]:
    return [
        Part(
            prompt(draw(st.integers(1, 140)), draw(st.integers(0, 99)), 320),
            limit=draw(st.integers(1, 12)),
            arrival=draw(st.integers(0, 12)),
            chunks=draw(st.lists(st.integers(1, 64), min_size=1, max_size=3)),
            temperature=draw(st.sampled_from([0.0, 0.7])),
            seed=draw(st.integers(0, 2**64 - 1)),
        )
        for _ in range(draw(st.integers(2, 16)))
    ]


@settings(max_examples=25, deadline=None)
@given(companies(), st.integers(2, 16))
def test_any_company_gives_the_same(small: WatchedLlama, together: list[Part], seats: int) -> None:
    play(small, together, stages=4, seats=seats)
    for part in together:
        alone = Part(part.prompt, part.limit, temperature=part.temperature, seed=part.seed)
        play(small, [alone], stages=6)
        assert_same(part, alone)
