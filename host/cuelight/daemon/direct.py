"""Takes questions straight to the routes that answer them, past what FastAPI does for each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from cuelight.errors import CuelightError

__all__ = ["Direct"]


class Direct:
    """ASGI application of some POST routes; all else is another one's, which describes these too.

    FastAPI's own way to a route leads through eight layers of middleware, which take longer than the routes themselves.

    Parameters
    ----------
    app : ASGIApp
        What answers all else.
    routes : mapping
        What makes a response of a request, by path.
    refuse : callable
        What makes one of an error: of this package's, of FastAPI's validation, or of HTTP.
    """

    def __init__(
        self,
        app: ASGIApp,
        routes: Mapping[str, Callable[[Request], Awaitable[Response]]],
        refuse: Callable[[Request, Exception], Awaitable[Response]],
    ) -> None:
        self._app = app
        self._routes = routes
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        route = self._routes.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if route is None:
            return await self._app(scope, receive, send)
        request = Request(scope, receive)
        try:
            response = await route(request)
        except (CuelightError, RequestValidationError, HTTPException) as error:
            response = await self._refuse(request, error)
        await response(scope, receive, send)
