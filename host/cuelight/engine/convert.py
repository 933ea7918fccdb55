"""A GGUF file of a Llama, Qwen2 or Qwen3 model -> a model directory in the Hugging Face layout, float32."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from cuelight.engine.config import END_TEXTS, ModelConfig, parse_config
from cuelight.engine.gguf import GgufFile
from cuelight.engine.gguf_tokenizer import check_tokenizer, tokenizer_from_metadata
from cuelight.engine.progress import Progress, silent
from cuelight.errors import ModelFileError, UnsupportedModel

__all__ = ["check_header", "convert"]

_SHARD_BYTES = 1 << 30
_FIXED_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_LAYER = re.compile(r"blk\.(\d+)\.(\w+)\.(weight|bias)")
_FAMILIES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}
# What the plain Llama model has not, by family.
_OWN_PARTS = {
    "llama": frozenset[str](),
    "qwen2": frozenset({"attn_q.bias", "attn_k.bias", "attn_v.bias"}),
    "qwen3": frozenset({"attn_q_norm.weight", "attn_k_norm.weight"}),
}
_ALL_OWN_PARTS = frozenset[str]().union(*_OWN_PARTS.values())
_FREQUENCY_DIVISORS = "rope_freqs.weight"


def convert(source: Path, directory: Path, progress: Progress = silent) -> None:
    """Write the model in the GGUF file `source` to the existing, empty `directory`.

    Parameters
    ----------
    source
        The GGUF file.
    directory
        Gets config.json, tokenizer.json, tokenizer_config.json, the chat template and float32 weights.
    progress
        Told how far it is.

    Raises
    ------
    ModelFileError
        The file is unreadable, truncated or inconsistent.
    UnsupportedModel
        Another family, quantization or tokenizer than this engine has.
    """
    with GgufFile(source) as file:
        config = _config(file)
        tokenizer = tokenizer_from_metadata(file.metadata, source)
        _write_json(directory / "config.json", config)
        _write_json(directory / "tokenizer_config.json", _tokenizer_config(file.metadata))
        (directory / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
        if template := file.metadata.get("tokenizer.chat_template"):
            (directory / "chat_template.jinja").write_text(template, encoding="utf-8")
        _write_weights(file, config, directory, progress)


def check_header(file: GgufFile) -> ModelConfig:
    """Shape of the model in a GGUF file; errors are those of `convert` as far as the file's header tells."""
    config = _config(file)
    check_tokenizer(file.metadata, file.path)
    file.check_quantizations()
    for name in file.tensors.keys() - {_FREQUENCY_DIVISORS}:
        _hub_name(name, config["model_type"], file.path)
    return parse_config(config, file.path)


def _family(file: GgufFile) -> str:
    family = file.metadata.get("general.architecture")
    if not isinstance(family, str) or family not in _FAMILIES:
        raise UnsupportedModel(f"{file.path} holds a {family!r} model; this engine runs {', '.join(_FAMILIES)}.")
    return family


def _field(file: GgufFile, name: str) -> Any:
    key = f"{_family(file)}.{name}"
    if key not in file.metadata:
        raise ModelFileError(f"{file.path} lacks the field {key}; fetch the model again.")
    return file.metadata[key]


