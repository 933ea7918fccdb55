"""Headers of a request as its scope has them; an object of all of them takes longer to make than it is needed here."""

from __future__ import annotations

from starlette.types import Scope

__all__ = ["header"]


def header(scope: Scope, name: bytes) -> str | None:
    """A header's value, the first one's where there are several; None if there is none.

    Parameters
    ----------
    scope : Scope
        Of the request.
    name : bytes
        In lower case.
    """
    for other, value in scope["headers"]:
        if other == name:
            text: str = value.decode("latin-1")
            return text
    return None
