"""What one question asks of the device, in the driver's terms."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from cuelight.engine.grammar import Grammar
from cuelight.filters import FilterSettings

__all__ = ["Order"]


@dataclass(frozen=True, slots=True)
class Order:
    """Prompts to be answered, each once or several times.

    Parameters
    ----------
    prompts : sequence of list of int
        Token ids of each.
    max_new_tokens : int
        New tokens at most.
    tier : str
        Name of the tier.
    owner : str
        Who asks.
    filters : FilterSettings
        What the question says about the choice of tokens.
    n : int
        Answers to each prompt.
    temperature : float, optional
        The model's own where None.
    seed : int
        Of a prompt's first answer; those after it count up.
    stop : tuple of str
        Texts that end an answer.
    top_logprobs : int
        Likeliest tokens to report with each.
    grammar : Grammar, optional
        Form that the answers must have.
    shown : set of int
        Special tokens that are seen in the text.
    whole : bool
        Nobody looks at an answer before its end.
    asked_ns : int
        When the question came, `time.monotonic_ns`.
    """

    prompts: Sequence[list[int]]
    max_new_tokens: int
    tier: str
    owner: str
    filters: FilterSettings
    n: int = 1
    temperature: float | None = None
    seed: int = 0
    stop: tuple[str, ...] = ()
    top_logprobs: int = 0
    grammar: Grammar | None = None
    shown: frozenset[int] = frozenset()
    whole: bool = False
    asked_ns: int = field(default_factory=time.monotonic_ns)

    @property
    def patient(self) -> bool:
        """Whether only the end of an answer is news."""
        return self.whole and not self.stop

    @property
    def answers(self) -> int:
        """How many in all."""
        return len(self.prompts) * self.n
