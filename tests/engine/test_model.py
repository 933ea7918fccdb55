"""The engine against transformers, on the default model's own weights and on small random ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import LlamaForCausalLM

from cuelight.engine.batch import Batch, Span
from cuelight.engine.cache import KvCache
from cuelight.engine.chat import ChatTemplate
from cuelight.engine.config import block_positions, blocks_for, head_group, layer_ranges, load_config, stage_count
from cuelight.engine.model import Llama
from cuelight.engine.tokenizer import Tokenizer
from cuelight.errors import ModelFileError

from .play import TIE, Part, WatchedLlama, play
from .tiny import FAMILIES, save_model

QUESTIONS = (
    "What is gravity?",
    "Write a short poem about a lighthouse keeper.",
    "List three uses of a paper clip.",
    "Explain, to a child of six, why the sky is blue and sunsets are red.",
    "def fibonacci(n):\n    # continue this function\n",
)
NEW_TOKENS = 64


def compare_with_reference(part: Part, reference: LlamaForCausalLM) -> list[str]:
    """Check a greedy request against a model that sees what it wrote; returns a sentence for each tie."""
    with torch.inference_mode():
        expected = reference(torch.tensor([[*part.prompt, *part.ids]])).logits[0, len(part.prompt) - 1 : -1]
    torch.testing.assert_close(torch.stack(part.logits), expected, rtol=0, atol=1e-3)
    ties = []
    for index, (token, row) in enumerate(zip(part.ids, expected, strict=True)):
        if token != int(row.argmax()):
            gap = float(row.max() - row[token])
            assert gap < TIE, f"token {index} is {token} where transformers has {int(row.argmax())}, {gap} better"
            ties.append(f"token {index}: {token}, {gap:.1e} below the best")
    return ties


@pytest.mark.parametrize("question", QUESTIONS)
def test_greedy_text_is_that_of_transformers(
    question: str,
    smollm: WatchedLlama,
    smollm_directory: Path,
    smollm_reference: LlamaForCausalLM,
    record_property: Any,
) -> None:
    chat = ChatTemplate.load(smollm_directory).render([{"role": "user", "content": question}])
    part = Part(Tokenizer(smollm_directory).encode(chat, opening=False), NEW_TOKENS)
    play(smollm, [part], stages=stage_count(smollm.config))
    assert len(part.tokens) == NEW_TOKENS
    record_property("ties", compare_with_reference(part, smollm_reference))
    expected = torch.stack(part.logits).log_softmax(dim=1)[range(NEW_TOKENS), part.ids]
    torch.testing.assert_close(torch.tensor([token.logprob for token in part.tokens]), expected, rtol=0, atol=1e-4)


def test_generate_of_transformers_gives_the_same_tokens(
    smollm: WatchedLlama, smollm_directory: Path, smollm_reference: LlamaForCausalLM
) -> None:
    part = Part(Tokenizer(smollm_directory).encode("The stage manager gave the cue, and"), 24)
    play(smollm, [part], stages=stage_count(smollm.config))
    ids = torch.tensor([list(part.prompt)])
    made = smollm_reference.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=24, min_new_tokens=24, do_sample=False, pad_token_id=0
    )
    # min_new_tokens forbids the end of text; nothing here comes near it.
    assert made[0, ids.shape[1] :].tolist() == part.ids


VARIANTS: dict[str, dict[str, Any]] = {
    "grouped heads": {},
    "one head for all": {"num_key_value_heads": 1},
    "a head each": {"num_key_value_heads": 6},
    "two head groups": {"num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 8},
    "nine heads and three": {"hidden_size": 72, "num_attention_heads": 9, "num_key_value_heads": 3, "head_dim": 64},
    "tied": {"tie_word_embeddings": True},
    "wide heads": {"head_dim": 32},
    "mistral": {"family": "mistral", "sliding_window": None},
    "qwen2": {"family": "qwen2"},
    "qwen2, tied, a window that is not used": {
        "family": "qwen2",
        "tie_word_embeddings": True,
        "sliding_window": 64,
        "use_sliding_window": False,
    },
    "qwen2, nine heads and three": {
        "family": "qwen2",
        "hidden_size": 72,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "head_dim": 8,
    },
    "qwen3": {"family": "qwen3"},
    "qwen3, wide heads, tied": {"family": "qwen3", "head_dim": 64, "tie_word_embeddings": True},
    "qwen3, two head groups": {
        "family": "qwen3",
        "num_attention_heads": 32,
        "num_key_value_heads": 16,
        "head_dim": 8,
        "rope_parameters": {
            "rope_type": "yarn",
            "rope_theta": 1e6,
            "factor": 4.0,
            "original_max_position_embeddings": 64,
        },
    },
    "linear": {"rope_parameters": {"rope_type": "linear", "rope_theta": 10_000.0, "factor": 4.0}},
    "dynamic": {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 10_000.0, "factor": 2.0}},
    "llama3": {
        "rope_parameters": {
            "rope_type": "llama3",
            "rope_theta": 10_000.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
        }
    },
    "yarn": {
        "rope_parameters": {
            "rope_type": "yarn",
            "rope_theta": 10_000.0,
            "factor": 8.0,
            "original_max_position_embeddings": 64,
        }
    },
    "yarn with bounds": {
        "rope_parameters": {
            "rope_type": "yarn",
            "rope_theta": 500_000.0,
            "factor": 4.0,
            "beta_fast": 16.0,
            "beta_slow": 2.0,
            "attention_factor": 1.25,
            "original_max_position_embeddings": 128,
            "truncate": False,
        }
    },
}


@pytest.mark.parametrize("family", ["mistral", "qwen2", "qwen3"])
def test_families_decode_in_company_as_transformers_does(family: str, tmp_path: Path) -> None:
    shape: dict[str, Any] = {"sliding_window": None} if family == "mistral" else {}
    reference = save_model(tmp_path, family=family, **shape)
    model = WatchedLlama.load(tmp_path)
    assert isinstance(model, WatchedLlama)
    random = np.random.default_rng(7)
    parts = [
        Part(random.integers(3, 320, rows).tolist(), 20, arrival=2 * index, chunks=(16, 8))
        for index, rows in enumerate((5, 40, 70))
    ]
    play(model, parts, stages=5)
    for part in parts:
        compare_with_reference(part, reference)


@pytest.mark.parametrize("family", ["qwen2", "qwen3"])
def test_what_sets_a_family_apart_counts(family: str, tmp_path: Path) -> None:
    reference = save_model(tmp_path, family=family)
    tokens = np.arange(5, 45, dtype=np.int32)
    with torch.no_grad():
        for name, weight in reference.named_parameters():
            if name.endswith(("bias", "q_norm.weight", "k_norm.weight")):
                weight.mul_(1.5)
        changed = reference(torch.tensor(tokens[None].astype(np.int64))).logits[0]
    assert float((run(Llama.load(tmp_path), tokens, stages=4) - changed).abs().max()) > 0.1
    reference.save_pretrained(tmp_path)
    torch.testing.assert_close(run(Llama.load(tmp_path), tokens, stages=4), changed, rtol=0, atol=1e-3)


@pytest.mark.parametrize("name", VARIANTS)
def test_shapes_and_rope_rules_match_transformers(name: str, tmp_path: Path) -> None:
    reference = save_model(tmp_path, **VARIANTS[name])
    model = Llama.load(tmp_path)
    # Longer than the context the scaled ones were trained on, and over several blocks.
    tokens = np.random.default_rng(1).integers(0, model.config.vocabulary, 200).astype(np.int32)
    logits = run(model, tokens, stages=4)
    with torch.inference_mode():
        expected = reference(torch.tensor(tokens[None].astype(np.int64))).logits[0]
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-3)
    assert float(expected.std()) > 0.5


OLDER_FILES: dict[str, tuple[str, dict[str, Any]]] = {
    # Llama 3.1's, Qwen2.5's and Qwen3's files on the hub name these fields, with larger numbers.
    "llama": (
        "llama",
        {
            "rope_theta": 500_000.0,
            "rope_scaling": {
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 64,
                "rope_type": "llama3",
            },
            "attention_bias": False,
            "mlp_bias": False,
            "pretraining_tp": 1,
        },
    ),
    "llama without scaling": ("llama", {"rope_theta": 500_000.0, "rope_scaling": None}),
    "llama, linear": ("llama", {"rope_scaling": {"type": "linear", "factor": 4.0}}),
    "qwen2": (
        "qwen2",
        {
            "rope_theta": 1_000_000.0,
            "rope_scaling": {"factor": 4.0, "original_max_position_embeddings": 64, "type": "yarn"},
            "sliding_window": 64,
            "use_sliding_window": False,
            "max_window_layers": 2,
        },
    ),
    "qwen3": (
        "qwen3",
        {
            "rope_theta": 1_000_000.0,
            "rope_scaling": {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 64},
            "sliding_window": None,
            "use_sliding_window": False,
            "max_window_layers": 4,
        },
    ),
}


@pytest.mark.parametrize("name", OLDER_FILES)
def test_files_of_older_versions_of_transformers_mean_the_same(name: str, tmp_path: Path) -> None:
    family, fields = OLDER_FILES[name]
    save_model(tmp_path, family=family)
    path = tmp_path / "config.json"
    newer = json.loads(path.read_text())
    for key in ("rope_parameters", "dtype", "layer_types"):
        newer.pop(key, None)
    path.write_text(json.dumps(newer | {"torch_dtype": "float32"} | fields))
    kind: Any = FAMILIES[family][1]
    reference = kind.from_pretrained(tmp_path, dtype=torch.float32)
    tokens = np.random.default_rng(3).integers(0, 320, 200).astype(np.int32)
    with torch.inference_mode():
        expected = reference(torch.tensor(tokens[None].astype(np.int64))).logits[0]
    torch.testing.assert_close(run(Llama.load(tmp_path), tokens, stages=4), expected, rtol=0, atol=1e-3)


def test_half_precision_and_sharded_weights_load(tmp_path: Path) -> None:
    save_model(tmp_path / "whole", dtype=torch.bfloat16)
    halves = LlamaForCausalLM.from_pretrained(tmp_path / "whole", dtype=torch.bfloat16)
    halves.save_pretrained(tmp_path / "shards", max_shard_size="50KB")
    assert len(list((tmp_path / "shards").glob("*.safetensors"))) > 2
    tokens = np.arange(40, dtype=np.int32)
    whole, shards = (run(Llama.load(tmp_path / name), tokens, stages=5) for name in ("whole", "shards"))
    # Not halves.float(): that would keep rotary frequencies rounded to bfloat16.
    reference: Any = LlamaForCausalLM.from_pretrained(tmp_path / "whole", dtype=torch.float32)
    with torch.inference_mode():
        expected = reference(torch.tensor(tokens[None].astype(np.int64))).logits[0]
    torch.testing.assert_close(whole, expected, rtol=0, atol=1e-3)
    assert torch.equal(whole, shards)


def test_stages_split_the_layers_without_changing_anything(tmp_path: Path) -> None:
    save_model(tmp_path)
    model = Llama.load(tmp_path)
    tokens = np.arange(30, dtype=np.int32)
    results = [run(model, tokens, stages=stages) for stages in range(4, model.config.layers + 4)]
    assert all(torch.equal(result, results[0]) for result in results)


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_rows_split_over_threads_give_the_same_within_rounding(family: str, tmp_path: Path) -> None:
    save_model(tmp_path, family=family)
    tokens = np.arange(30, dtype=np.int32)
    one = run(Llama.load(tmp_path), tokens, stages=4)
    torch.set_num_threads(2)
    try:
        two = run(Llama.load(tmp_path), tokens, stages=4)
    finally:
        torch.set_num_threads(1)
    torch.testing.assert_close(one, two, rtol=0, atol=1e-4)


def test_geometry_follows_the_shape_of_the_model(tmp_path: Path, smollm_directory: Path) -> None:
    smollm = load_config(smollm_directory)
    assert (smollm.layers, smollm.heads, smollm.kv_heads, smollm.head_dim) == (30, 9, 3, 64)
    assert smollm.eos_ids == {0, 2}
    assert (block_positions(smollm), head_group(smollm), stage_count(smollm)) == (128, 3, 13)
    assert [blocks_for(smollm, positions) for positions in (1, 128, 129)] == [1, 1, 2]
    save_model(tmp_path, num_attention_heads=16, num_key_value_heads=16, head_dim=8)
    other = load_config(tmp_path)
    assert (block_positions(other), head_group(other), stage_count(other, 3)) == (64, 8, 5)


@pytest.mark.parametrize("harm", ["missing", "truncated", "other shape", "huge shape", "no weights"])
def test_damaged_weights_are_refused(harm: str, tmp_path: Path) -> None:
    save_model(tmp_path)
    weights = tmp_path / "model.safetensors"
    if harm == "no weights":
        weights.unlink()
    elif harm == "truncated":
        weights.write_bytes(weights.read_bytes()[: weights.stat().st_size // 2])
    else:
        text = (tmp_path / "config.json").read_text()
        # The huge one is more than any machine has; no memory may be taken before it is doubted.
        old, new = {"missing": (4, 5), "other shape": (80, 96), "huge shape": (80, 1 << 50)}[harm]
        key = "num_hidden_layers" if harm == "missing" else "intermediate_size"
        assert f'"{key}": {old}' in text
        (tmp_path / "config.json").write_text(text.replace(f'"{key}": {old}', f'"{key}": {new}'))
    with pytest.raises(ModelFileError, match="fetch the model again"):
        Llama.load(tmp_path)


def run(model: Llama, tokens: np.ndarray[Any, np.dtype[np.int32]], *, stages: int) -> torch.Tensor:
    """Logits of all positions of one sequence, run as one chunk through a scattered block table."""
    count = blocks_for(model.config, len(tokens))
    cache = KvCache(model.config, 2 * count + 1, model.dtype)
    table = np.arange(2 * count, 0, -2, dtype=np.int32)
    batch = Batch([Span(tokens, 0, table)], model.config)
    hidden = model.embed(batch)
    for layers in layer_ranges(model.config, stages):
        hidden = model.run_layers(hidden, layers, batch, cache)
    return model.logits(hidden)


@pytest.mark.parametrize("name", VARIANTS)
def test_bfloat16_is_as_near_to_float32_as_that_of_transformers(name: str, tmp_path: Path) -> None:
    shape: dict[str, Any] = {"initializer_range": 0.1, "hidden_size": 96} | VARIANTS[name]
    save_model(tmp_path, dtype=torch.bfloat16, **shape)
    kind: Any = FAMILIES[VARIANTS[name].get("family", "llama")][1]
    # Loaded for each type: a model that is cast keeps rotary frequencies rounded to bfloat16.
    reference, halved = (kind.from_pretrained(tmp_path, dtype=dtype) for dtype in (torch.float32, torch.bfloat16))
    tokens = np.random.default_rng(2).integers(0, 320, 200).astype(np.int32)
    ids = torch.tensor(tokens[None].astype(np.int64))
    model = Llama.load(tmp_path, dtype=torch.bfloat16)
    logits = run(model, tokens, stages=4)
    assert (model.dtype, logits.dtype) == (torch.bfloat16, torch.float32)
    with torch.inference_mode():
        exact = reference(ids).logits[0]
        halves = halved(ids).logits[0].float()
    ours, theirs = (float((one - exact).square().mean().sqrt()) for one in (logits, halves))
    assert 0 < ours < 1.1 * theirs
    assert float(exact.std()) > 20 * ours


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_bfloat16_requests_decode_in_company(family: str, tmp_path: Path) -> None:
    reference = save_model(tmp_path, dtype=torch.bfloat16, family=family, initializer_range=0.1)
    model = WatchedLlama.load(tmp_path, dtype=torch.bfloat16)
    assert isinstance(model, WatchedLlama)
    random = np.random.default_rng(7)
    parts = [
        Part(random.integers(3, 320, rows).tolist(), 12, arrival=2 * index, chunks=(16, 8))
        for index, rows in enumerate((5, 40, 70))
    ]
    play(model, parts, stages=5)
    for part in parts:
        with torch.inference_mode():
            exact = reference(torch.tensor([[*part.prompt, *part.ids]])).logits[0, len(part.prompt) - 1 : -1]
        assert float((torch.stack(part.logits) - exact).square().mean().sqrt()) < 0.05 * float(exact.std())
