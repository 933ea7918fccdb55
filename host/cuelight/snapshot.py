"""What a running device shows to other processes: itself, its lanes and its requests, at one moment."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from enum import Enum
from typing import Any, Self

from cuelight.status import Status, name_codes

__all__ = ["Failovers", "RequestState", "Snapshot"]


@dataclass(frozen=True, slots=True)
class RequestState:
    """An automatic request that lives."""

    id: int
    tier: int
    group: int
    prompt_tokens: int
    new_tokens: int
    """Tokens that have come so far."""
    max_new_tokens: int
    parked: bool
    """It waits for a credit."""
    age_s: float
    """Time since `submit`, in seconds."""


@dataclass(frozen=True, slots=True)
class Failovers:
    """What was lost since the device was opened, and what became of the requests."""

    lanes: int
    """Lanes that were replaced with requests on them or without."""
    devices: int
    """Devices that were replaced."""
    replayed: int
    """Times that a request was taken back to be admitted again."""
    given_up: int
    """Requests that failed because they got no token in several attempts."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A device in use."""

    device: str
    """Its URI."""
    title: str
    """What it is used for: with `LLM` the model."""
    program: str
    pid: int
    """Process that has opened it."""
    url: str
    """HTTP address at which it serves; empty if it does not."""
    uptime_s: float
    """Time since it was opened, in seconds."""
    status: Status
    lane_pids: tuple[int, ...]
    """Process of each lane, 0 where none is at work."""
    waiting: tuple[int, ...]
    """By tier, requests that wait on the host for a slot or for KV blocks."""
    tokens: tuple[int, ...]
    """By tier, tokens that have come since it was opened."""
    requests: tuple[RequestState, ...]
    """Oldest first."""
    failovers: Failovers

    def to_dict(self) -> dict[str, Any]:
        """Make it JSON-ready."""
        return asdict(self, dict_factory=name_codes)

    @classmethod
    def from_dict(cls, values: object) -> Self:
        """Take what `to_dict` gave, from JSON.

        Raises
        ------
        ValueError
            A field is missing, is one too many, or is of another type.
        """
        snapshot = _build(cls, values)
        assert isinstance(snapshot, cls)
        return snapshot


def _build(kind: Any, value: object) -> Any:
    origin = typing.get_origin(kind)
    if origin is tuple and isinstance(value, list):
        return tuple(_build(typing.get_args(kind)[0], item) for item in value)
    if origin is types.UnionType:
        return None if value is None else _build(typing.get_args(kind)[0], value)
    if isinstance(kind, type) and is_dataclass(kind) and isinstance(value, Mapping):
        if value.keys() != {field.name for field in fields(kind)}:
            raise ValueError(f"no {kind.__name__}")
        hints = typing.get_type_hints(kind)
        return kind(**{name: _build(hints[name], item) for name, item in value.items()})
    if origin is Mapping and isinstance(value, dict):
        of, to = typing.get_args(kind)
        return {_build(of, key): _build(to, each) for key, each in value.items()}
    if isinstance(kind, type) and issubclass(kind, Enum) and isinstance(value, str) and value in kind.__members__:
        return kind[value]
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise ValueError(f"{value!r} is no {kind}")
    return value
