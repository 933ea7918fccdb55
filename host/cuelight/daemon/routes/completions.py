"""POST /v1/completions."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter, Request
from starlette.responses import Response

from cuelight.daemon.answering import Answer, AnswerResponse
from cuelight.daemon.generation import Generation, Piece
from cuelight.daemon.logprobs import text_logprobs
from cuelight.daemon.routes.asking import choose_order, headers_of
from cuelight.daemon.routes.json_route import JsonRoute, answers
from cuelight.daemon.schema.completion import TextAnswer, TextChoice, TextQuestion
from cuelight.daemon.service import Service

__all__ = ["completion_routes"]


def completion_routes(service: Service) -> APIRouter:
    """Routes of a service."""
    router = APIRouter(route_class=JsonRoute)

    @router.post("/v1/completions", response_model=None, responses=answers(TextAnswer))
    async def complete(question: TextQuestion, request: Request) -> Response:
        """Go on from one or several texts, whole or, with `stream`, as server-sent events."""
        order = await choose_order(
            service,
            request.scope,
            question,
            lambda: service.encode_all(question.prompts),
            most_new_tokens=question.max_tokens,
            top_logprobs=question.logprobs or 0,
        )
        answer = _TextAnswer(service, question, service.generation(order))
        return AnswerResponse(answer, stream=bool(question.stream), headers=headers_of(order))

    return router


class _TextAnswer(Answer):
    def __init__(self, service: Service, question: TextQuestion, generation: Generation) -> None:
        super().__init__("cmpl", question, generation)
        self._service = service
        self._logprobs = question.logprobs is not None

    async def conclude(self, text: str) -> None:
        # Texts have nothing like suggestions.
        pass

    def whole(self, answers: Sequence[Piece]) -> TextAnswer:
        return {**self._answer([self._choice(answer) for answer in answers]), "usage": self._count()}

    def opening(self) -> Sequence[TextAnswer]:
        return []

    def chunk(self, piece: Piece) -> TextAnswer:
        answer = self._answer([self._choice(piece)])
        if self.with_usage:
            answer["usage"] = None
        return answer

    def closing(self) -> Sequence[TextAnswer]:
        return [{**self._answer([]), "usage": self._count()}] if self.with_usage else []

    def _answer(self, choices: list[TextChoice]) -> TextAnswer:
        answer: TextAnswer = {
            "id": self._id,
            "object": "text_completion",
            "created": self._created,
            "model": self._service.core.facts.model,
            "service_tier": self.generation.order.tier,
            "choices": choices,
        }
        if self.degraded:
            answer["degraded"] = True
        return answer

    def _choice(self, piece: Piece) -> TextChoice:
        return {
            "index": piece.index,
            "text": piece.text,
            "logprobs": text_logprobs(self._service.language.tokenizer.spelling, piece.tokens)
            if self._logprobs
            else None,
            "finish_reason": piece.finish,
        }
