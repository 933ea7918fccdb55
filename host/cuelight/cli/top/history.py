"""The last minutes of a device: looks at it, and what changed between them."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cuelight.cli.top.scrape import Scrape
from cuelight.snapshot import Snapshot
from cuelight.tiers import tier_name

__all__ = ["History", "Look"]

_LOOKS = 600
_RATE_S = 3.0
_LATENCY_S = 30.0
_WRAP = 1 << 32


@dataclass(frozen=True, slots=True)
class Look:
    """A device at one moment, and what its daemon says, if it has one."""

    snapshot: Snapshot
    scrape: Scrape | None

    @property
    def time_s(self) -> float:
        """When, by the device's own count."""
        return self.snapshot.uptime_s


class History:
    """Looks at one device, and rates between them; it begins anew with a fresh device.

    Parameters
    ----------
    look : Look
        The first.
    """

    def __init__(self, look: Look) -> None:
        self._looks = collections.deque([look], _LOOKS)
        self._tokens = collections.deque([[0.0] * len(look.snapshot.waiting)], _LOOKS)

    @property
    def latest(self) -> Look:
        """The last one."""
        return self._looks[-1]

    def add(self, look: Look) -> None:
        """Note what was seen."""
        before = self.latest
        if look.snapshot.status.boot_nonce != before.snapshot.status.boot_nonce:
            self._looks.clear()
            self._tokens.clear()
            self._looks.append(look)
            self._tokens.append([0.0] * len(look.snapshot.waiting))
        elif look.time_s > before.time_s:
            self._looks.append(look)
            self._tokens.append([self._fresh_tokens(before, look, tier) for tier in range(len(look.snapshot.waiting))])

    def name(self, tier: int) -> str:
        """Of a tier: what its daemon calls it, or else the usual one."""
        scrape = self.latest.scrape
        return (scrape.levels() if scrape else {}).get(tier, tier_name(tier))

    def rate(self, count: Callable[[Snapshot], int], span_s: float = _RATE_S) -> float | None:
        """Changes per second of a count of 32 bits, over the last seconds; None before there are two looks."""
        before = self._before(span_s)
        if before is None:
            return None
        change = (count(self.latest.snapshot) - count(before.snapshot)) % _WRAP
        return change / (self.latest.time_s - before.time_s)

    def busy(self, lane: int) -> float | None:
        """Share of the last seconds in which a lane had a dispatch."""
        before = self._before(_RATE_S)
        if before is None:
            return None
        now, then = self.latest.snapshot.status, before.snapshot.status
        past_ns = now.time_ns - then.time_ns
        return min(1.0, max(0.0, (now.lanes[lane].busy_ns - then.lanes[lane].busy_ns) / past_ns)) if past_ns else None

    def token_rate(self, tier: int) -> float | None:
        """New tokens per second of a tier, over the last seconds."""
        before = self._before(_RATE_S)
        if before is None:
            return None
        count = next(index for index, look in enumerate(reversed(self._looks)) if look is before)
        fresh = sum(tokens[tier] for tokens in list(self._tokens)[-count:])
        return fresh / (self.latest.time_s - before.time_s)

    def token_series(self, count: int) -> Sequence[Sequence[float]]:
        """New tokens per second, by tier, between each two of the last looks; `count` at most, the latest last."""
        looks, tokens = list(self._looks), list(self._tokens)
        series = []
        for index in range(max(1, len(looks) - count), len(looks)):
            past_s = looks[index].time_s - looks[index - 1].time_s
            series.append([fresh / past_s for fresh in tokens[index]])
        return series

    def request_rate(self, request_id: int) -> float | None:
        """New tokens per second of a request, over the last seconds."""
        before = self._before(_RATE_S)
        if before is None:
            return None
        then = {request.id: request.new_tokens for request in before.snapshot.requests}
        now = next(request.new_tokens for request in self.latest.snapshot.requests if request.id == request_id)
        return (now - then.get(request_id, 0)) / (self.latest.time_s - before.time_s)

    def latency(self, share: float, name: str, tier: int) -> float | None:
        """Quantile of one of the daemon's histograms, in seconds, over the last half minute."""
        latest = self.latest
        if latest.scrape is None:
            return None
        before = self._before(_LATENCY_S)
        return latest.scrape.quantile(share, name, self.name(tier), before.scrape if before else None)

    def told(self, name: str, tier: int) -> float | None:
        """What the daemon says about a tier."""
        scrape = self.latest.scrape
        return scrape.value(name, tier=self.name(tier)) if scrape else None

    def _before(self, span_s: float) -> Look | None:
        """The oldest look that is not longer ago, or else the one before the last."""
        if len(self._looks) < 2:
            return None
        horizon_s = self.latest.time_s - span_s
        return next(
            (look for look in self._looks if look.time_s >= horizon_s and look is not self.latest), self._looks[-2]
        )

    def _fresh_tokens(self, before: Look, now: Look, tier: int) -> float:
        if before.scrape and now.scrape:
            name = now.scrape.levels().get(tier)
            counts = [
                scrape.value("generation_tokens_total", tier=name or "") for scrape in (before.scrape, now.scrape)
            ]
            return max(0.0, (counts[1] or 0.0) - (counts[0] or 0.0))
        then = {request.id: request.new_tokens for request in before.snapshot.requests}
        return float(
            sum(
                max(0, request.new_tokens - then.get(request.id, 0))
                for request in now.snapshot.requests
                if request.tier == tier
            )
        )
