"""What chat and text questions have in common."""

from __future__ import annotations

import functools
from typing import Annotated, Literal

import pydantic
from pydantic import Field

from cuelight.filters import FilterSettings

__all__ = ["Sampling", "StreamOptions"]

Number = Annotated[float, Field(allow_inf_nan=False)]


class Question(pydantic.BaseModel):
    """Fields that mean nothing here are ignored, as clients send many."""

    model_config = pydantic.ConfigDict(extra="ignore", frozen=True)


class StreamOptions(Question):
    """OpenAI's `stream_options`."""

    include_usage: bool = False


class Sampling(Question):
    """Which model, for whom, and how tokens are chosen; what is None is as the model has it, or without effect."""

    model: str
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: Annotated[int | None, Field(ge=1)] = None
    temperature: Annotated[Number | None, Field(ge=0, le=100)] = None
    top_p: Annotated[Number | None, Field(gt=0, le=1)] = None
    top_k: Annotated[int | None, Field(ge=-1, lt=1 << 31)] = None
    min_p: Annotated[Number | None, Field(ge=0, le=1)] = None
    repetition_penalty: Annotated[Number | None, Field(ge=0.01, le=100)] = None
    presence_penalty: Annotated[Number | None, Field(ge=-2, le=2)] = None
    frequency_penalty: Annotated[Number | None, Field(ge=-2, le=2)] = None
    logit_bias: dict[int, Annotated[Number, Field(ge=-100, le=100)]] | None = None
    n: Annotated[int | None, Field(ge=1)] = None
    stop: str | list[str] | None = None
    seed: Annotated[int | None, Field(ge=-(1 << 63), lt=1 << 64)] = None
    user: str | None = None
    tier: str | None = None
    service_tier: str | None = None

    @functools.cached_property
    def stops(self) -> tuple[str, ...]:
        """Texts that end an answer."""
        return () if self.stop is None else (self.stop,) if isinstance(self.stop, str) else tuple(self.stop)

    @functools.cached_property
    def filters(self) -> FilterSettings:
        """What is said about the choice of tokens, beyond temperature."""
        said = FilterSettings()
        for name in _FILTERS:
            if (value := getattr(self, name)) is not None:
                # Others write -1 for "all".
                said[name] = max(0, value) if name == "top_k" else value
        return said


_FILTERS: tuple[
    Literal["top_k", "top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty", "logit_bias"],
    ...,
] = ("top_k", "top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty", "logit_bias")
