"""What the daemon is told: server, limits, tiers and API keys, in one TOML file."""

from __future__ import annotations

import ipaddress
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import pydantic
from pydantic import Field

from cuelight.errors import CuelightError
from cuelight.regmap import TIER_COUNT
from cuelight.tiers import TIERS

__all__ = ["Key", "Limits", "Log", "Server", "Settings", "SettingsError", "TierSettings", "load_settings"]

MOST_SUGGESTIONS = 3
MOST_FRONT_ENDS = 64


class SettingsError(CuelightError):
    """The settings file can't be used."""


class Part(pydantic.BaseModel):
    """Values are of the type that is asked for, and a name that means nothing is a mistake."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, strict=True)


class Server(Part):
    """Where the daemon listens, and how it ends."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8000
    drain_s: Annotated[float, Field(ge=0)] = 30.0
    """How long answers that are under way may take once the daemon was asked to end."""
    front_ends: Annotated[int, Field(ge=0, le=MOST_FRONT_ENDS)] = 0
    """Processes that speak HTTP; 0: the one that has the device does so itself."""

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


class Limits(Part):
    """What one client, or one question, may take."""

    body_bytes: Annotated[int, Field(ge=1024)] = 2 << 20
    prompt_tokens: Annotated[int | None, Field(ge=1)] = None
    """What the context leaves where None."""
    new_tokens: Annotated[int, Field(ge=1)] = 512
    """New tokens of an answer whose question names no number."""
    n: Annotated[int, Field(ge=1)] = 8
    stop: Annotated[int, Field(ge=0)] = 16
    connections: Annotated[int, Field(ge=1)] = 1024
    receive_s: Annotated[float, Field(gt=0)] = 30.0
    """How long a question may take to arrive."""
    stall_s: Annotated[float, Field(gt=0)] = 60.0
    """How long a client may leave what was sent to it unread."""


class Log(Part):
    """What is logged, to standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    text: bool = False
    """Prompts and answers too."""


class TierSettings(Part):
    """A latency tier: what the device grants it, and what the daemon promises."""

    level: Annotated[int, Field(ge=0, lt=TIER_COUNT)]
    """Tier of the device, 0 the highest."""
    min_seats: Annotated[int, Field(ge=0)] = 0
    min_rows: Annotated[int, Field(ge=0)] = 0
    kv_floor: Annotated[int | None, Field(ge=0)] = None
    """KV blocks that it leaves to others; a sixteenth for each tier above it where None."""
    seat_floor: Annotated[int | None, Field(ge=0)] = None
    """Seats that it leaves free for others; one for each tier above it where None."""
    queue: Annotated[int, Field(ge=0)] = 256
    """Generations that may wait."""
    wait_s: Annotated[float, Field(gt=0)] = 60.0
    """Longest wait in the queue."""
    first_token_ms: Annotated[float | None, Field(gt=0)] = None
    """Promised time to first token."""
    when_late: Literal["queue", "refuse", "degrade"] = "queue"
    """What happens to a question for which the promise can't be kept."""
    cached_answer: str | None = None
    """What is said instead where `when_late` is degrade."""
    suggestions: Annotated[int, Field(ge=0, le=MOST_SUGGESTIONS)] = 0
    """Follow-up suggestions that may be asked for."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if self.when_late == "degrade" and not self.cached_answer:
            raise ValueError('when_late = "degrade" needs a cached_answer')
        if self.when_late != "queue" and self.first_token_ms is None:
            raise ValueError(f'when_late = "{self.when_late}" needs first_token_ms, the promise')
        return self


class Key(Part):
    """An API key and what may be asked with it."""

    key: Annotated[str | None, Field(min_length=8)] = None
    sha256: Annotated[str | None, Field(pattern="^[0-9a-fA-F]{64}$")] = None
    """Digest of the key, so that the file holds no secret."""
    tiers: list[str] | None = None
    """All where None."""
    tier: str | None = None
    """For questions that name none."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if (self.key is None) == (self.sha256 is None):
            raise ValueError("give either key or sha256")
        return self


def _default_tiers() -> dict[str, TierSettings]:
    return {
        "vip": TierSettings(level=TIERS["vip"], first_token_ms=50.0, suggestions=3),
        "standard": TierSettings(level=TIERS["standard"], first_token_ms=100.0, suggestions=1),
        "best-effort": TierSettings(level=TIERS["best-effort"]),
    }


class Settings(Part):
    """All of it."""

    server: Server = Server()
    limits: Limits = Limits()
    log: Log = Log()
    tiers: Annotated[dict[str, TierSettings], Field(default_factory=_default_tiers, min_length=1)]
    default_tier: str = "standard"
    """For questions that name none."""
    keys: dict[str, Key] = {}
    """By the name of who has it; without any, whoever reaches the daemon may ask."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        levels = [tier.level for tier in self.tiers.values()]
        if len(set(levels)) < len(levels):
            raise ValueError("two tiers have the same level")
        self._check_tier("default_tier", self.default_tier)
        for name, key in self.keys.items():
            for tier in (*(key.tiers or ()), *filter(None, [key.tier])):
                self._check_tier(f"keys.{name}", tier)
            if key.tiers is not None and (key.tier or self.default_tier) not in key.tiers:
                raise ValueError(f"keys.{name} may not use its own default tier; give it a tier out of its tiers")
        if not self.server.is_local and not self.keys:
            raise ValueError(
                f"server.host {self.server.host} lets other machines in, and no API key keeps anybody out; add keys"
            )
        return self

    def _check_tier(self, where: str, tier: str) -> None:
        if tier not in self.tiers:
            raise ValueError(f"{where} names the tier {tier!r}, but there are {', '.join(self.tiers)}")


def load_settings(path: Path | None, **server: Any) -> Settings:
    """Read settings; without a file all are as they are by default.

    Parameters
    ----------
    path : Path, optional
        A TOML file.
    **server
        Values of `Server` that take the place of the file's, but for None.

    Raises
    ------
    SettingsError
        The file can't be read, or says what can't be.
    """
    said: dict[str, Any] = {}
    where = "The settings" if path is None else str(path)
    if path is not None:
        try:
            said = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise SettingsError(
                f"{path} can't be read as settings ({error}); correct it, it is a TOML file."
            ) from error
    given = {name: value for name, value in server.items() if value is not None}
    if given and isinstance(said.setdefault("server", {}), dict):
        said["server"] |= given
    try:
        return Settings.model_validate(said)
    except pydantic.ValidationError as error:
        raise SettingsError(f"{where} can't be used: {_describe(error)}.") from error


def _describe(error: pydantic.ValidationError) -> str:
    """The first mistake in words, and how many more there are."""
    first, *more = error.errors(include_url=False)
    place = ".".join(str(part) for part in first["loc"])
    match first["type"]:
        case "extra_forbidden":
            what = f"there is no setting {place}; take it out, or correct its name"
        case "value_error":
            # What the models above say themselves.
            what = f"{place + ': ' if place else ''}{first['ctx']['error']}"
        case _:
            what = f"{place}: {first['msg'][:1].lower()}{first['msg'][1:]}; correct it"
    return what + (f" (and {len(more)} more)" if more else "")
