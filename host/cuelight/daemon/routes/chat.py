"""POST /v1/chat/completions."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence

from fastapi import APIRouter, Request
from starlette.responses import Response

from cuelight.daemon.answering import Answer, AnswerResponse
from cuelight.daemon.generation import Generation, Piece
from cuelight.daemon.logprobs import token_logprobs
from cuelight.daemon.routes.asking import choose_order, headers_of
from cuelight.daemon.schema.chat import ChatAnswer, ChatChoice, ChatChunk, ChatLogprobs, ChatQuestion, Delta
from cuelight.daemon.schema.usage import Usage, count_usage
from cuelight.daemon.service import Service
from cuelight.request import Token

__all__ = ["chat_routes"]


def chat_routes(service: Service) -> APIRouter:
    """Routes of a service."""
    router = APIRouter()

    @router.post("/v1/chat/completions", response_model=None, responses={200: {"model": ChatAnswer}})
    async def chat(question: ChatQuestion, request: Request) -> Response:
        """Answer a chat's messages, whole or, with `stream`, as server-sent events."""
        wanted = bool(question.logprobs)
        order = await choose_order(
            service,
            request.headers,
            question,
            lambda: service.encode([{"role": message.role, "content": message.text} for message in question.messages]),
            most_new_tokens=question.most_new_tokens,
            top_logprobs=question.top_logprobs or 0 if wanted else 0,
        )
        answer = _ChatAnswer(service, question, service.generation(order))
        return AnswerResponse(answer, stream=bool(question.stream), headers=headers_of(order))

    return router


class _ChatAnswer(Answer):
    def __init__(self, service: Service, question: ChatQuestion, generation: Generation) -> None:
        self.generation = generation
        self._service = service
        self._logprobs = bool(question.logprobs)
        self._usage = question.stream_options is not None and question.stream_options.include_usage
        self._id = f"chatcmpl-{uuid.uuid4().hex}"
        self._created = int(time.time())

    def whole(self, pieces: Sequence[Piece]) -> ChatAnswer:
        choices: list[ChatChoice] = []
        for index in range(self.generation.order.n):
            own = [piece for piece in pieces if piece.index == index]
            choices.append(
                {
                    "index": index,
                    "message": {"role": "assistant", "content": "".join([piece.text for piece in own])},
                    "logprobs": self._log([token for piece in own for token in piece.tokens]),
                    "finish_reason": own[-1].finish or "stop",
                }
            )
        answer: ChatAnswer = {
            "id": self._id,
            "object": "chat.completion",
            "created": self._created,
            "model": self._service.model,
            "service_tier": self.generation.order.tier,
            "choices": choices,
            "usage": self._count(),
        }
        if self.degraded:
            answer["degraded"] = True
        return answer

    def opening(self) -> Sequence[ChatChunk]:
        return [self._chunk(index, {"role": "assistant", "content": ""}) for index in range(self.generation.order.n)]

    def chunk(self, piece: Piece) -> ChatChunk:
        return self._chunk(piece.index, {"content": piece.text} if piece.text else {}, piece.tokens, piece.finish)

    def closing(self) -> Sequence[ChatChunk]:
        if not self._usage:
            return []
        last = self._chunk(0, {})
        last["choices"] = []
        last["usage"] = self._count()
        return [last]

    def _chunk(self, index: int, delta: Delta, tokens: Sequence[Token] = (), finish: str | None = None) -> ChatChunk:
        chunk: ChatChunk = {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._service.model,
            "service_tier": self.generation.order.tier,
            "choices": [{"index": index, "delta": delta, "logprobs": self._log(tokens), "finish_reason": finish}],
        }
        if self._usage:
            chunk["usage"] = None
        if self.degraded:
            chunk["degraded"] = True
        return chunk

    def _log(self, tokens: Sequence[Token]) -> ChatLogprobs | None:
        return {"content": token_logprobs(self._service.llm.tokenizer, tokens)} if self._logprobs else None

    def _count(self) -> Usage:
        generation = self.generation
        return count_usage(generation.prompt_tokens, generation.new_tokens, generation.cached_tokens)
