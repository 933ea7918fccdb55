"""What one question asks of the device, in the driver's terms."""

from __future__ import annotations

from dataclasses import dataclass

from cuelight.filters import FilterSettings

__all__ = ["Order"]


@dataclass(frozen=True, slots=True)
class Order:
    """A prompt to be continued, once or several times.

    Parameters
    ----------
    tokens : list of int
        The prompt.
    max_new_tokens : int
        New tokens at most.
    tier : str
        Name of the tier.
    owner : str
        Who asks.
    filters : FilterSettings
        What the question says about the choice of tokens.
    n : int
        Continuations.
    temperature : float, optional
        The model's own where None.
    seed : int
        Of the first continuation; those after it count up.
    stop : tuple of str
        Texts that end a continuation.
    top_logprobs : int
        Likeliest tokens to report with each.
    whole : bool
        Nobody looks at a continuation before its end.
    """

    tokens: list[int]
    max_new_tokens: int
    tier: str
    owner: str
    filters: FilterSettings
    n: int = 1
    temperature: float | None = None
    seed: int = 0
    stop: tuple[str, ...] = ()
    top_logprobs: int = 0
    whole: bool = False
