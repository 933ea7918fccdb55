"""The last minutes of a device: looks at it, and what changed between them."""

from __future__ import annotations

import collections
import itertools
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

    @property
    def latest(self) -> Look:
        """The last one."""
        return self._looks[-1]

    def add(self, look: Look) -> None:
        """Note what was seen."""
        before = self.latest
        if look.snapshot.status.boot_nonce != before.snapshot.status.boot_nonce:
            self._looks.clear()
            self._looks.append(look)
        elif look.time_s > before.time_s:
            self._looks.append(look)

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
        return None if before is None else _token_rates(before, self.latest)[tier]

    def token_series(self, count: int) -> Sequence[Sequence[float]]:
        """New tokens per second, by tier, between each two of the last looks; `count` at most, the latest last."""
        pairs = list(itertools.pairwise(self._looks))
        return [_token_rates(before, now) for before, now in pairs[-count:]]

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


def _token_rates(before: Look, now: Look) -> list[float]:
    """New tokens per second between two looks, by tier."""
    past_s = now.time_s - before.time_s
    return [(fresh - old) / past_s for fresh, old in zip(now.snapshot.tokens, before.snapshot.tokens, strict=True)]
