"""GET /health and /ready."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic_core import to_json
from starlette.responses import Response

from cuelight.daemon.service import Service

__all__ = ["health_routes"]


def health_routes(service: Service) -> APIRouter:
    """Routes of a service."""
    router = APIRouter()

    @router.get("/health", responses={503: {"description": "The device or a lane is dead."}})
    async def health() -> Response:
        """Whether the device answers and all lanes show life; as it was a second ago at most.

        What is dead is replaced by itself within seconds: ask several times before you restart the daemon.
        """
        now = await service.core.health()
        return _tell("ok" if now.ok else "unhealthy", now.trouble)

    @router.get("/ready", responses={503: {"description": "It is ending, or not well."}})
    async def ready() -> Response:
        """Whether questions should be sent here."""
        if service.stopping:
            return _tell("stopping", "The daemon is ending; ask another one.")
        now = await service.core.health()
        return _tell("ok" if now.ok else "unhealthy", now.trouble)

    return router


def _tell(status: str, message: str) -> Response:
    told = {"status": status, "message": message} if message else {"status": status}
    return Response(to_json(told), 200 if status == "ok" else 503, media_type="application/json")
