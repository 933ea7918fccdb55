from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from cuelight.engine.weights import DEFAULT_MODEL, fetch_gguf, resolve

from .play import WatchedLlama


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def smollm_directory() -> Path:
    """The default model's directory; converted here if it is not in the cache."""
    return resolve(DEFAULT_MODEL)


@pytest.fixture(scope="session")
def smollm(smollm_directory: Path) -> WatchedLlama:
    model = WatchedLlama.load(smollm_directory)
    assert isinstance(model, WatchedLlama)
    return model


@pytest.fixture(scope="session")
def smollm_reference(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The same file through the gguf package's own reader, and names and rows mapped here once more."""
    reader = gguf.GGUFReader(fetch_gguf(DEFAULT_MODEL, tmp_path_factory.mktemp("gguf")))
    config = LlamaConfig(
        vocab_size=49152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        max_position_embeddings=8192,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 100_000.0},
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
    )
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    model: Any = LlamaForCausalLM(config)
    wanted = {names.get_name(name, try_suffixes=(".weight",)): name for name in model.state_dict()}
    weights = {}
    for tensor in reader.tensors:
        values = gguf.dequantize(tensor.data, tensor.tensor_type)
        heads = {"attn_q": 9, "attn_k": 3}.get(tensor.name.split(".")[-2])
        if heads:
            values = values.reshape(heads, 32, 2, 576).transpose(0, 2, 1, 3).reshape(-1, 576)
        weights[wanted[tensor.name]] = torch.from_numpy(np.array(values, np.float32))
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    model.load_state_dict(weights)
    return model.eval()
