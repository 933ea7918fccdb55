"""Bodies of questions: how large they may be, and how long they may take."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cuelight.daemon.connection import connection_of
from cuelight.daemon.failures import error_body
from cuelight.daemon.headers import header
from cuelight.daemon.settings import Limits

__all__ = ["BodyLimit"]


class BodyLimit:
    """ASGI middleware that passes a question on once its body is there, in one message.

    It takes no more of a body than settings allow, and waits no longer for it.

    Parameters
    ----------
    app : ASGI application
        What the body is for.
    limits : callable
        Gives the limits of the moment.
    """

    def __init__(self, app: ASGIApp, limits: Callable[[], Limits]) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a question on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limits = self._limits()
        # As most are: with the head.
        here = connection_of(scope).asked
        if not here and int(header(scope, b"content-length") or 0) > limits.body_bytes:
            # Nobody reads the rest.
            await _refuse_large(limits, send)
            return
        taking = _take_body(receive, limits.body_bytes)
        try:
            body = await (taking if here else asyncio.wait_for(taking, limits.receive_s))
        except TimeoutError:
            await _refuse(408, f"The body did not come within {limits.receive_s:g} s; send it at once.", send)
            return
        if body is None:
            return
        if len(body) > limits.body_bytes:
            await _refuse_large(limits, send)
            return
        messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def taken() -> Message:
            return messages.pop() if messages else await receive()

        await self._app(scope, taken, send)


async def _take_body(receive: Receive, enough: int) -> bytearray | None:
    """All of a body, or its beginning if that has more than `enough` bytes; None if the client is gone."""
    body = bytearray()
    while (message := await receive())["type"] != "http.disconnect":
        body.extend(message["body"])
        if not message["more_body"] or len(body) > enough:
            return body
    return None


async def _refuse_large(limits: Limits, send: Send) -> None:
    await _refuse(413, f"The body has more than {limits.body_bytes} bytes; shorten the question.", send)


async def _refuse(status: int, message: str, send: Send) -> None:
    body = error_body(message, "invalid_request_error")
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
