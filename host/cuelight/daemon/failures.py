"""What goes wrong, as clients are told: a status, and one sentence in the form that OpenAI's clients know."""

from __future__ import annotations

import math
from typing import NamedTuple

from pydantic_core import to_json
from starlette.responses import Response

from cuelight.errors import ChatTemplateError, CuelightError, FormatNotKept, InvalidArgument, PoisonRequest, Timeout

__all__ = [
    "AccessDenied",
    "Busy",
    "CoreLost",
    "Late",
    "NotAllowed",
    "NotServed",
    "NotStarted",
    "Stopping",
    "describe",
    "error_body",
    "refuse",
]


class AccessDenied(CuelightError):
    """No API key, or a wrong one."""


class NotAllowed(CuelightError):
    """The API key is right, but not for this."""


class NotServed(CuelightError):
    """A model that this daemon does not have."""


class Stopping(CuelightError):
    """The daemon is ending."""


class Busy(CuelightError):
    """There is no room now.

    Parameters
    ----------
    message : str
        One sentence: cause and remedy.
    retry_after_s : float
        When it is worth asking again.
    """

    def __init__(self, message: str, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Late(CuelightError):
    """The promise can't be kept, and there is a cached answer for that.

    Parameters
    ----------
    answer : str
        What to say instead.
    """

    def __init__(self, answer: str) -> None:
        super().__init__("The promised time to first token can't be kept; ask again later for an answer of its own.")
        self.answer = answer


class NotStarted(CuelightError):
    """Something that the driver does not raise on purpose."""

    def __init__(self, what: str) -> None:
        super().__init__(f"The request could not be started ({what}); report this as a bug.")


class CoreLost(CuelightError):
    """The core of a front end is gone."""

    def __init__(
        self, message: str = "The daemon's core has died; start the daemon again, or ask another one."
    ) -> None:
        super().__init__(message)


class Description(NamedTuple):
    """How an error is told."""

    status: int
    type: str
    code: str | None


_DESCRIPTIONS: dict[type[CuelightError], Description] = {
    AccessDenied: Description(401, "authentication_error", "invalid_api_key"),
    NotAllowed: Description(403, "permission_error", None),
    NotServed: Description(404, "invalid_request_error", "model_not_found"),
    Busy: Description(429, "rate_limit_error", "rate_limit_exceeded"),
    Stopping: Description(503, "service_unavailable", None),
    InvalidArgument: Description(400, "invalid_request_error", None),
    ChatTemplateError: Description(400, "invalid_request_error", None),
    # Not the service's fault, so that clients do not try again what ends lanes, or what the model can't spell.
    PoisonRequest: Description(422, "invalid_request_error", "poison_request"),
    FormatNotKept: Description(422, "invalid_request_error", "format_not_kept"),
    Timeout: Description(504, "timeout", None),
}
_OWN_FAULT = Description(503, "service_unavailable", None)


def describe(error: CuelightError) -> Description:
    """Status, type and code of an error; what is nobody's mistake is the service's."""
    return next((text for kind, text in _DESCRIPTIONS.items() if isinstance(error, kind)), _OWN_FAULT)


def error_body(message: str, type: str, code: str | None = None, param: str | None = None) -> bytes:
    """JSON that OpenAI's clients take for an error."""
    return to_json({"error": {"message": message, "type": type, "param": param, "code": code}})


def refuse(error: CuelightError) -> Response:
    """Answer to a question that failed before anything was sent."""
    status, type, code = describe(error)
    headers = {}
    if isinstance(error, Busy):
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after_s)))
    elif isinstance(error, Stopping):
        headers["Retry-After"] = "5"
    elif isinstance(error, AccessDenied):
        headers["WWW-Authenticate"] = "Bearer"
    return Response(error_body(str(error), type, code), status, headers, "application/json")
