"""Rotary position embeddings (Su et al., arXiv 2104.09864) and the rules that stretch them to longer contexts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["RULES", "Rope"]

RULES = ("default", "divisors", "dynamic", "linear", "llama3", "yarn")


@dataclass(frozen=True, slots=True)
class Rope:
    """A rotary embedding with its scaling rule.

    Parameters
    ----------
    theta
        Base of the wavelengths.
    rule
        One of `RULES`. ``dynamic`` (NTK by length) changes nothing below the model's own context, which is also this
        engine's limit, so it equals ``default`` here.
    factor
        How many times longer the context is made (linear, llama3, yarn).
    original_context
        Positions the model was first trained on (llama3, yarn).
    low_frequency, high_frequency
        llama3: wavelengths above ``original_context / low_frequency`` are stretched in full, those below
        ``original_context / high_frequency`` not at all.
    beta_fast, beta_slow, truncate
        yarn (Peng et al., arXiv 2309.00071): rotations over ``original_context`` between which the stretch fades in,
        and whether the bounds are rounded outward to whole dimensions.
    amplitude
        yarn: factor on cosine and sine; None takes the paper's ``0.1 ln(factor) + 1``.
    divisors
        divisors: one for each pair of dimensions, as GGUF files carry them (llama3 rule, evaluated).
    """

    theta: float = 10_000.0
    rule: str = "default"
    factor: float = 1.0
    original_context: int = 0
    low_frequency: float = 1.0
    high_frequency: float = 4.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True
    amplitude: float | None = None
    divisors: tuple[float, ...] = ()

    @property
    def scale(self) -> float:
        """Factor on cosine and sine."""
        if self.rule != "yarn":
            return 1.0
        if self.amplitude is not None:
            return self.amplitude
        return 0.1 * math.log(self.factor) + 1.0 if self.factor > 1 else 1.0

    def frequencies(self, head_dim: int) -> NDArray[np.float32]:
        """Angle per position of each pair of dimensions, in radians.

        Returns
        -------
        ndarray
            Shape (head_dim / 2,), float32.
        """
        plain = self.theta ** (-np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)
        if self.rule == "linear":
            plain = plain / self.factor
        elif self.rule == "divisors":
            plain = plain / np.asarray(self.divisors)
        elif self.rule == "llama3":
            plain = self._stretch_by_wavelength(plain)
        elif self.rule == "yarn":
            plain = self._stretch_by_rotations(plain, head_dim)
        return plain.astype(np.float32)

    def _stretch_by_wavelength(self, plain: NDArray[np.float64]) -> NDArray[np.float64]:
        rotations = self.original_context * plain / (2 * math.pi)
        keep = (rotations - self.low_frequency) / (self.high_frequency - self.low_frequency)
        keep = np.clip(keep, 0.0, 1.0)
        return keep * plain + (1 - keep) * plain / self.factor

    def _stretch_by_rotations(self, plain: NDArray[np.float64], head_dim: int) -> NDArray[np.float64]:
        def dimension(rotations: float) -> float:
            wavelength = self.original_context / rotations
            return head_dim * math.log(wavelength / (2 * math.pi)) / (2 * math.log(self.theta))

        low, high = dimension(self.beta_fast), dimension(self.beta_slow)
        if self.truncate:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, head_dim - 1)
        width = high - low or 0.001
        stretch = np.clip((np.arange(head_dim // 2, dtype=np.float64) - low) / width, 0.0, 1.0)
        return (1 - stretch) * plain + stretch * plain / self.factor
