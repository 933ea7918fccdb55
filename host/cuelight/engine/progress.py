"""How long-running loading steps tell how far they are."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Progress", "silent"]

Progress = Callable[[str, float], None]
"""Called with what is being done and the share of it that is done, 0 to 1."""


def silent(what: str, share: float) -> None:
    """Progress that nobody wants to see."""
