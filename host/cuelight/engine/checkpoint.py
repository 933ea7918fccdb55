"""Weights of a model directory: one or more safetensors files, read as whatever the reader wants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from cuelight.engine.config import read_json
from cuelight.errors import ModelFileError

__all__ = ["Checkpoint"]


class Checkpoint:
    """The open weight files of a model directory; use it as a context manager.

    Parameters
    ----------
    directory
        Holds model.safetensors, or model.safetensors.index.json and the files it names.

    Raises
    ------
    ModelFileError
        A file is missing, truncated or no safetensors file.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        index = directory / "model.safetensors.index.json"
        if index.exists():
            names = sorted({str(name) for name in (read_json(index).get("weight_map") or {}).values()})
        else:
            names = ["model.safetensors"]
        self._files: dict[str, Any] = {}
        for name in names:
            try:
                file: Any = safe_open(directory / name, framework="pt")
                self._files.update(dict.fromkeys(file.keys(), file))
            except (OSError, SafetensorError) as error:
                raise ModelFileError(f"{directory / name} cannot be read ({error}); fetch the model again.") from error

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.clear()

    def read(self, name: str, target: torch.Tensor) -> None:
        """Copy one tensor into `target`, converting it.

        Raises
        ------
        ModelFileError
            There is no such tensor, or it has another shape.
        """
        if (file := self._files.get(name)) is None:
            raise ModelFileError(f"{self._directory} lacks the tensor {name}; fetch the model again.")
        values = file.get_tensor(name)
        if values.shape != target.shape:
            raise ModelFileError(
                f"{self._directory} has {name} of shape {tuple(values.shape)} where config.json says "
                f"{tuple(target.shape)}; fetch the model again."
            )
        target.copy_(values)
