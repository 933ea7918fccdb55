"""Biases, penalties and truncation against transformers' processors, on random logits in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from transformers import GenerationConfig, LogitsProcessorList
from transformers.generation.logits_process import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    SequenceBiasLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from cuelight.engine.sampling import Choice, likeliest, sample
from cuelight.engine.shaping import adjust, truncate
from cuelight.filters import Filters

from .tiny import make_model

ROWS, VOCABULARY = 8, 5000
FILTERS = (
    Filters(),
    Filters(top_k=7),
    Filters(top_p=0.6),
    Filters(min_p=0.05),
    Filters(top_k=300, top_p=0.9, min_p=0.01),
    Filters(repetition_penalty=1.3, top_k=50),
    Filters(logit_bias=((5, 4.0), (4999, -30.0)), repetition_penalty=0.8, top_p=0.95),
    Filters(top_k=VOCABULARY + 5, top_p=0.999),
)


def logits(seed: int, spread: float = 3.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return spread * torch.randn(ROWS, VOCABULARY, dtype=torch.float64, generator=generator)


def texts(seed: int) -> list[np.ndarray[Any, np.dtype[np.int32]]]:
    random = np.random.default_rng(seed)
    return [random.integers(0, VOCABULARY, 30 + 5 * row).astype(np.int32) for row in range(ROWS)]


def processors(filters: Filters, temperature: float) -> LogitsProcessorList:
    """What `GenerationMixin` would build, in its order."""
    chain = LogitsProcessorList()
    if filters.logit_bias:
        chain.append(SequenceBiasLogitsProcessor([[[token], bias] for token, bias in filters.logit_bias]))
    if filters.repetition_penalty != 1:
        chain.append(RepetitionPenaltyLogitsProcessor(filters.repetition_penalty))
    chain.append(TemperatureLogitsWarper(temperature))
    if filters.top_k:
        chain.append(TopKLogitsWarper(filters.top_k))
    if filters.top_p < 1:
        chain.append(TopPLogitsWarper(filters.top_p))
    if filters.min_p:
        chain.append(MinPLogitsWarper(filters.min_p))
    return chain


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("spread", [0.02, 1.0, 4.0])
@pytest.mark.parametrize("temperature", [0.7, 1.0, 1.9])
def test_every_filter_in_company_equals_its_processor(seed: int, spread: float, temperature: float) -> None:
    plain, sequences = logits(seed, spread), texts(seed)
    shaped = adjust(plain.clone(), FILTERS, sequences, [10] * ROWS)
    shaped = truncate(shaped / temperature, FILTERS)
    for row, filters in enumerate(FILTERS):
        ids: Any = torch.from_numpy(sequences[row].astype(np.int64))[None]
        expected: Any = processors(filters, temperature)(ids, plain[row : row + 1].clone())
        assert torch.equal(shaped[row].isinf(), expected[0].isinf()), filters
        torch.testing.assert_close(shaped[row], expected[0], rtol=1e-15, atol=1e-12)


def test_presence_and_frequency_penalties_follow_their_formula() -> None:
    # mu[j] - c[j] * frequency - (c[j] > 0) * presence, c counting the text without its prompt.
    plain, sequences = logits(1), texts(1)
    sequences[0][:3], sequences[0][10:20], sequences[0][25] = 77, 78, 77
    filters = [Filters(presence_penalty=0.5, frequency_penalty=0.25)] + [Filters(frequency_penalty=-1.0)] * (ROWS - 1)
    shaped = adjust(plain.clone(), filters, sequences, [10] * ROWS)
    for row, one in enumerate(filters):
        counts = np.bincount(sequences[row][10:], minlength=VOCABULARY)
        change = counts * one.frequency_penalty + (counts > 0) * one.presence_penalty
        torch.testing.assert_close(shaped[row], plain[row] - torch.from_numpy(change), rtol=0, atol=1e-12)
    assert float(plain[0, 78] - shaped[0, 78]) == pytest.approx(10 * 0.25 + 0.5)
    assert float(plain[0, 77] - shaped[0, 77]) == pytest.approx(1 * 0.25 + 0.5)


def test_equals_of_the_last_kept_are_kept() -> None:
    scores = torch.tensor([[3.0, 2.0, 2.0, 2.0, 1.0]], dtype=torch.float64)
    assert truncate(scores.clone(), [Filters(top_k=2)]).isfinite().tolist() == [[True, True, True, True, False]]
    assert truncate(scores.clone(), [Filters(top_p=0.6)]).isfinite().tolist() == [[True, True, True, True, False]]
    assert truncate(scores.clone(), [Filters(top_p=0.3)]).isfinite().tolist() == [[True, False, False, False, False]]


@pytest.mark.parametrize("name", ["top_k", "top_p", "min_p"])
def test_draws_stay_within_what_is_kept_and_reach_all_of_it(name: str) -> None:
    filters = {"top_k": Filters(top_k=3), "top_p": Filters(top_p=0.8), "min_p": Filters(min_p=0.3)}[name]
    row = torch.tensor([-9.0, 1.0, 0.0, 1.4, -8.0, 0.6, -9.0])
    kept = truncate(row.double()[None] / 0.9, [filters])[0].softmax(dim=0)
    draws = 4000
    tokens, _ = sample(row.repeat(draws, 1), [Choice(0.9, 3, position, filters) for position in range(draws)])
    counts = torch.bincount(torch.tensor(tokens), minlength=7)
    assert (counts[kept == 0] == 0).all()
    assert int((kept > 0).sum()) == 3
    # Chi-square with 2 degrees of freedom: 13.8 is the 0.1 % point.
    expected = draws * kept[kept > 0]
    assert float(((counts[kept > 0] - expected) ** 2 / expected).sum()) < 13.8


def test_log_probabilities_are_the_model_s_own() -> None:
    row = torch.randn(1, 50, generator=torch.Generator().manual_seed(4))
    filters = Filters(logit_bias=((7, 100.0),), top_k=1)
    tokens, logprobs = sample(row, [Choice(0.5, 1, 9, filters)])
    own = row.log_softmax(dim=1)[0]
    assert tokens == [7]
    assert logprobs == pytest.approx([float(own[7])], abs=1e-6)
    best = own.topk(5)
    assert [token for token, _ in likeliest(row, 5)[0]] == best.indices.tolist()
    assert [logprob for _, logprob in likeliest(row, 5)[0]] == pytest.approx(best.values.tolist(), abs=1e-6)
    assert len(likeliest(row, 99)[0]) == 50


def test_greedy_heeds_biases_and_penalties_but_no_truncation() -> None:
    row = torch.tensor([[1.0, 3.0, 2.5, 2.0]])
    text = np.array([1, 1, 2], np.int32)
    for filters, expected in (
        (Filters(top_k=1, top_p=0.1, min_p=1.0), 1),
        (Filters(logit_bias=((0, 2.5),)), 0),
        (Filters(repetition_penalty=2.0), 3),
        # The prompt is the first token, so both others count once.
        (Filters(presence_penalty=0.8), 1),
        (Filters(presence_penalty=1.2), 3),
    ):
        assert sample(row, [Choice(0.0, 0, 3, filters, text, 1)])[0] == [expected], filters


def test_rows_without_numbers_harm_no_other() -> None:
    scores = logits(2)[:2].float()
    alone = sample(scores[1:], [Choice(0.8, 1, 4, FILTERS[4])])
    scores[0] = float("nan")
    tokens, logprobs = sample(scores, [Choice(0.8, 1, 4, FILTERS[4])] * 2)
    assert np.isnan(logprobs[0])
    assert 0 <= tokens[0] < VOCABULARY
    assert ([tokens[1]], [logprobs[1]]) == alone


@pytest.mark.parametrize("penalty", [1.1, 1.5])
def test_penalized_greedy_text_is_that_of_transformers(penalty: float) -> None:
    model = make_model(3)
    prompt = torch.arange(5, 25)[None]
    settings: Any = GenerationConfig(  # type: ignore[no-untyped-call]
        max_new_tokens=24, do_sample=False, repetition_penalty=penalty, pad_token_id=0, eos_token_id=None
    )
    expected = model.generate(prompt, attention_mask=torch.ones_like(prompt), generation_config=settings)[0].tolist()
    text = prompt[0].tolist()
    filters = Filters(repetition_penalty=penalty)
    while len(text) < len(expected):
        with torch.inference_mode():
            row = model(torch.tensor([text])).logits[0, -1:]
        text += sample(row, [Choice(0.0, 0, len(text), filters, np.array(text, np.int32), 20)])[0]
    assert text == expected


@pytest.mark.parametrize("filters", FILTERS)
@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_a_mask_comes_before_everything_else(filters: Filters, temperature: float) -> None:
    """As if the model itself had given what is not allowed no chance, but in the log probability that is reported."""
    scores = logits(3).float()
    random = np.random.default_rng(3)
    allowed = [None if row == 2 else random.random(VOCABULARY) < 0.01 for row in range(ROWS)]
    masked = scores.clone()
    for row, one in enumerate(allowed):
        if one is not None:
            masked[row, ~torch.from_numpy(one)] = -torch.inf
    plain = [Choice(temperature, 5, 40 + row, filters, text, 20) for row, text in enumerate(texts(3))]
    expected, _ = sample(masked, plain)
    choices = [choice._replace(allowed=one) for choice, one in zip(plain, allowed, strict=True)]
    tokens, logprobs = sample(scores, choices)
    assert tokens == expected
    assert all(one is None or one[token] for one, token in zip(allowed, tokens, strict=True))
    assert logprobs == pytest.approx(scores.log_softmax(dim=1)[range(ROWS), tokens].tolist(), abs=1e-5)


def test_one_allowed_token_is_chosen_however_unlikely() -> None:
    scores = torch.zeros(1, VOCABULARY)
    scores[0, 17] = -80.0
    only = np.arange(VOCABULARY) == 17
    for temperature in (0.0, 0.01, 2.0):
        tokens, logprobs = sample(scores, [Choice(temperature, 1, 9, Filters(top_k=1, min_p=1.0), allowed=only)])
        assert tokens == [17]
        assert logprobs[0] < -80
