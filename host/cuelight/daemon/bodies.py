"""Bodies of questions: how large they may be, and how long they may take."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cuelight.daemon.failures import error_body
from cuelight.daemon.settings import Limits

__all__ = ["BodyLimit"]

_CLOSE = {"Connection": "close"}


class BodyLimit:
    """ASGI middleware that takes no more of a body than settings allow, and waits no longer for it.

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
        deadline = asyncio.get_running_loop().time() + limits.receive_s
        taken = 0
        whole = False

        async def limited() -> Message:
            nonlocal taken, whole
            if whole:
                # Nothing follows but the client's leaving, for which there is no hurry.
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(
                    408, f"The body did not come within {limits.receive_s:g} s; send it at once.", _CLOSE
                ) from None
            taken += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if taken > limits.body_bytes:
                raise _too_large(limits)
            return message

        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if int(declared) > limits.body_bytes:
            # Nobody reads the rest.
            await _refuse(_too_large(limits), send)
            return
        await self._app(scope, limited, send)


def _too_large(limits: Limits) -> HTTPException:
    return HTTPException(413, f"The body has more than {limits.body_bytes} bytes; shorten the question.", _CLOSE)


async def _refuse(error: HTTPException, send: Send) -> None:
    body = error_body(error.detail, "invalid_request_error")
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": error.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": body})
