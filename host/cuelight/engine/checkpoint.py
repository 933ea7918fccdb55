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

    def read(self, dtype: torch.dtype, *parts: tuple[str, tuple[int, ...]]) -> torch.Tensor:
        """Read tensors, each a name and the shape it must have, one above the other into a new one of type `dtype`.

        Raises
        ------
        ModelFileError
            There is no such tensor, or it has another shape.
        """
        # Before memory is taken: a garbled configuration may ask for any amount.
        for name, shape in parts:
            self._check(name, shape)
        whole = torch.empty(sum(shape[0] for _, shape in parts), *parts[0][1][1:], dtype=dtype)
        first = 0
        for name, shape in parts:
            whole[first : first + shape[0]].copy_(self._files[name].get_tensor(name))
            first += shape[0]
        return whole

    def _check(self, name: str, shape: tuple[int, ...]) -> None:
        if (file := self._files.get(name)) is None:
            raise ModelFileError(f"{self._directory} lacks the tensor {name}; fetch the model again.")
        if (found := tuple(file.get_slice(name).get_shape())) != shape:
            raise ModelFileError(
                f"{self._directory} has {name} of shape {found} where config.json says {shape}; fetch the model again."
            )
