"""The shape of a model, read from the `config.json` of its directory."""

from __future__ import annotations

import json
from collections.abc import Set
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from cuelight.engine.rope import RULES, Rope
from cuelight.errors import InvalidArgument, ModelFileError, UnsupportedModel

__all__ = [
    "DTYPES",
    "END_TEXTS",
    "LAYERS_PER_STAGE",
    "ModelConfig",
    "block_positions",
    "blocks_for",
    "head_group",
    "layer_ranges",
    "load_config",
    "parse_config",
    "stage_count",
]

DTYPES = ("float32", "bfloat16")
"""What models can be run in, the default first."""

LAYERS_PER_STAGE = 3
"""What a request of a higher tier waits for is the end of two stages, so these are short unless told otherwise."""

END_TEXTS = ("<|endoftext|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|end|>", "<|EOT|>", "</s>")
"""Special tokens that end a text whatever else a model's files say."""

_ARCHITECTURES = ("llama", "mistral", "qwen2", "qwen3")


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Shape of a model of the Llama family, Qwen2 and Qwen3 included.

    Parameters
    ----------
    vocabulary, hidden, intermediate
        Token ids; width of the residual stream and of the feed-forward part.
    layers, heads, kv_heads, head_dim
        Attention: `heads` query heads share `kv_heads` key/value heads, each `head_dim` wide.
    context
        Positions the model can attend over.
    norm_eps
        Added to the mean square in the norms.
    rope
        Rotary embedding.
    tied
        The output head is the embedding.
    qkv_bias
        The projections to q, k and v add a bias (Qwen2).
    qk_norm
        Each head of q and k is normalized before its rotation (Qwen3).
    bos_id
        Token that opens a text, if the model has one.
    eos_ids
        Tokens that end a text.
    """

    vocabulary: int
    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    context: int
    norm_eps: float
    rope: Rope
    tied: bool
    qkv_bias: bool
    qk_norm: bool
    bos_id: int | None
    eos_ids: frozenset[int]


def block_positions(config: ModelConfig) -> int:
    """Positions of a KV block: 64, or 128 where `head_dim` is 64; a slice then has the same bytes."""
    return 128 if config.head_dim == 64 else 64


def blocks_for(config: ModelConfig, positions: int) -> int:
    """KV blocks that hold `positions` positions."""
    return -(-positions // block_positions(config))


def head_group(config: ModelConfig) -> int:
    """KV heads of a head group: 8, or all of them where their number is no multiple of 8."""
    return 8 if config.kv_heads % 8 == 0 else config.kv_heads


def stage_count(config: ModelConfig, layers_per_stage: int = LAYERS_PER_STAGE) -> int:
    """Stages of the model: prefill, kv-init, layer stages of at most `layers_per_stage` layers, output decode."""
    if layers_per_stage < 1:
        raise InvalidArgument(f"layers_per_stage must be at least 1, not {layers_per_stage}.")
    return 3 + -(-config.layers // layers_per_stage)


def layer_ranges(config: ModelConfig, stages: int) -> tuple[range, ...]:
    """Layers of each layer stage of a model that is run in `stages` stages, as even as possible.

    Raises
    ------
    InvalidArgument
        Fewer than one layer stage, or more of them than layers.
    """
    count = stages - 3
    if not 1 <= count <= config.layers:
        raise InvalidArgument(
            f"A model of {config.layers} layers runs in 4 to {config.layers + 3} stages, not {stages}; "
            "choose layers_per_stage accordingly."
        )
    bounds = [stage * config.layers // count for stage in range(count + 1)]
    return tuple(range(first, last) for first, last in pairwise(bounds))


def load_config(directory: Path) -> ModelConfig:
    """Read the shape of the model in `directory`.

    Raises
    ------
    ModelFileError
        `config.json` is missing, unreadable or inconsistent.
    UnsupportedModel
        The model is of another family, or uses a part this engine does not have.
    """
    path = directory / "config.json"
    fields = read_json(path)
    return parse_config(fields, path, _more_end_ids(directory))


def parse_config(fields: dict[str, Any], path: Path, more_end_ids: Set[int] = frozenset()) -> ModelConfig:
    """Take the shape of a model from the fields of its configuration.

    Parameters
    ----------
    fields
        As in config.json.
    path
        Where they are from, for messages.
    more_end_ids
        Tokens that end a text beside those that the fields name.

    Raises
    ------
    ModelFileError, UnsupportedModel
        As `load_config`.
    """
    family = fields.get("model_type")
    if family not in _ARCHITECTURES:
        raise UnsupportedModel(f"{path} describes a {family!r} model; this engine runs {', '.join(_ARCHITECTURES)}.")
    for name, plain in (("attention_bias", False), ("mlp_bias", False), ("hidden_act", "silu")):
        if (value := fields.get(name, plain)) != plain:
            raise UnsupportedModel(f"{path} has {name} = {value!r}; this engine runs models with {plain!r} only.")
    window, context = fields.get("sliding_window"), fields.get("max_position_embeddings")
    if family in ("qwen2", "qwen3") and not fields.get("use_sliding_window"):
        window = None
    if window is not None and isinstance(context, int) and window < context:
        raise UnsupportedModel(f"{path} asks for a sliding window of {window} positions; take a model without one.")
    try:
        heads = int(fields["num_attention_heads"])
        config = ModelConfig(
            vocabulary=int(fields["vocab_size"]),
            hidden=int(fields["hidden_size"]),
            intermediate=int(fields["intermediate_size"]),
            layers=int(fields["num_hidden_layers"]),
            heads=heads,
            kv_heads=int(fields.get("num_key_value_heads") or heads),
            head_dim=int(fields.get("head_dim") or _usual_head_dim(family, fields, heads)),
            context=int(fields["max_position_embeddings"]),
            norm_eps=float(fields["rms_norm_eps"]),
            rope=_rope(fields, path),
            tied=bool(fields.get("tie_word_embeddings", False)),
            qkv_bias=family == "qwen2",
            qk_norm=family == "qwen3",
            bos_id=_first(fields.get("bos_token_id")),
            eos_ids=frozenset(_as_ids(fields.get("eos_token_id"))) | more_end_ids,
        )
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path} lacks or garbles a field ({error!r}); fetch the model again.") from error
    divisors = config.rope.divisors
    if config.rope.rule == "divisors" and (len(divisors) != config.head_dim // 2 or min(divisors) <= 0):
        raise ModelFileError(f"{path} has unfit divisors of rotary frequencies; fetch the model again.")
    sizes = (config.vocabulary, config.hidden, config.intermediate, config.layers, heads, config.kv_heads)
    if min(*sizes, config.head_dim, config.context) < 1 or heads % config.kv_heads or config.head_dim % 2:
        raise ModelFileError(f"{path} describes an impossible shape: {config}; fetch the model again.")
    return config


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises
    ------
    ModelFileError
        The file is missing, unreadable, no JSON or no object.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{path} cannot be read ({error}); fetch the model again.") from error
    if not isinstance(value, dict):
        raise ModelFileError(f"{path} holds no JSON object; fetch the model again.")
    return value


def _usual_head_dim(family: str, fields: dict[str, Any], heads: int) -> int:
    # Qwen3's configuration has 128 where a file says nothing, the others derive it.
    return 128 if family == "qwen3" else int(fields["hidden_size"]) // heads


def _rope(fields: dict[str, Any], path: Path) -> Rope:
    scaling = fields.get("rope_parameters") or fields.get("rope_scaling") or {}
    rule = scaling.get("rope_type") or scaling.get("type") or "default"
    if rule not in RULES:
        raise UnsupportedModel(f"{path} scales positions by {rule!r}; this engine knows {', '.join(RULES)}.")
    if float(scaling.get("partial_rotary_factor", 1.0)) != 1.0:
        raise UnsupportedModel(f"{path} rotates part of each head only; this engine rotates whole heads.")
    context = int(fields["max_position_embeddings"])
    original = int(scaling.get("original_max_position_embeddings") or context)
    amplitude = scaling.get("attention_factor")
    if amplitude is None and scaling.get("mscale") and scaling.get("mscale_all_dim"):
        raise UnsupportedModel(f"{path} sets mscale for yarn; give attention_factor instead.")
    return Rope(
        theta=float(scaling.get("rope_theta") or fields.get("rope_theta") or 10_000.0),
        rule=rule,
        factor=float(scaling.get("factor") or context / original),
        original_context=original,
        low_frequency=float(scaling.get("low_freq_factor") or 1.0),
        high_frequency=float(scaling.get("high_freq_factor") or 4.0),
        beta_fast=float(scaling.get("beta_fast") or 32.0),
        beta_slow=float(scaling.get("beta_slow") or 1.0),
        truncate=bool(scaling.get("truncate", True)),
        amplitude=None if amplitude is None else float(amplitude),
        divisors=tuple(float(divisor) for divisor in scaling.get("divisors") or ()),
    )


def _first(ids: Any) -> int | None:
    return next(iter(_as_ids(ids)), None)


def _as_ids(ids: Any) -> list[int]:
    if ids is None:
        return []
    return [int(one) for one in (ids if isinstance(ids, list) else [ids])]


def _more_end_ids(directory: Path) -> set[int]:
    path = directory / "generation_config.json"
    try:
        ids = set(_as_ids(read_json(path).get("eos_token_id"))) if path.exists() else set()
        path = directory / "tokenizer.json"
        added = (read_json(path).get("added_tokens") or []) if path.exists() else []
        return ids | {int(token["id"]) for token in added if token.get("content") in END_TEXTS}
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path} garbles what ends a text ({error!r}); fetch the model again.") from error
