"""The models in the cache."""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cuelight.engine.hub import is_hub_name
from cuelight.engine.weights import LAYOUT, MODELS, models_folder
from cuelight.errors import ModelFileError, UnknownModel

__all__ = ["CachedModel", "cached_models", "remove_model"]


@dataclass(frozen=True, slots=True)
class CachedModel:
    """One converted model."""

    name: str
    """A name of `MODELS`, or that of the GGUF file without its ending."""
    path: Path
    bytes: int
    """What it takes on disk."""
    known: bool
    """It is what its name stands for in this version."""
    outdated: bool
    """Of another version, which alone would use it."""


def cached_models() -> list[CachedModel]:
    """What is in the cache, by name."""
    found = []
    for path in models_folder().glob("*-v*"):
        if path.is_dir() and (match := re.fullmatch(r"(.+)-([0-9a-f]{16})-v(\d+)", path.name)):
            name, key, layout = match.groups()
            known = name in MODELS and MODELS[name].file_sha256.startswith(key)
            found.append(CachedModel(name, path, _size(path), known, outdated=int(layout) != LAYOUT))
    return sorted(found, key=lambda model: (model.name, model.path))


def remove_model(name: str) -> int:
    """Take models out of the cache; programs that have one open keep it until they close it.

    Parameters
    ----------
    name : str
        A model's name, or its folder's where several have one name.

    Returns
    -------
    int
        Bytes on disk that it took.

    Raises
    ------
    UnknownModel
        None of this name is in the cache.
    ModelFileError
        The cache can't be changed.
    """
    models = [model for model in cached_models() if name in (model.name, model.path.name)]
    if not models and is_hub_name(name):
        repository = name.partition(":")[0]
        raise UnknownModel(f"{name} is in the hub's cache, if at all; remove it with: hf cache rm model/{repository}")
    if not models:
        raise UnknownModel(f"No model {name!r} is in the cache; `cuelight models` lists those that are.")
    for model in models:
        try:
            # Under another name first, so that nobody opens half of it.
            with tempfile.TemporaryDirectory(dir=model.path.parent, prefix=".new-", ignore_cleanup_errors=True) as bin:
                model.path.rename(Path(bin) / model.path.name)
                shutil.rmtree(Path(bin) / model.path.name)
        except OSError as error:
            raise ModelFileError(f"{model.path} can't be removed ({error.strerror}); remove it by hand.") from error
    return sum(model.bytes for model in models)


def _size(folder: Path) -> int:
    size = 0
    for file in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            # As in du: blocks of 512 bytes.
            size += file.lstat().st_blocks * 512
    return size
