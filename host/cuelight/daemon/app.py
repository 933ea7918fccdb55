"""The daemon's HTTP side: its routes, and how errors are told."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from importlib.metadata import version

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp

from cuelight.daemon.bodies import BodyLimit
from cuelight.daemon.direct import Direct
from cuelight.daemon.failures import error_body, refuse
from cuelight.daemon.logs import LogRequests
from cuelight.daemon.routes.chat import chat_routes
from cuelight.daemon.routes.completions import completion_routes
from cuelight.daemon.routes.health import health_routes
from cuelight.daemon.routes.json_route import JsonRoute
from cuelight.daemon.routes.metrics import metrics_routes
from cuelight.daemon.routes.models import model_routes
from cuelight.daemon.routes.tokens import token_routes
from cuelight.daemon.service import Service
from cuelight.errors import CuelightError

__all__ = ["build_app"]


def build_app(service: Service) -> ASGIApp:
    """Make the application; it opens and closes the service."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await service.begin()
        try:
            yield
        finally:
            await service.close()

    routes = [
        route
        for group in (chat_routes, completion_routes, model_routes, token_routes, health_routes, metrics_routes)
        for route in group(service).routes
    ]
    app = FastAPI(
        title="Cuelight",
        version=version("cuelight"),
        summary="Text from a language model, scheduled stage by stage by hardware",
        lifespan=lifespan,
        # Not `include_router`, which would look for the route of each request twice.
        routes=routes,
    )
    for kind, answer in _REFUSALS.items():
        app.add_exception_handler(kind, answer)
    questions = {route.path: route.get_route_handler() for route in routes if isinstance(route, JsonRoute)}
    direct = Direct(app, questions, _refuse_any)
    return LogRequests(BodyLimit(direct, limits=lambda: service.settings.limits))


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, CuelightError)
    return refuse(error)


async def _refuse_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"][1:])
    what = f"{first['msg'][:1].lower()}{first['msg'][1:]}"
    if first["type"] == "json_invalid":
        message = f"The body is no JSON ({first.get('ctx', {}).get('error', what)}); correct it."
        place = ""
    else:
        message = f"{place or 'The body'}: {what}; correct it."
    return Response(
        error_body(message, "invalid_request_error", param=place or None), 400, media_type="application/json"
    )


async def _refuse_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = {
        404: f"There is nothing at {request.url.path}; see /docs for what there is.",
        405: f"{request.method} is not for {request.url.path}; see /docs for how it is asked.",
    }.get(error.status_code, str(error.detail))
    return Response(error_body(message, "invalid_request_error"), error.status_code, error.headers, "application/json")


async def _refuse_any(request: Request, error: Exception) -> Response:
    answer = next(answer for kind, answer in _REFUSALS.items() if isinstance(error, kind))
    return await answer(request, error)


_REFUSALS = {CuelightError: _refuse, RequestValidationError: _refuse_invalid, HTTPException: _refuse_http}
