"""GET /v1/models and /version."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import APIRouter, Request

from cuelight.daemon.failures import NotServed
from cuelight.daemon.schema.models import Model, ModelList, Version
from cuelight.daemon.service import Service

__all__ = ["model_routes"]


def model_routes(service: Service) -> APIRouter:
    """Routes of a service."""
    router = APIRouter()
    model: Model = {
        "id": service.core.facts.model,
        "object": "model",
        "created": service.core.facts.began,
        "owned_by": "cuelight",
        "max_model_len": service.core.facts.context,
    }
    told: Version = {"version": version("cuelight"), "rtl_hash": service.core.facts.rtl_hash}

    @router.get("/v1/models")
    async def models(request: Request) -> ModelList:
        """The models that are served."""
        service.access.caller(request.headers.get("authorization"))
        return {"object": "list", "data": [model]}

    @router.get("/v1/models/{name:path}")
    async def one(name: str, request: Request) -> Model:
        """One of them."""
        service.access.caller(request.headers.get("authorization"))
        if name not in service.models:
            raise NotServed(f"There is no model {name!r} here; ask for {service.core.facts.model}.")
        return model

    @router.get("/version")
    async def tell_version() -> Version:
        """What this daemon is."""
        return told

    return router
