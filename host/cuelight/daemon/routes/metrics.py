"""GET /metrics."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from cuelight.daemon.service import Service

__all__ = ["metrics_routes"]


def metrics_routes(service: Service) -> APIRouter:
    """Routes of a service."""
    router = APIRouter()

    @router.get("/metrics", response_class=Response)
    async def metrics(request: Request) -> Response:
        """Everything that is counted, for Prometheus."""
        body, content_type = await service.core.page(request.headers.get("accept", ""))
        return Response(body, headers={"content-type": content_type})

    return router
