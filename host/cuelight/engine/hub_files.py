"""Which of a hub repository's files make a model: safetensors in the Hugging Face layout, or one GGUF file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from cuelight.engine.config import read_json
from cuelight.errors import ModelFileError, UnknownModel

__all__ = ["FILES", "choose_gguf", "has_safetensors", "lacking", "models_of"]

FILES = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "model.safetensors",
    "model.safetensors.index.json",
    "model-*.safetensors",
)
"""Patterns of what the engine takes of a repository that holds safetensors."""

_WEIGHTS, _INDEX = "model.safetensors", "model.safetensors.index.json"
_QUANTIZATION = re.compile(r"(?:^|[-._])((?:UD-)?(?:I?Q\d\w*|TQ\d_\d|MXFP4\w*|BF16|F16|F32|FP16|FP32))$", re.IGNORECASE)
_PREFERRED = "Q8_0"
"""The smallest that is as good as exact: weights are expanded anyway, so what a smaller one saves is the download."""
_NO_MODEL = re.compile(r"mmproj|imatrix|-\d{5}-of-\d{5}\.gguf$", re.IGNORECASE)
"""Picture encoders, calibration data, and pieces of split files, which this engine does not read."""


def has_safetensors(files: Sequence[str]) -> bool:
    """Whether a repository's files, by name, hold weights as safetensors."""
    return _WEIGHTS in files or _INDEX in files


def lacking(directory: Path) -> str | None:
    """A file that the engine needs and that is not in `directory`."""
    needed = ["config.json", "tokenizer.json"]
    if (directory / _INDEX).exists():
        try:
            weight_map = read_json(directory / _INDEX).get("weight_map") or {}
        except ModelFileError:
            return _INDEX
        needed += sorted({str(file) for file in weight_map.values()})
    else:
        needed.append(_WEIGHTS)
    return next((file for file in needed if not (directory / file).exists()), None)


def models_of(repository: str, files: Sequence[str]) -> dict[str, str]:
    """Name each GGUF model among a repository's files.

    Returns
    -------
    dict
        From file to name: org/name:quantization where no other file has that, else org/name:file.
    """
    models = sorted(file for file in files if file.endswith(".gguf") and not _NO_MODEL.search(file))
    kinds = [_quantization(file) for file in models]
    return {
        file: f"{repository}:{kind if kind and kinds.count(kind) == 1 else file}"
        for file, kind in zip(models, kinds, strict=True)
    }


def choose_gguf(repository: str, files: Sequence[str], selector: str | None) -> str | None:
    """Choose among a repository's files: what `selector` names, or else the only GGUF file, or else the only Q8_0.

    Parameters
    ----------
    repository
        Its org/name.
    files
        Names of its files.
    selector
        A file's name, with or without .gguf, or a quantization; None: not said.

    Returns
    -------
    str or None
        A file; None if there is none, or none of that name.

    Raises
    ------
    UnknownModel
        Several fit.
    """
    models = models_of(repository, files)
    fitting = list(models)
    if selector is not None:
        fitting = [file for file in models if selector in (file, file.removesuffix(".gguf"))] or [
            file for file in models if _quantization(file) == selector.upper()
        ]
    elif len(preferred := [file for file in models if _quantization(file) == _PREFERRED]) == 1:
        fitting = preferred
    if len(fitting) > 1:
        names = ", ".join(models[file] for file in fitting)
        raise UnknownModel(f"{repository} has several GGUF files; name one of them: {names}.")
    return next(iter(fitting), None)


def _quantization(file: str) -> str | None:
    match = _QUANTIZATION.search(file.removesuffix(".gguf"))
    return match[1].upper() if match else None
