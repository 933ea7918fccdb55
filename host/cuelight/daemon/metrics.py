"""What the daemon counts and times, by tier; names and meanings follow vLLM's where it has them."""

from __future__ import annotations

import itertools
import time
from bisect import bisect_left
from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics
from prometheus_client.exposition import choose_encoder

from cuelight.request import Token

__all__ = ["Metrics", "Record", "render"]

_FIRST_TOKEN_S = (0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_BETWEEN_S = (0.001, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1, 2.5, 5)
_WHOLE_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300)
_LENGTHS = (1, 4, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768)

# When a counter began says nothing that its reset does not.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """Counts and times of all questions; for one thread, the event loop's.

    Parameters
    ----------
    registry : CollectorRegistry
        Where they can be looked at, by any thread.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._tiers: dict[str, _Tier] = {}

        def histogram(name: str, text: str, buckets: Sequence[float]) -> _Spread:
            return _Spread(f"cuelight_{name}", text, ["tier"], buckets=buckets, registry=registry)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"cuelight_{name}", text, ["tier", *labels], registry=registry)

        self.first_token = histogram(
            "time_to_first_token_seconds", "From a question's arrival to its first token", _FIRST_TOKEN_S
        )
        self.between = histogram(
            "inter_token_latency_seconds", "Between a token and the one before it of a continuation", _BETWEEN_S
        )
        self.whole = histogram("e2e_request_latency_seconds", "From a question's arrival to its end", _WHOLE_S)
        self.queue = histogram(
            "request_queue_time_seconds", "From a question's arrival until the device has it", _WHOLE_S
        )
        self.prompt_length = histogram("request_prompt_tokens", "Tokens of a question's prompt", _LENGTHS)
        self.answer_length = histogram("request_generation_tokens", "New tokens of a question's answer", _LENGTHS)
        self.prompt_tokens = counter("prompt_tokens", "Tokens of prompts")
        self.new_tokens = counter("generation_tokens", "New tokens")
        self.looked_up = counter("prefix_cache_queries", "Tokens of prompts that were looked up in the prefix cache")
        self.found = counter("prefix_cache_hits", "Tokens of prompts that were found in the prefix cache")
        self.success = counter("request_success", "Questions that ended, by how", "finished_reason")
        self.failures = counter("request_failures", "Questions that failed once they were taken, by why", "reason")
        self.rejects = counter("rejects", "Questions that were not taken, by why", "reason")
        self.degraded = counter("degraded", "Questions that got their tier's cached answer")

    def question(self, tier: str, asked_ns: int, prompt_tokens: int) -> Record:
        """Note a question.

        Parameters
        ----------
        tier : str
            Name of its tier.
        asked_ns : int
            When it came, `time.monotonic_ns`.
        prompt_tokens : int
            Length of its prompt.
        """
        if tier not in self._tiers:
            self._tiers[tier] = _Tier(self, tier)
        return Record(self._tiers[tier], asked_ns, prompt_tokens)


def render(registry: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """All metrics in the format that an Accept header asks for, and its content type."""
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


class _Spread(Histogram):
    """A histogram that takes many amounts at once."""

    def observe_all(self, amounts: Sequence[float]) -> None:
        """Observe each of them."""
        if amounts:
            self._sum.inc(sum(amounts))
            buckets = [bisect_left(self._upper_bounds, amount) for amount in amounts]
            for bucket in set(buckets):
                self._buckets[bucket].inc(buckets.count(bucket))


class _Tier:
    """The metrics of one tier: labels are bound once, so that a token costs no look-up."""

    def __init__(self, metrics: Metrics, name: str) -> None:
        self.name = name
        self.first_token = metrics.first_token.labels(name)
        self.between = metrics.between.labels(name)
        self.whole = metrics.whole.labels(name)
        self.queue = metrics.queue.labels(name)
        self.prompt_length = metrics.prompt_length.labels(name)
        self.answer_length = metrics.answer_length.labels(name)
        self.prompt_tokens = metrics.prompt_tokens.labels(name)
        self.new_tokens = metrics.new_tokens.labels(name)
        self.looked_up = metrics.looked_up.labels(name)
        self.found = metrics.found.labels(name)
        self.degraded = metrics.degraded.labels(name)
        self.success = metrics.success
        self.failures = metrics.failures
        self.rejects = metrics.rejects


class Record:
    """One question on its way through the metrics; made by `Metrics.question`.

    `degrade`, `fail` and `end` are its end: the first one counts.

    Attributes
    ----------
    outcome : str
        How it ended; empty before that.
    """

    def __init__(self, tier: _Tier, asked_ns: int, prompt_tokens: int) -> None:
        self._tier = tier
        self._asked_ns = asked_ns
        self._prompt_tokens = prompt_tokens
        self._new_tokens = 0
        self._latest_ns: dict[int, int] = {}
        self._running = False
        self.outcome = ""

    @property
    def new_tokens(self) -> int:
        """Tokens that came."""
        return self._new_tokens

    def start(self, began_ns: int) -> None:
        """The device has it, since `began_ns`, `time.monotonic_ns`."""
        self._running = True
        self._tier.queue.observe((began_ns - self._asked_ns) / 1e9)

    def take(self, index: int, tokens: Sequence[Token]) -> None:
        """Tokens of a continuation came; times are those at which the driver saw them."""
        if not tokens:
            return
        tier = self._tier
        if not self._new_tokens:
            tier.first_token.observe((tokens[0].time_ns - self._asked_ns) / 1e9)
        times_ns = [token.time_ns for token in tokens]
        if index in self._latest_ns:
            times_ns.insert(0, self._latest_ns[index])
        tier.between.observe_all([(later - sooner) / 1e9 for sooner, later in itertools.pairwise(times_ns)])
        self._latest_ns[index] = times_ns[-1]
        self._new_tokens += len(tokens)
        tier.new_tokens.inc(len(tokens))

    def end(self, finish: str, cached_tokens: int) -> None:
        """It is over: "stop", "length", or "abort" if its client is gone."""
        if self._close(finish):
            self._tier.success.labels(self._tier.name, finish).inc()
            self._tier.found.inc(cached_tokens)

    def degrade(self) -> None:
        """It got the tier's cached answer."""
        if self._close("degraded"):
            self._tier.degraded.inc()

    def fail(self, error: Exception) -> None:
        """It failed, or was not taken, if it had not started."""
        reason = type(error).__name__
        if self._close(reason):
            counter = self._tier.failures if self._running else self._tier.rejects
            counter.labels(self._tier.name, reason).inc()

    def _close(self, outcome: str) -> bool:
        if self.outcome:
            return False
        self.outcome = outcome
        tier = self._tier
        if self._running:
            tier.whole.observe(self._since_asked())
            tier.prompt_tokens.inc(self._prompt_tokens)
            tier.looked_up.inc(self._prompt_tokens)
            tier.prompt_length.observe(self._prompt_tokens)
            tier.answer_length.observe(self._new_tokens)
        return True

    def _since_asked(self) -> float:
        return (time.monotonic_ns() - self._asked_ns) / 1e9
