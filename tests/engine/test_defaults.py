"""A model's generation_config.json, as transformers' own `generate` heeds it: every setting once, none twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import GenerationConfig

from cuelight.engine.defaults import load_defaults
from cuelight.engine.gumbel import gumbel, words
from cuelight.filters import Filters, FilterSettings

from .play import Part, WatchedLlama, play
from .tiny import save_model

PROMPT = [7, 7, 12, 300, 45, 12, 7, 9]
NEW_TOKENS = 30
SEEDS = (1, 2, 3)
ASKED: dict[str, dict[str, Any]] = {
    "temperature": {"temperature": 1.7, "top_k": 0},
    "top-k": {"temperature": 3.0, "top_k": 6},
    "top-p": {"temperature": 2.0, "top_k": 0, "top_p": 0.8},
    "min-p": {"temperature": 2.0, "top_k": 0, "min_p": 0.3},
    "repetition penalty": {"temperature": 0.1, "top_k": 0, "repetition_penalty": 1.4},
    "all": {"temperature": 1.6, "top_k": 12, "top_p": 0.8, "min_p": 0.4, "repetition_penalty": 1.2},
    # As Qwen2.5's files have it.
    "a family's own": {"temperature": 0.7, "top_k": 20, "top_p": 0.8, "repetition_penalty": 1.05},
}
HARMLESS = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0}


def expected_texts(model: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """What transformers generates as the folder's file says, with this engine's random numbers in place of its own."""
    texts = []
    ids = torch.tensor([PROMPT])
    own: Any = GenerationConfig.from_pretrained(folder)
    own.update(max_new_tokens=NEW_TOKENS, pad_token_id=0)
    for seed in SEEDS:
        positions = iter(range(len(PROMPT), len(PROMPT) + NEW_TOKENS))

        def draw(chances: torch.Tensor, num_samples: int, seed: int = seed, positions: Any = positions) -> torch.Tensor:
            assert num_samples == 1
            random = torch.from_numpy(gumbel(words(seed, next(positions), chances.shape[1])))
            return (chances[0].double().log() + random).argmax().view(1, 1)

        with monkeypatch.context() as patch:
            patch.setattr(torch, "multinomial", draw)
            made = model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=own)
        texts.append(made[0, len(PROMPT) :].tolist())
    return texts


def texts(model: WatchedLlama, temperature: float, filters: Filters) -> list[list[int]]:
    """The same from a lane that runs all seeds together."""
    parts = [Part(PROMPT, NEW_TOKENS, temperature=temperature, seed=seed, filters=filters) for seed in SEEDS]
    play(model, parts, stages=5)
    return [part.ids for part in parts]


@pytest.mark.parametrize("name", ASKED)
def test_texts_are_those_of_transformers(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reference = save_model(tmp_path, eos_token_id=None)
    asked = ASKED[name]
    (tmp_path / "generation_config.json").write_text(json.dumps({"do_sample": True, **asked}))
    model = WatchedLlama.load(tmp_path)
    assert isinstance(model, WatchedLlama)
    temperature, filters = load_defaults(tmp_path)
    expected = expected_texts(reference, tmp_path, monkeypatch)
    assert texts(model, temperature, filters) == expected
    # A request that names what the file names asks for the same.
    again: FilterSettings = {key: value for key, value in asked.items() if key != "temperature"}  # type: ignore[assignment]
    assert texts(model, asked["temperature"], filters.override(**again)) == expected
    # And the comparison would show if one were left out.
    for key in asked:
        if asked[key] == HARMLESS[key] or (name == "a family's own" and key != "temperature"):
            continue
        less = dict(asked) | {key: HARMLESS[key]}
        assert texts(model, less.pop("temperature"), Filters(**less)) != expected, key


@pytest.mark.parametrize("penalty", [1.3, 1.15])
def test_greedy_texts_heed_the_penalty_once(penalty: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reference = save_model(tmp_path, initializer_range=0.1, eos_token_id=None)
    (tmp_path / "generation_config.json").write_text(json.dumps({"repetition_penalty": penalty}))
    model = WatchedLlama.load(tmp_path)
    assert isinstance(model, WatchedLlama)
    expected = expected_texts(reference, tmp_path, monkeypatch)
    assert texts(model, *load_defaults(tmp_path)) == expected
    assert texts(model, 0.0, Filters(repetition_penalty=penalty**2)) != expected
