"""What shapes the choice of a token beyond temperature: truncation, penalties and biases."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict, Unpack

import numpy as np

from cuelight import regmap
from cuelight.errors import InvalidArgument

__all__ = ["MAX_BIASES", "MAX_TOP_LOGPROBS", "NO_FILTERS", "FilterSettings", "Filters", "check_top_logprobs"]

MAX_BIASES = regmap.SlotRecord.BIAS_COUNT
"""Entries of a logit bias; the slot record's table has no more."""

MAX_TOP_LOGPROBS = 20
"""Likeliest tokens that may be reported with each token."""

_PENALTY_BOUND = 2.0
_BIAS_BOUND = 100.0
_WORD = 1 << 31
# Lanes get single precision, in which less than this is 0, and 0.01 is a little less.
_LEAST_TOP_P = float(np.finfo(np.float32).smallest_subnormal)
_LEAST_PENALTY = float(np.float32(0.01))


class FilterSettings(TypedDict, total=False):
    """Settings of a request; those left out are the model's own, or have no effect."""

    top_k: int
    top_p: float
    min_p: float
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    logit_bias: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Filters:
    """Applied in the order of the fields, biases and penalties before temperature, truncation after it.

    The order is that of `transformers` (`GenerationMixin._get_logits_processor`), which lacks presence and frequency
    penalties; those stand beside the other penalty. As each is a value here, none can be applied twice.

    Parameters
    ----------
    logit_bias
        Token ids and what is added to their logits, -100 to 100; at most `MAX_BIASES`.
    repetition_penalty
        Positive logits of tokens in prompt or text are divided by it, negative ones multiplied (Keskar et al.,
        arXiv 1909.05858, as in transformers); 1 has no effect.
    presence_penalty, frequency_penalty
        Subtracted from the logits of tokens in the text, prompt excluded: once, and as often as they occur; -2 to 2
        (OpenAI API reference, chat completions).
    top_k
        Keep the likeliest so many, and equals of the last (Fan et al., arXiv 1805.04833); 0 keeps all.
    top_p
        Keep the likeliest that together have this probability, and equals of the last (Holtzman et al.,
        arXiv 1904.09751); 1 keeps all.
    min_p
        Keep those at least this many times as likely as the likeliest (Nguyen et al., arXiv 2407.01082); 0 keeps all.
    """

    logit_bias: tuple[tuple[int, float], ...] = ()
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0

    @property
    def adjusts(self) -> bool:
        """Whether logits change, so that even a greedy choice may."""
        return bool(self.logit_bias) or self.penalizes

    @property
    def penalizes(self) -> bool:
        """Whether earlier tokens matter."""
        return self.repetition_penalty != 1 or self.presence_penalty != 0 or self.frequency_penalty != 0

    @property
    def truncates(self) -> bool:
        """Whether unlikely tokens are left out."""
        return self.top_k > 0 or self.top_p < 1 or self.min_p > 0

    def override(self, **settings: Unpack[FilterSettings]) -> Filters:
        """Take a request's settings in place of these, one by one.

        Raises
        ------
        InvalidArgument
            There is no such setting.
        """
        if not settings:
            return self
        if unknown := settings.keys() - {field.name for field in dataclasses.fields(self)}:
            raise InvalidArgument(f"There is no sampling setting {min(unknown)!r}; see cuelight.Filters for all.")
        changes: dict[str, object] = dict(settings)
        if (bias := settings.get("logit_bias")) is not None:
            changes["logit_bias"] = tuple(bias.items())
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]

    def check(self) -> None:
        """Check every value.

        Raises
        ------
        InvalidArgument
            One is out of range, or there are too many biases.
        """
        if not 0 <= self.top_k < _WORD:
            raise InvalidArgument(f"top_k must be at least 0 (all tokens) and fit 31 bits, not {self.top_k}.")
        if not _LEAST_TOP_P <= self.top_p <= 1:
            raise InvalidArgument(f"top_p must be above 0 and at most 1, not {self.top_p}.")
        if not 0 <= self.min_p <= 1:
            raise InvalidArgument(f"min_p must be 0 to 1, not {self.min_p}.")
        if not _LEAST_PENALTY <= self.repetition_penalty <= 100:
            raise InvalidArgument(f"repetition_penalty must be 0.01 to 100, not {self.repetition_penalty}.")
        for name in ("presence_penalty", "frequency_penalty"):
            if not -_PENALTY_BOUND <= (value := getattr(self, name)) <= _PENALTY_BOUND:
                raise InvalidArgument(f"{name} must be -2 to 2, not {value}.")
        if len(self.logit_bias) > MAX_BIASES:
            raise InvalidArgument(f"logit_bias may have {MAX_BIASES} tokens at most, not {len(self.logit_bias)}.")
        if len({token for token, _ in self.logit_bias}) < len(self.logit_bias):
            raise InvalidArgument("logit_bias names a token twice; give each token one bias.")
        for token, bias in self.logit_bias:
            if not 0 <= token < _WORD:
                raise InvalidArgument(f"logit_bias names the token {token}; ids are 0 to 2,147,483,647.")
            if not (math.isfinite(bias) and -_BIAS_BOUND <= bias <= _BIAS_BOUND):
                raise InvalidArgument(f"logit_bias of token {token} must be -100 to 100, not {bias}.")


NO_FILTERS = Filters()
"""Nothing beyond temperature."""


def check_top_logprobs(count: int) -> None:
    """Check how many likeliest tokens are to be reported.

    Raises
    ------
    InvalidArgument
        Fewer than none, or too many.
    """
    if not 0 <= count <= MAX_TOP_LOGPROBS:
        raise InvalidArgument(f"top_logprobs must be 0 to {MAX_TOP_LOGPROBS}, not {count}.")
