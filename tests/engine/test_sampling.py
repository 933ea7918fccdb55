"""Sampling: the generator against published answers, choices against probabilities, and what rounding does to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from cuelight.engine.gumbel import gumbel, word_of, words
from cuelight.engine.sampling import Choice, sample
from cuelight.engine.shaping import truncate
from cuelight.filters import Filters

MANY, FEW = 3000, 12


def test_words_begin_with_the_published_answer() -> None:
    # Published with the Random123 library, file kat_vectors, philox4x64 10 rounds, all zero.
    known = np.array([0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B], "<u8")
    assert words(0, 0, 8).tolist() == known.view("<u4").tolist()


def test_words_depend_on_every_bit_of_seed_and_position_and_not_on_the_size_of_the_vocabulary() -> None:
    keys = [(0, 0), *((1 << bit, 0) for bit in range(64)), *((0, 1 << bit) for bit in range(32))]
    firsts = [words(seed, position, 4).tolist() for seed, position in keys]
    assert len({tuple(first) for first in firsts}) == len(keys)
    assert [words(seed, position, 1001)[:4].tolist() for seed, position in keys] == firsts


def test_gumbel_numbers_are_finite_and_rise_with_their_words() -> None:
    some = np.array([0, 1, 1 << 16, 1 << 31, (1 << 32) - 2, (1 << 32) - 1], np.uint32)
    numbers = gumbel(some)
    assert np.isfinite(numbers).all()
    assert (np.diff(numbers) > 0).all()
    # What is a little less leads to a word that is no higher, and hardly lower.
    found = [word_of(number - 1e-6) for number in numbers]
    assert all(0 <= word - low < 10_000 for word, low in zip(some.tolist(), found, strict=True))


def test_greedy_takes_the_likeliest_and_the_lowest_of_equals() -> None:
    logits = torch.tensor([[0.0, 3.0, 3.0, 1.0], [2.0, 1.0, 0.0, 2.5]])
    tokens, logprobs = sample(logits, [Choice(0.0, 0, 9), Choice(0.0, 1, 9)])
    assert tokens == [1, 3]
    expected = logits.log_softmax(dim=1)
    assert logprobs == pytest.approx([float(expected[0, 1]), float(expected[1, 3])], abs=1e-6)


def chi_square(tokens: list[int], chances: torch.Tensor) -> tuple[float, int]:
    """Of draws against the exact distribution, and its degrees of freedom; rare tokens are taken together."""
    expected = len(tokens) * chances
    counts = torch.bincount(torch.tensor(tokens), minlength=len(chances)).double()
    rare = expected < 5
    if rare.any():
        counts = torch.cat([counts[~rare], counts[rare].sum().view(1)])
        expected = torch.cat([expected[~rare], expected[rare].sum().view(1)])
    return float(((counts - expected) ** 2 / expected).sum()), len(expected) - 1


def one_in_a_thousand(freedom: int) -> float:
    """What a chi-square exceeds once in a thousand times (Wilson and Hilferty, 1931)."""
    part = 2 / (9 * freedom)
    return freedom * float(1 - part + 3.0902 * part**0.5) ** 3


@pytest.mark.parametrize(
    ("logits", "temperature", "along"),
    [
        (torch.linspace(-2, 2, FEW), 0.3, "positions"),
        (torch.linspace(-2, 2, FEW), 1.0, "seeds"),
        (torch.linspace(-2, 2, FEW), 2.5, "positions"),
        (2 * torch.randn(MANY, generator=torch.Generator().manual_seed(5)), 0.9, "positions"),
        (2 * torch.randn(MANY, generator=torch.Generator().manual_seed(6)), 1.1, "seeds"),
    ],
)
def test_draws_follow_the_exact_distribution(logits: torch.Tensor, temperature: float, along: str) -> None:
    tokens: list[int] = []
    for first in range(0, 6000, 500):
        numbers = range(first, first + 500)
        choices = [Choice(temperature, *((7, at) if along == "positions" else (at, 7))) for at in numbers]
        drawn, logprobs = sample(logits.repeat(500, 1), choices)
        plain = logits.log_softmax(dim=0)
        assert logprobs == pytest.approx([float(plain[token]) for token in drawn], abs=1e-5)
        tokens += drawn
    value, freedom = chi_square(tokens, torch.softmax(logits.double() / temperature, dim=0))
    assert value < one_in_a_thousand(freedom)


def test_a_row_is_sampled_alike_in_any_company() -> None:
    filters = [Filters(), Filters(top_k=9), Filters(top_p=0.7), Filters(min_p=0.1)]
    logits = 3 * torch.randn(16, MANY, generator=torch.Generator().manual_seed(3))
    choices = [Choice(0.0 if row % 3 == 0 else 0.9, row, 50 + row, filters[row % 4]) for row in range(16)]
    together = sample(logits, choices)
    alone = [sample(logits[row : row + 1], [choices[row]]) for row in range(16)]
    assert together[0] == [tokens[0] for tokens, _ in alone]
    assert together[1] == pytest.approx([logprobs[0] for _, logprobs in alone], abs=1e-6)


def draw_along_sums(logits: torch.Tensor, choices: Sequence[Choice]) -> list[int]:
    """What one random number for each row draws, along cumulated probabilities."""
    sums = torch.softmax(logits.double(), dim=1).cumsum(dim=1)
    points = [np.random.default_rng([choice.seed, choice.position]).random() for choice in choices]
    return torch.searchsorted(sums, torch.tensor(points).unsqueeze(1) * sums[:, -1:]).flatten().tolist()


def draw(logits: torch.Tensor, choices: Sequence[Choice]) -> list[int]:
    """What the engine draws."""
    return sample(logits, choices)[0]


def changed(rule: Callable[[torch.Tensor, Sequence[Choice]], list[int]], noise: NDArray[np.float64]) -> int:
    """Draws of 300 that noise of 1e-5 in logits changes."""
    plain = 0.5 * torch.randn(len(noise), generator=torch.Generator().manual_seed(8))
    noisy = plain + 1e-5 * torch.from_numpy(noise)
    count = 0
    for first in range(0, 300, 50):
        choices = [Choice(1.0, 3, position) for position in range(first, first + 50)]
        pairs = zip(rule(plain.repeat(50, 1), choices), rule(noisy.repeat(50, 1), choices), strict=True)
        count += sum(token != other for token, other in pairs)
    return count


def test_rounding_leaves_draws_as_they_are() -> None:
    assert changed(draw, np.random.default_rng(1).standard_normal(20_000)) == 0
    assert changed(draw, np.linspace(-1, 1, 20_000)) == 0


def test_sums_of_chances_would_pass_rounding_on_to_all_later_tokens() -> None:
    assert changed(draw_along_sums, np.linspace(-1, 1, 20_000)) > 3


@pytest.mark.parametrize(
    ("wider", "narrower"), [(Filters(top_k=9), Filters(top_k=8)), (Filters(top_p=0.6), Filters(top_p=0.5))]
)
def test_a_token_at_the_edge_of_a_cut_changes_only_draws_of_itself(wider: Filters, narrower: Filters) -> None:
    logits = torch.randn(1, 20, generator=torch.Generator().manual_seed(2))
    kept = [truncate(logits.double(), [filters]).isfinite() for filters in (wider, narrower)]
    (edge,) = (kept[0] ^ kept[1])[0].nonzero().flatten().tolist()
    before, after = (
        draw(logits.repeat(1000, 1), [Choice(1.0, 4, position, filters) for position in range(1000)])
        for filters in (wider, narrower)
    )
    assert {token for token, other in zip(before, after, strict=True) if token != other} == {edge}


def test_tiny_temperature_is_greedy_and_tokens_of_no_probability_never_come() -> None:
    logits = torch.tensor([[1.0, 1.001, -float("inf")]]).repeat(500, 1)
    cold, _ = sample(logits, [Choice(1e-6, 1, position) for position in range(500)])
    assert set(cold) == {1}
    hot, _ = sample(logits, [Choice(1e6, 1, position) for position in range(500)])
    assert set(hot) == {0, 1}
