"""POST /tokenize and /detokenize."""

from __future__ import annotations

from fastapi import APIRouter, Request

from cuelight.daemon.schema.tokens import DetokenizeQuestion, Text, TokenizeQuestion, Tokens
from cuelight.daemon.service import Service

__all__ = ["token_routes"]


def token_routes(service: Service) -> APIRouter:
    """Routes of a service."""
    router = APIRouter()

    @router.post("/tokenize")
    async def tokenize(question: TokenizeQuestion, request: Request) -> Tokens:
        """Token ids of a text, or of the prompt that a chat's messages make."""
        service.access.caller(request.headers.get("authorization"))
        if question.messages is None:
            [tokens] = await service.encode_all([question.prompt or ""])
        else:
            [tokens] = await service.encode_chat([message.plain for message in question.messages])
        return {"count": len(tokens), "max_model_len": service.core.facts.context, "tokens": tokens}

    @router.post("/detokenize")
    async def detokenize(question: DetokenizeQuestion, request: Request) -> Text:
        """Text of token ids, special ones included."""
        service.access.caller(request.headers.get("authorization"))
        [tokens] = await service.encode_all([question.tokens])
        return {"prompt": service.language.tokenizer.decode(tokens, special=True)}

    return router
