"""What is served."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

__all__ = ["Model", "ModelList", "Version"]


class Model(TypedDict):
    """A model, as GET /v1/models/{name} tells it."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    max_model_len: int
    """Positions that prompt and answer may have together."""


class ModelList(TypedDict):
    """What GET /v1/models tells."""

    object: Literal["list"]
    data: list[Model]


class Version(TypedDict):
    """What GET /version tells."""

    version: str
    rtl_hash: str
    """Of the device's RTL."""
