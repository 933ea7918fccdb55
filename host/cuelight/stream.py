"""One generation's text, as it comes, and how long it took."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from cuelight.detokenize import Detokenizer
from cuelight.request import DEFAULT_TIMEOUT_S, Finish, Request

__all__ = ["Metrics", "Stream"]


@dataclass(frozen=True, slots=True)
class Metrics:
    """Times of one generation, measured where the driver sees tokens."""

    prompt_tokens: int
    new_tokens: int
    """End of text included."""
    ttft_s: float | None
    """Time to first token, from the call of `generate`; None: there is none yet."""
    itl_s: tuple[float, ...]
    """Inter-token latencies, one less than tokens."""

    @property
    def median_itl_s(self) -> float | None:
        """Median inter-token latency; None with fewer than two tokens."""
        return statistics.median(self.itl_s) if self.itl_s else None

    def to_dict(self) -> dict[str, Any]:
        """Make it JSON-ready."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "new_tokens": self.new_tokens,
            "ttft_s": self.ttft_s,
            "median_itl_s": self.median_itl_s,
            "max_itl_s": max(self.itl_s, default=None),
        }


class Stream:
    """Text of one generation; made by `LLM.generate`.

    Iterating yields pieces of text as they come, none of which ends within a character; it may be done again, and
    from several threads. End of text itself is no text.

    Attributes
    ----------
    request : Request
        The request behind it, with tokens and log probabilities.
    seed : int
        What its random numbers are keyed by.
    """

    def __init__(self, request: Request, seed: int, detokenizer: Callable[[], Detokenizer]) -> None:
        self.request = request
        self.seed = seed
        self._detokenizer = detokenizer

    @property
    def finish(self) -> Finish | None:
        """How it ended; None while it lives or if it failed."""
        return self.request.finish

    @property
    def metrics(self) -> Metrics:
        """Times up to now."""
        times_ns = [token.time_ns for token in self.request.received]
        return Metrics(
            prompt_tokens=self.request.prompt_tokens,
            new_tokens=len(times_ns),
            ttft_s=(times_ns[0] - self.request.submitted_ns) / 1e9 if times_ns else None,
            itl_s=tuple((later - sooner) / 1e9 for sooner, later in itertools.pairwise(times_ns)),
        )

    def pieces(self, timeout_s: float = DEFAULT_TIMEOUT_S) -> Iterator[str]:
        """Yield pieces of text as they come.

        Parameters
        ----------
        timeout_s : float
            Longest wait for one token, in seconds. A `Timeout` does not cancel the generation.

        Raises
        ------
        Timeout
            No token came in time.
        LaneError, DeviceLost, DeviceClosed
            The generation failed.
        """
        detokenizer = self._detokenizer()
        for token in self.request.tokens(timeout_s):
            if token.finish is not Finish.END_OF_TEXT and (piece := detokenizer.add(token.token)):
                yield piece
        if piece := detokenizer.flush():
            yield piece

    def __iter__(self) -> Iterator[str]:
        return self.pieces()

    def text(self, timeout_s: float = DEFAULT_TIMEOUT_S) -> str:
        """Wait for the end and return the whole text; `timeout_s` and errors as in `pieces`."""
        return "".join(self.pieces(timeout_s))

    def cancel(self) -> bool:
        """Stop it; False if it is over or ending."""
        return self.request.cancel()
