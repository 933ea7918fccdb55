"""Small random models and GGUF files for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

FAMILIES: dict[str, tuple[Any, Any]] = {
    "llama": (LlamaConfig, LlamaForCausalLM),
    "mistral": (MistralConfig, MistralForCausalLM),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM),
}


SHAPE: dict[str, Any] = {
    "vocab_size": 320,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 4,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
    # Far from uniform logits, so that greedy choices are not near ties.
    "initializer_range": 0.2,
}


def make_model(seed: int = 0, family: str = "llama", **shape: Any) -> Any:
    """A random model in float32, a Llama unless told otherwise."""
    torch.manual_seed(seed)
    config, kind = FAMILIES[family]
    model = kind(config(**(SHAPE | shape)))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "norm" in name:
                weight.uniform_(0.5, 1.5)
            elif name.endswith("bias"):
                weight.normal_(0, 0.5)
    return model.float().eval()


def save_model(directory: Path, seed: int = 0, *, dtype: torch.dtype = torch.float32, **shape: Any) -> Any:
    """Save a random model in the Hugging Face layout; returns it as it was saved, in float32."""
    model = make_model(seed, **shape).to(dtype)
    model.save_pretrained(directory)
    return model.float()


def write_gguf(path: Path, seed: int = 0, **fields: Any) -> None:
    """Write a GGUF file of random tensors as llama.cpp would name, order and quantize them.

    Parameters
    ----------
    path
        Where to.
    seed
        Of the tensors.
    **fields
        Metadata to put in place of, or beside, the usual ones; None leaves one out. With another
        general.architecture, those of llama are renamed and its own tensors added.
    """
    random = np.random.default_rng(seed)
    texts = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *(chr(0x21 + index) for index in range(93)), "ab"]
    metadata: dict[str, Any] = {
        "llama.block_count": 2,
        "llama.context_length": 256,
        "llama.embedding_length": 64,
        "llama.feed_forward_length": 96,
        "llama.attention.head_count": 4,
        "llama.attention.head_count_kv": 2,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.freq_base": 10_000.0,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": texts,
        "tokenizer.ggml.token_type": [3, 3, 3, *([1] * 94)],
        "tokenizer.ggml.merges": ["a b"],
        "tokenizer.ggml.eos_token_id": 2,
    } | fields
    texts = metadata["tokenizer.ggml.tokens"] or texts
    family = str(metadata.pop("general.architecture", "llama"))
    writer = gguf.GGUFWriter(path, family)
    for plain_key, value in metadata.items():
        key = plain_key.replace("llama.", f"{family}.")
        if isinstance(value, str):
            writer.add_string(key, value)
        elif isinstance(value, list):
            writer.add_array(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        elif value is not None:
            writer.add_uint32(key, value)

    def add(name: str, *shape: int, kind: gguf.GGMLQuantizationType = gguf.GGMLQuantizationType.F32) -> None:
        values = random.normal(0, 0.2, shape).astype(np.float32)
        writer.add_tensor(name, gguf.quantize(values, kind), raw_dtype=kind)

    quantized = gguf.GGMLQuantizationType.Q4_1
    add("token_embd.weight", len(texts), 64, kind=gguf.GGMLQuantizationType.Q8_0)
    add("output_norm.weight", 64)
    for layer in range(2):
        name = f"blk.{layer}"
        add(f"{name}.attn_norm.weight", 64)
        add(f"{name}.ffn_norm.weight", 64)
        add(f"{name}.attn_q.weight", 64, 64, kind=quantized)
        add(f"{name}.attn_k.weight", 32, 64, kind=quantized)
        add(f"{name}.attn_v.weight", 32, 64, kind=quantized)
        add(f"{name}.attn_output.weight", 64, 64, kind=quantized)
        if family == "qwen2":
            for part, rows in (("q", 64), ("k", 32), ("v", 32)):
                add(f"{name}.attn_{part}.bias", rows)
        if family == "qwen3":
            for part in "qk":
                add(f"{name}.attn_{part}_norm.weight", 16)
        add(f"{name}.ffn_gate.weight", 96, 64, kind=quantized)
        add(f"{name}.ffn_up.weight", 96, 64, kind=quantized)
        add(f"{name}.ffn_down.weight", 64, 96, kind=quantized)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
