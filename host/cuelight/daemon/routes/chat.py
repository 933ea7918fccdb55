"""POST /v1/chat/completions."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter, Request
from starlette.responses import Response

from cuelight.daemon.answering import Answer, AnswerResponse
from cuelight.daemon.calls import CallParser, CallPart, Said, whole_calls
from cuelight.daemon.form import Form
from cuelight.daemon.generation import Generation, Piece
from cuelight.daemon.logprobs import chat_logprobs
from cuelight.daemon.routes.asking import choose_order, headers_of
from cuelight.daemon.routes.json_route import JsonRoute, answers
from cuelight.daemon.schema.chat import (
    AnswerMessage,
    ChatAnswer,
    ChatChoice,
    ChatChunk,
    ChatLogprobs,
    ChatQuestion,
    Delta,
)
from cuelight.daemon.schema.tools import CallDelta, FunctionDelta
from cuelight.daemon.service import Service
from cuelight.daemon.suggestions import Suggester
from cuelight.daemon.text import Placed

__all__ = ["chat_routes"]


def chat_routes(service: Service) -> APIRouter:
    """Routes of a service."""
    router = APIRouter(route_class=JsonRoute)

    @router.post("/v1/chat/completions", response_model=None, responses=answers(ChatAnswer))
    async def chat(question: ChatQuestion, request: Request) -> Response:
        """Answer a chat's messages, whole or, with `stream`, as server-sent events."""
        wanted = bool(question.logprobs)
        form = Form(service.language, question)
        order = await choose_order(
            service,
            request.scope,
            question,
            lambda: service.encode_chat(
                [message.plain for message in question.messages], form.tools.offered if form.tools else None
            ),
            most_new_tokens=question.most_new_tokens,
            top_logprobs=question.top_logprobs or 0 if wanted else 0,
        )
        if question.tools or question.response_format:
            order = await service.aside(lambda: form.demand(order))
        answer = _ChatAnswer(service, question, service.generation(order), form)
        return AnswerResponse(answer, stream=bool(question.stream), headers=headers_of(order))

    return router


class _ChatAnswer(Answer):
    def __init__(self, service: Service, question: ChatQuestion, generation: Generation, form: Form) -> None:
        super().__init__("chatcmpl", question, generation)
        self._form = form
        self._parsers: dict[int, CallParser | None] = {}
        self._service = service
        self._logprobs = bool(question.logprobs)
        tier = service.settings.tiers[generation.order.tier]
        count = min(question.suggestions or 0, tier.suggestions)
        self._suggester = (
            Suggester(service, generation.order, [message.plain for message in question.messages], count)
            if count
            else None
        )
        self._suggestions: list[str] = []

    async def conclude(self, text: str) -> None:
        if self._suggester:
            self._suggestions = await self._suggester.suggest(text)

    def leave(self) -> None:
        super().leave()
        if self._suggester:
            self._suggester.leave()

    def whole(self, answers: Sequence[Piece]) -> ChatAnswer:
        answer: ChatAnswer = {
            "id": self._id,
            "object": "chat.completion",
            "created": self._created,
            "model": self._service.core.facts.model,
            "service_tier": self.generation.order.tier,
            "choices": [self._choice(answer) for answer in answers],
            "usage": self._count(),
        }
        if self._suggester:
            answer["suggestions"] = self._suggestions
        if self.degraded:
            answer["degraded"] = True
        return answer

    def opening(self) -> Sequence[ChatChunk]:
        return [
            self._chunk(index, {"role": "assistant", "content": ""}) for index in range(self.generation.order.answers)
        ]

    def chunk(self, piece: Piece) -> ChatChunk:
        said, finish = self._read(piece)
        delta: Delta = {"content": said.text} if said.text else {}
        if said.calls:
            delta["tool_calls"] = _deltas(said.calls)
        return self._chunk(piece.index, delta, piece.tokens, finish)

    def closing(self) -> Sequence[ChatChunk]:
        events: list[ChatChunk] = []
        if self._suggester:
            events.append({**self._chunk(0, {}), "choices": [], "suggestions": self._suggestions})
        if self.with_usage:
            events.append({**self._chunk(0, {}), "choices": [], "usage": self._count()})
        return events

    def _choice(self, answer: Piece) -> ChatChoice:
        said, finish = self._read(answer)
        message: AnswerMessage = {"role": "assistant", "content": said.text}
        if said.calls:
            message["content"] = said.text or None
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in whole_calls(said.calls)
            ]
        return {
            "index": answer.index,
            "message": message,
            "logprobs": self._log(answer.tokens),
            "finish_reason": finish or "stop",
        }

    def _read(self, piece: Piece) -> tuple[Said, str | None]:
        """Text and calls of what is new of an answer, and how it ended."""
        if piece.index not in self._parsers:
            self._parsers[piece.index] = self._form.parser()
        parser = self._parsers[piece.index]
        if parser is None:
            return Said(piece.text, ()), piece.finish
        said = parser.add(piece.text)
        if piece.finish is None:
            return said, None
        rest = parser.end()
        finish = "tool_calls" if parser.calls and piece.finish == "stop" else piece.finish
        return Said(said.text + rest.text, said.calls + rest.calls), finish

    def _chunk(self, index: int, delta: Delta, tokens: Sequence[Placed] = (), finish: str | None = None) -> ChatChunk:
        chunk: ChatChunk = {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._service.core.facts.model,
            "service_tier": self.generation.order.tier,
            "choices": [{"index": index, "delta": delta, "logprobs": self._log(tokens), "finish_reason": finish}],
        }
        if self.with_usage:
            chunk["usage"] = None
        if self.degraded:
            chunk["degraded"] = True
        return chunk

    def _log(self, tokens: Sequence[Placed]) -> ChatLogprobs | None:
        return {"content": chat_logprobs(self._service.language.tokenizer.spelling, tokens)} if self._logprobs else None


def _deltas(parts: Sequence[CallPart]) -> list[CallDelta]:
    """One for each call that has something new."""
    deltas: dict[int, CallDelta] = {}
    for part in parts:
        if part.name is not None:
            head: FunctionDelta = {"name": part.name, "arguments": part.arguments}
            deltas[part.call] = {"index": part.call, "id": part.id or "", "type": "function", "function": head}
        elif part.call in deltas:
            deltas[part.call]["function"]["arguments"] += part.arguments
        else:
            deltas[part.call] = {"index": part.call, "function": {"arguments": part.arguments}}
    return list(deltas.values())