def _config(file: GgufFile) -> dict[str, Any]:
    family = _family(file)
    if file.metadata.get(f"{family}.expert_count"):
        raise UnsupportedModel(f"{file.path} is a mixture of experts; take a dense model.")
    heads, hidden = int(_field(file, "attention.head_count")), int(_field(file, "embedding_length"))
    if heads < 1 or "token_embd.weight" not in file.tensors:
        raise ModelFileError(f"{file.path} has no attention heads or no embedding; fetch the model again.")
    head_dim = int(file.metadata.get(f"{family}.attention.key_length", hidden // heads))
    if (rotated := file.metadata.get(f"{family}.rope.dimension_count", head_dim)) != head_dim:
        raise UnsupportedModel(f"{file.path} rotates {rotated} of {head_dim} dimensions; take another model.")
    return {
        "architectures": [_FAMILIES[family]],
        "model_type": family,
        "dtype": "float32",
        "vocab_size": file.tensors["token_embd.weight"].shape[0],
        "hidden_size": hidden,
        "intermediate_size": int(_field(file, "feed_forward_length")),
        "num_hidden_layers": int(_field(file, "block_count")),
        "num_attention_heads": heads,
        "num_key_value_heads": int(file.metadata.get(f"{family}.attention.head_count_kv", heads)),
        "head_dim": head_dim,
        "max_position_embeddings": int(_field(file, "context_length")),
        "rms_norm_eps": float(_field(file, "attention.layer_norm_rms_epsilon")),
        "hidden_act": "silu",
        "tie_word_embeddings": "output.weight" not in file.tensors,
        "rope_parameters": _rope_parameters(file),
        "bos_token_id": file.metadata.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": _end_ids(file.metadata),
    }


def _rope_parameters(file: GgufFile) -> dict[str, Any]:
    family = _family(file)
    theta = float(file.metadata.get(f"{family}.rope.freq_base", 10_000.0))
    if _FREQUENCY_DIVISORS in file.tensors:
        return {"rope_type": "divisors", "rope_theta": theta, "divisors": file.load(_FREQUENCY_DIVISORS).tolist()}
    rule = file.metadata.get(f"{family}.rope.scaling.type", "none")
    if rule == "none":
        return {"rope_type": "default", "rope_theta": theta}
    if rule not in ("linear", "yarn"):
        raise UnsupportedModel(f"{file.path} scales positions by {rule!r}; this engine knows none, linear and yarn.")
    factor = float(file.metadata.get(f"{family}.rope.scaling.factor", 1.0))
    parameters = {"rope_type": rule, "rope_theta": theta, "factor": factor}
    if rule == "yarn":
        parameters["original_max_position_embeddings"] = int(_field(file, "rope.scaling.original_context_length"))
        stretch = float(file.metadata.get(f"{family}.rope.scaling.attn_factor", 1.0))
        parameters["attention_factor"] = stretch * (0.1 * math.log(factor) + 1.0 if factor > 1 else 1.0)
    return parameters


def _end_ids(metadata: dict[str, Any]) -> list[int]:
    names = ("eos", "eot", "eom")
    ids = [metadata[key] for name in names if (key := f"tokenizer.ggml.{name}_token_id") in metadata]
    texts = metadata.get("tokenizer.ggml.tokens", [])
    ids += [texts.index(text) for text in END_TEXTS if text in texts]
    return sorted(set(ids))


def _tokenizer_config(metadata: dict[str, Any]) -> dict[str, Any]:
    texts = metadata["tokenizer.ggml.tokens"]
    config: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    for name in ("bos", "eos"):
        number = metadata.get(f"tokenizer.ggml.{name}_token_id")
        if isinstance(number, int) and 0 <= number < len(texts):
            config[f"{name}_token"] = texts[number]
    return config


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def _write_weights(file: GgufFile, config: dict[str, Any], directory: Path, progress: Progress) -> None:
    shard: dict[str, NDArray[np.float32]] = {}
    index: dict[str, str] = {}
    shards = 0

    def flush() -> None:
        nonlocal shards
        shards += 1
        name = f"model-{shards:05}.safetensors"
        save_file(shard, directory / name, {"format": "pt"})
        index.update(dict.fromkeys(shard, name))
        shard.clear()

    total = sum(tensor.size for tensor in file.tensors.values())
    done = 0
    for tensor in file.tensors.values():
        progress("converting weights", done / total)
        done += tensor.size
        if tensor.name == _FREQUENCY_DIVISORS:
            continue
        name = _hub_name(tensor.name, config["model_type"], file.path)
        shard[name] = _hub_rows(tensor.name, file.load(tensor.name), config, file.path)
        if sum(values.nbytes for values in shard.values()) >= _SHARD_BYTES:
            flush()
    if shard:
        flush()
    _write_json(directory / "model.safetensors.index.json", {"metadata": {}, "weight_map": index})
    progress("converting weights", 1.0)


def _hub_name(name: str, family: str, path: Path) -> str:
    if name in _FIXED_NAMES:
        return _FIXED_NAMES[name]
    match = _LAYER.fullmatch(name)
    part = f"{match[2]}.{match[3]}" if match else ""
    own = part in _ALL_OWN_PARTS or part.endswith(".bias")
    if match is None or match[2] not in _LAYER_NAMES or (own and part not in _OWN_PARTS[family]):
        raise UnsupportedModel(f"{path} has a tensor {name} that a plain {family} model has not; take another model.")
    return f"model.layers.{match[1]}.{_LAYER_NAMES[match[2]]}.{match[3]}"


def _hub_rows(name: str, values: NDArray[np.float32], config: dict[str, Any], path: Path) -> NDArray[np.float32]:
    # llama.cpp rotates neighbouring rows of Llama models, Hugging Face rows half a head apart; q and k are stored for
    # the former. It rotates Qwen models as Hugging Face does.
    if config["model_type"] != "llama":
        return values
    match = _LAYER.fullmatch(name)
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    if match is None or match[2] not in heads:
        return values
    rows, columns = values.shape if values.ndim == 2 else (0, 0)
    if rows != heads[match[2]] * config["head_dim"]:
        raise ModelFileError(f"{path} has {name} of shape {values.shape}, unfit for its heads; fetch the model again.")
    pairs = values.reshape(heads[match[2]], config["head_dim"] // 2, 2, columns)
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(rows, columns)
