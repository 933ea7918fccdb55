"""Sampling: the generator against published answers, choices against probabilities."""

from __future__ import annotations

import pytest
import torch

from cuelight.engine.sampling import Choice, philox, sample, uniform

VOCABULARY = 12


# Known answers published with the Random123 library, file kat_vectors, philox4x32 10 rounds.
@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_gives_the_published_answers(
    counter: tuple[int, ...], key: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    assert philox(counter, key) == expected


def test_random_numbers_depend_on_every_bit_of_seed_and_position() -> None:
    keys = [(0, 0), *((1 << bit, 0) for bit in range(64)), *((0, 1 << bit) for bit in range(32))]
    numbers = [uniform(seed, position) for seed, position in keys]
    assert len(set(numbers)) == len(keys)
    assert all(0 <= number < 1 for number in numbers)


def test_random_numbers_are_spread_evenly() -> None:
    counts = [0] * 16
    for position in range(16_000):
        counts[int(uniform(42, position) * 16)] += 1
    # Chi-square with 15 degrees of freedom: 37.7 is the 0.1 % point.
    assert sum((count - 1000) ** 2 / 1000 for count in counts) < 37.7


def test_greedy_takes_the_likeliest_and_the_lowest_of_equals() -> None:
    logits = torch.tensor([[0.0, 3.0, 3.0, 1.0], [2.0, 1.0, 0.0, 2.5]])
    tokens, logprobs = sample(logits, [Choice(0.0, 0, 9), Choice(0.0, 1, 9)])
    assert tokens == [1, 3]
    expected = logits.log_softmax(dim=1)
    assert logprobs == pytest.approx([float(expected[0, 1]), float(expected[1, 3])], abs=1e-6)


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
def test_draws_follow_the_tempered_distribution(temperature: float) -> None:
    logits = torch.linspace(-2, 2, VOCABULARY)
    draws = 6000
    tokens, logprobs = sample(logits.repeat(draws, 1), [Choice(temperature, 7, position) for position in range(draws)])
    expected = draws * torch.softmax(logits.double() / temperature, dim=0)
    counts = torch.bincount(torch.tensor(tokens), minlength=VOCABULARY)
    # Chi-square with 11 degrees of freedom (rare tokens pooled): 31.3 is the 0.1 % point.
    rare = expected < 5
    pairs = [(int(count), float(mean)) for count, mean in zip(counts[~rare], expected[~rare], strict=True)]
    if rare.any():
        pairs.append((int(counts[rare].sum()), float(expected[rare].sum())))
    assert sum((count - mean) ** 2 / mean for count, mean in pairs) < 31.3
    plain = logits.log_softmax(dim=0)
    assert logprobs == pytest.approx([float(plain[token]) for token in tokens], abs=1e-5)


def test_a_row_is_sampled_alike_in_any_company() -> None:
    logits = torch.randn(8, VOCABULARY, generator=torch.Generator().manual_seed(3))
    choices = [Choice(0.0 if row % 3 == 0 else 0.9, row, 50 + row) for row in range(8)]
    together = sample(logits, choices)
    alone = [sample(logits[row : row + 1], [choices[row]]) for row in range(8)]
    assert together[0] == [tokens[0] for tokens, _ in alone]
    assert together[1] == pytest.approx([logprobs[0] for _, logprobs in alone], abs=1e-6)


def test_tiny_temperature_is_greedy_and_tokens_of_no_probability_never_come() -> None:
    logits = torch.tensor([[1.0, 1.001, -float("inf")]]).repeat(500, 1)
    cold, _ = sample(logits, [Choice(1e-6, 1, position) for position in range(500)])
    assert set(cold) == {1}
    hot, _ = sample(logits, [Choice(1e6, 1, position) for position in range(500)])
    assert set(hot) == {0, 1}
