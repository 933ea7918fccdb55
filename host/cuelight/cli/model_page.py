"""`cuelight models show`: everything about one model that can be told without loading it."""

from __future__ import annotations

import dataclasses
import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from cuelight.cli.units import size
from cuelight.engine.cached import cached_models
from cuelight.engine.config import DTYPES, ModelConfig, block_positions, layer_ranges, stage_count
from cuelight.engine.defaults import Defaults
from cuelight.engine.describe import Description, describe, kv_bytes, parameter_count
from cuelight.engine.hub import cached_hub_models
from cuelight.engine.rope import Rope
from cuelight.engine.weights import DEFAULT_MODEL, locate
from cuelight.errors import UnknownModel
from cuelight.filters import NO_FILTERS

__all__ = ["show_model"]

INDENT = 12
"""Columns before what is told."""


def show_model(name: str, as_json: bool) -> None:
    """Print what is known of a model on this machine.

    Raises
    ------
    UnknownModel
        There is no such model, or it is not on this machine.
    """
    about = describe(_find(name))
    if as_json:
        print(json.dumps(_object(name, about)))
        return
    console = Console(highlight=False)
    for word, text in _lines(name, about):
        # A path is no use in pieces.
        lines = [text] if word == "path" else textwrap.wrap(text, max(console.width - INDENT, INDENT))
        for index, line in enumerate(lines):
            head = Text(f"{'' if index else word:<{INDENT}}", "dim")
            console.print(head.append(line, "yellow" if word == "can't run" else "default"), soft_wrap=True)


def _find(name: str) -> Path:
    # What `cuelight models` lists is shown even where it can't be run.
    for model in cached_models():
        if name in (model.name, model.path.name):
            return model.path
    for hub_model in cached_hub_models():
        if name == hub_model.name:
            return hub_model.path
    if (path := locate(name)) is None:
        raise UnknownModel(f"{name} is not on this machine; fetch it with: cuelight models fetch {name}")
    return path


def _lines(name: str, about: Description) -> Iterator[tuple[str, str]]:
    yield "model", f"{name} (default)" if name == DEFAULT_MODEL else name
    yield ("can't run", about.problem) if about.problem else ("can run", "yes")
    yield "path", str(about.path)
    yield "files", size(about.bytes) + (f", weights in {about.dtype}" if about.dtype else "")
    if about.family:
        yield "family", about.family
    if about.config:
        yield from _shape(about.config)
        yield from _running(about.config)
        yield "sampling", _sampling(about.defaults)
        yield "chat", "has a template" if about.has_template else "no template: takes prompts with --raw only"


def _shape(config: ModelConfig) -> Iterator[tuple[str, str]]:
    yield "parameters", f"{parameter_count(config) / 1e6:,.1f} million"
    yield "context", f"{config.context:,} positions"
    head = "the embedding is the output head" if config.tied else "an output head of its own"
    ends = ", ".join(map(str, sorted(config.eos_ids))) or "none"
    yield "tokens", f"{config.vocabulary:,}, {head}; text ends at {ends}"
    yield "layers", f"{config.layers}, {config.hidden:,} wide, {config.intermediate:,} in the feed-forward part"
    extras = (", with biases" if config.qkv_bias else "") + (", q and k normalized" if config.qk_norm else "")
    shared = "with keys and values each" if config.heads == config.kv_heads else f"on {config.kv_heads} KV heads"
    yield "attention", f"{config.heads} heads {shared}, {config.head_dim} wide{extras}"
    yield "rotation", _rotation(config.rope)


def _rotation(rope: Rope) -> str:
    rule = {"default": "not scaled", "divisors": "scaled by divisors of its own"}.get(rope.rule)
    return f"base {rope.theta:,.0f}, {rule or f'scaled by {rope.rule}, factor {rope.factor:g}'}"


def _running(config: ModelConfig) -> Iterator[tuple[str, str]]:
    stages = stage_count(config)
    layers = sorted({len(layers) for layers in layer_ranges(config, stages)})
    some = " or ".join(map(str, layers))
    yield "stages", f"{stages}: prefill, kv-init, {stages - 3} of {some} layers, output decode"
    block = block_positions(config)
    for index, dtype in enumerate(DTYPES):
        each = kv_bytes(config, dtype)
        text = f"{each:,} bytes a position in {dtype}, {size(each * block)} a block of {block}"
        yield "" if index else "KV cache", text


def _sampling(defaults: Defaults) -> str:
    own = dataclasses.asdict(defaults.filters)
    changed = [f"{name} {own[name]}" for name, plain in dataclasses.asdict(NO_FILTERS).items() if own[name] != plain]
    first = f"temperature {defaults.temperature:g}" if defaults.temperature else "greedy"
    return f"{', '.join([first, *changed])} unless told otherwise"


def _object(name: str, about: Description) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "name": name,
        "path": str(about.path),
        "bytes": about.bytes,
        "family": about.family,
        "dtype": about.dtype,
        "problem": about.problem,
    }
    if config := about.config:
        shown |= {
            "parameters": parameter_count(config),
            "stages": stage_count(config),
            "block_positions": block_positions(config),
            "kv_bytes_per_position": {dtype: kv_bytes(config, dtype) for dtype in DTYPES},
            "config": dataclasses.asdict(config) | {"eos_ids": sorted(config.eos_ids)},
            "temperature": about.defaults.temperature,
            "filters": dataclasses.asdict(about.defaults.filters),
            "chat_template": about.has_template,
        }
    return shown
