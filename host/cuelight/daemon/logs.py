"""The daemon's log: one JSON object a line, with the id of the request it is about and none of its text."""

from __future__ import annotations

import asyncio
import contextvars
import datetime
import logging
import random
import re
import time
from typing import IO, Any

from pydantic_core import to_json
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cuelight.daemon.headers import header

__all__ = ["LogRequests", "about_request", "draw_id", "set_level", "write_json_lines"]

_log = logging.getLogger(__name__)
_request_id: contextvars.ContextVar[str] = contextvars.ContextVar("cuelight_request_id", default="")
_SANE_ID = re.compile(r"[\w.:-]{1,128}", re.ASCII)
_SCOPE = "cuelight.log"
_LINGER_S = 0.005


class JsonLines(logging.Formatter):
    """Time, level, logger, message and request id; then what was given as ``extra={"fields": {…}}``."""

    def format(self, record: logging.LogRecord) -> str:
        """Make the line."""
        when = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
        line: dict[str, Any] = {
            "time": when.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if request_id := _request_id.get():
            line["request_id"] = request_id
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return to_json(line, fallback=str).decode()


def write_json_lines(stream: IO[str], level: str) -> logging.Handler:
    """Have what is logged written to `stream` from now on, by the daemon and its server from `level` on.

    Returns
    -------
    logging.Handler
        To be removed from the root logger to end that.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    logging.getLogger().addHandler(handler)
    # The lines do not tell of them.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    # Our own line about each request tells more.
    logging.getLogger("uvicorn.access").setLevel(logging.WARNING)
    set_level(level)
    return handler


def set_level(level: str) -> None:
    """Log what is at least so important: debug, info, warning or error."""
    for name in ("cuelight", "uvicorn"):
        logging.getLogger(name).setLevel(level.upper())


def draw_id() -> str:
    """An id that nobody else has; no secret, so that it costs no call of the operating system."""
    return f"{random.getrandbits(128):032x}"


def about_request(scope: Scope, **fields: object) -> None:
    """Add fields to the line that tells of the request with this scope once it is over."""
    scope.setdefault(_SCOPE, {}).update(fields)


class LogRequests:
    """Gives each HTTP request an id, its client's `X-Request-Id` if that is sane, and logs one line about it.

    The id is in everything that is logged meanwhile, and in the answer's header. Lines are made some milliseconds
    later, several at once: a client's thread that is woken by its answer would wait for ours to come to rest.

    Parameters
    ----------
    app : ASGIApp
        What answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._over: list[dict[str, Any]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            # It was the application's life, and is over.
            self._tell()
            return
        given = header(scope, b"x-request-id")
        request_id = given if given and _SANE_ID.fullmatch(given) else draw_id()
        status = 0
        begun = time.monotonic()

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
            await send(message)

        token = _request_id.set(request_id)
        about_request(scope)
        try:
            await self._app(scope, receive, send_with_id)
        finally:
            _request_id.reset(token)
            if not self._over:
                asyncio.get_running_loop().call_later(_LINGER_S, self._tell)
            self._over.append(
                {
                    "request_id": request_id,
                    "method": scope["method"],
                    "path": scope["path"],
                    "status": status or None,
                    "ms": round(1000 * (time.monotonic() - begun), 3),
                    **scope[_SCOPE],
                }
            )

    def _tell(self) -> None:
        over, self._over = self._over, []
        for fields in over:
            # Those who look every few seconds whether all is well would fill the log.
            level = logging.DEBUG if fields["path"] in ("/health", "/ready", "/metrics") else logging.INFO
            _log.log(level, "request", extra={"fields": fields})
