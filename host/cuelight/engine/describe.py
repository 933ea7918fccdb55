"""What can be said of a model on this machine without loading it, and whether this engine can run it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuelight.engine.chat import ChatTemplate
from cuelight.engine.config import ModelConfig, load_config, read_json
from cuelight.engine.convert import check_header
from cuelight.engine.defaults import NO_DEFAULTS, Defaults, load_defaults
from cuelight.engine.gguf import GgufFile
from cuelight.engine.hub_files import lacking
from cuelight.errors import ChatTemplateError, CuelightError

__all__ = ["Description", "describe", "kv_bytes", "parameter_count"]


@dataclass(frozen=True, slots=True)
class Description:
    """A model's directory or GGUF file, described.

    Parameters
    ----------
    path
        The directory or file.
    bytes
        Its files, all together.
    family
        As its configuration calls it; None where there is none to be read.
    dtype
        Of the weights in its files: a type, or a GGUF file's quantization; None where not said.
    config
        Its shape; None unless this engine can run it.
    defaults
        How it wants tokens chosen.
    has_template
        It has a chat template.
    problem
        A sentence: why this engine can't run it; None if it can.
    """

    path: Path
    bytes: int
    family: str | None = None
    dtype: str | None = None
    config: ModelConfig | None = None
    defaults: Defaults = NO_DEFAULTS
    has_template: bool = False
    problem: str | None = None


def describe(path: Path) -> Description:
    """Describe a model directory or a GGUF file; what is wrong with it is part of that and raises nothing."""
    return _describe_file(path) if path.is_file() else _describe_folder(path)


def parameter_count(config: ModelConfig) -> int:
    """Weights of a model, each counted once."""
    width = config.heads * config.head_dim
    kv_width = config.kv_heads * config.head_dim
    attention = 2 * config.hidden * (width + kv_width)
    biases = width + 2 * kv_width if config.qkv_bias else 0
    norms = 2 * config.hidden + (2 * config.head_dim if config.qk_norm else 0)
    layer = attention + biases + 3 * config.hidden * config.intermediate + norms
    return (1 if config.tied else 2) * config.vocabulary * config.hidden + config.layers * layer + config.hidden


def kv_bytes(config: ModelConfig, dtype: str) -> int:
    """Bytes that keys and values of one position take in the KV cache."""
    return 2 * config.layers * config.kv_heads * config.head_dim * {"float32": 4, "bfloat16": 2}[dtype]


def _describe_file(path: Path) -> Description:
    size = path.stat().st_size
    family = dtype = None
    try:
        with GgufFile(path) as file:
            family, dtype = _text(file.metadata, "general.architecture"), file.quantization
            config = check_header(file)
            has_template = "tokenizer.chat_template" in file.metadata
    except CuelightError as error:
        return Description(path, size, family, dtype, problem=_without(str(path.parent), error))
    return Description(path, size, family, dtype, config, has_template=has_template)


def _describe_folder(path: Path) -> Description:
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    family = dtype = None
    try:
        fields = read_json(path / "config.json")
        family, dtype = (_text(fields, "model_type"), _text(fields, "dtype") or _text(fields, "torch_dtype"))
        config, defaults, has_template = load_config(path), load_defaults(path), _has_template(path)
    except CuelightError as error:
        return Description(path, size, family, dtype, problem=_without(str(path), error))
    if missing := lacking(path):
        return Description(path, size, family, dtype, problem=f"{missing} is missing; fetch the model again.")
    return Description(path, size, family, dtype, config, defaults, has_template)


def _text(fields: dict[str, Any], name: str) -> str | None:
    return value if isinstance(value := fields.get(name), str) else None


def _has_template(path: Path) -> bool:
    try:
        ChatTemplate.load(path)
    except ChatTemplateError:
        return False
    return True


def _without(folder: str, error: CuelightError) -> str:
    return str(error).replace(f"{folder}/", "")
