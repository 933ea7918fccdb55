"""What a daemon's /metrics say at one moment."""

from __future__ import annotations

import math
import urllib.request
from collections.abc import Mapping
from typing import Self

from prometheus_client.parser import text_string_to_metric_families

__all__ = ["Scrape", "fetch"]

_Labels = tuple[tuple[str, str], ...]
_LIMIT = 1 << 22


class Scrape:
    """Values by name and labels.

    Parameters
    ----------
    values : mapping
        From names and sorted labels.
    """

    def __init__(self, values: Mapping[tuple[str, _Labels], float]) -> None:
        self._values = dict(values)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the text format of Prometheus.

        Raises
        ------
        ValueError
            It is none.
        """
        return cls(
            {
                (sample.name, tuple(sorted(sample.labels.items()))): sample.value
                for family in text_string_to_metric_families(text)
                for sample in family.samples
            }
        )

    def value(self, name: str, **labels: str) -> float | None:
        """Of `cuelight_<name>` with exactly these labels; None where it is not told."""
        return self._values.get((f"cuelight_{name}", tuple(sorted(labels.items()))))

    def levels(self) -> dict[int, str]:
        """Names of the daemon's tiers, by level."""
        return {
            int(value): dict(labels)["tier"]
            for (name, labels), value in self._values.items()
            if name == "cuelight_tier_level"
        }

    def quantile(self, share: float, name: str, tier: str, before: Scrape | None = None) -> float | None:
        """Value below which a share of a histogram lies, of what came since `before`; None if nothing did.

        As Prometheus does it: linear within a bucket.
        """
        buckets = self._buckets(name, tier)
        if before is not None:
            earlier = dict(before._buckets(name, tier))
            buckets = [(bound, count - earlier.get(bound, 0.0)) for bound, count in buckets]
        if not buckets or buckets[-1][1] <= 0:
            return None
        rank = share * buckets[-1][1]
        low, below = 0.0, 0.0
        for bound, count in buckets:
            if count >= rank:
                if math.isinf(bound):
                    return low
                return low + (bound - low) * (rank - below) / (count - below)
            low, below = bound, count
        return low

    def _buckets(self, name: str, tier: str) -> list[tuple[float, float]]:
        """Upper bounds with counts up to there, ascending."""
        found = []
        for (full, labels), count in self._values.items():
            if full == f"cuelight_{name}_bucket" and (given := dict(labels)).get("tier") == tier:
                found.append((float(given["le"]), count))
        return sorted(found)


def fetch(url: str, timeout_s: float = 0.5) -> Scrape | None:
    """What the daemon at `url` tells; None if it does not answer in time, or not with metrics."""
    try:
        with urllib.request.urlopen(f"{url}/metrics", timeout=timeout_s) as answer:
            return Scrape.parse(answer.read(_LIMIT).decode())
    except (OSError, ValueError):
        return None
