"""Who asks, by API key, and in which tiers they may."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

from cuelight.daemon.failures import AccessDenied, NotAllowed
from cuelight.daemon.settings import Settings
from cuelight.errors import UnknownTier

__all__ = ["Access", "Caller"]

ANYBODY = "anybody"
"""Who asks where there are no keys."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who may ask.

    Parameters
    ----------
    name : str
        Name of the key.
    tiers : tuple of str
        Those that may be used, the highest first.
    tier : str
        For questions that name none.
    """

    name: str
    tiers: tuple[str, ...]
    tier: str

    def choose_tier(self, tier: str | None, service_tier: str | None, known: tuple[str, ...]) -> str:
        """The tier that a question is for.

        Parameters
        ----------
        tier : str, optional
            Name of a tier.
        service_tier : str, optional
            The same in OpenAI's field, heeded if `tier` is None: its "auto" and "default" are the caller's own,
            "priority" the highest and "flex" the lowest that the caller may use.
        known : tuple of str
            All tiers.

        Raises
        ------
        UnknownTier
            There is no such tier.
        NotAllowed
            The caller may not use it.
        """
        name = tier or service_tier
        if name in self.tiers:
            return name
        if tier is None:
            match service_tier:
                case None | "" | "auto" | "default":
                    return self.tier
                case "priority" | "scale":
                    return self.tiers[0]
                case "flex":
                    return self.tiers[-1]
        if name in known:
            raise NotAllowed(f"This API key may not use the tier {name}; use {' or '.join(self.tiers)}.")
        raise UnknownTier(f"There is no tier {name!r}; use {' or '.join(self.tiers)}.")


class Access:
    """Tells who asks.

    Parameters
    ----------
    settings : Settings
        Keys and tiers.
    """

    def __init__(self, settings: Settings) -> None:
        self.tiers = tuple(sorted(settings.tiers, key=lambda name: settings.tiers[name].level))
        self._anybody = Caller(ANYBODY, self.tiers, settings.default_tier)
        self._callers: list[tuple[bytes, Caller]] = []
        for name, key in settings.keys.items():
            digest = bytes.fromhex(key.sha256) if key.sha256 else hashlib.sha256((key.key or "").encode()).digest()
            tiers = self.tiers if key.tiers is None else tuple(tier for tier in self.tiers if tier in key.tiers)
            self._callers.append((digest, Caller(name, tiers, key.tier or settings.default_tier)))

    def caller(self, authorization: str | None) -> Caller:
        """Tell who sent this Authorization header; takes as long for a wrong key as for any right one.

        Raises
        ------
        AccessDenied
            It holds no key, or a wrong one.
        """
        if not self._callers:
            return self._anybody
        scheme, _, key = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not key:
            raise AccessDenied("An API key is needed here; send it as 'Authorization: Bearer KEY'.")
        # As it was sent: headers are read as Latin-1, whatever they are.
        digest = hashlib.sha256(key.strip().encode("latin-1", "replace")).digest()
        found = None
        for known, caller in self._callers:
            if hmac.compare_digest(known, digest):
                found = caller
        if found is None:
            raise AccessDenied("This API key is not known here; send one that the daemon's settings name.")
        return found
