"""How a generation becomes the answer to an HTTP request, whole or as server-sent events, while its client is there."""

from __future__ import annotations

import abc
import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence

from pydantic_core import to_json
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from cuelight.daemon.connection import connection_of
from cuelight.daemon.failures import Late, describe, error_body, refuse
from cuelight.daemon.generation import Generation, Gone, Piece
from cuelight.daemon.logs import about_request, draw_id
from cuelight.daemon.schema.sampling import Sampling
from cuelight.daemon.schema.usage import Usage, count_usage
from cuelight.errors import CuelightError

__all__ = ["Answer", "AnswerResponse"]

_EVENTS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]
_JSON = [(b"content-type", b"application/json")]
_DEGRADED = (b"x-cuelight-degraded", b"cached answer")


class Answer(abc.ABC):
    """The answers to a question, in the form of one of the routes.

    Parameters
    ----------
    prefix : str
        What its id begins with.
    question : Sampling
        The question.
    generation : Generation
        What makes them.
    """

    degraded = False
    """It is the tier's cached one."""

    def __init__(self, prefix: str, question: Sampling, generation: Generation) -> None:
        self.generation = generation
        self.with_usage = question.stream_options is not None and question.stream_options.include_usage
        self._id = f"{prefix}-{draw_id()}"
        self._created = int(time.time())

    @abc.abstractmethod
    async def conclude(self, text: str) -> None:
        """Do what there is to do once the first answer is whole; `text` is its text."""

    def leave(self) -> None:
        """Stop whatever makes it; the client is gone, or all is over."""
        self.generation.cancel()

    @abc.abstractmethod
    def whole(self, answers: Sequence[Piece]) -> Mapping[str, object]:
        """All answers, each in one piece."""

    @abc.abstractmethod
    def opening(self) -> Sequence[Mapping[str, object]]:
        """Events to begin with."""

    @abc.abstractmethod
    def chunk(self, piece: Piece) -> Mapping[str, object]:
        """The event for a piece."""

    @abc.abstractmethod
    def closing(self) -> Sequence[Mapping[str, object]]:
        """Events to end with."""

    def _count(self) -> Usage:
        generation = self.generation
        return count_usage(generation.prompt_tokens, generation.new_tokens, generation.cached_tokens)


class AnswerResponse(Response):
    """Runs the generation and sends the answer; ends it when the client is gone.

    Parameters
    ----------
    answer : Answer
        What to send.
    stream : bool
        Send it while it grows. Pieces that come while the client is not ready for more go out together.
    headers : mapping
        More headers.
    """

    def __init__(self, answer: Answer, *, stream: bool, headers: Mapping[str, str]) -> None:
        self._answer = answer
        self._stream = stream
        self._more = [(name.encode(), value.encode()) for name, value in headers.items()]
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        generation = self._answer.generation
        record = generation.record
        with _log_outcome(scope, generation), connection_of(scope).kept(self._answer.leave):
            try:
                await generation.start()
                if self._stream:
                    await self._send_events(generation, send)
                else:
                    pieces = []
                    while fresh := await generation.next():
                        pieces += fresh
                    answers = _join(pieces, generation.order.answers)
                    await self._answer.conclude(answers[0].text)
                    await self._send_whole(answers, send)
                record.end(generation.finish or "error", generation.cached_tokens)
            except Gone:
                pass
            except Late as late:
                record.degrade()
                self._answer.degraded = True
                self._more.append(_DEGRADED)
                cached = [Piece(index, late.answer, [], "stop") for index in range(generation.order.answers)]
                if self._stream:
                    await self._begin(_EVENTS, send)
                    await self._send(send, [*self._answer.opening(), *map(self._answer.chunk, cached)])
                    await self._end(send)
                else:
                    await self._send_whole(cached, send)
            except CuelightError as error:
                record.fail(error)
                await refuse(error)(scope, receive, send)

    async def _send_whole(self, answers: Sequence[Piece], send: Send) -> None:
        body = to_json(self._answer.whole(answers))
        await self._begin([*_JSON, (b"content-length", str(len(body)).encode())], send)
        await send({"type": "http.response.body", "body": body})

    async def _send_events(self, generation: Generation, send: Send) -> None:
        answer = self._answer
        await self._begin(_EVENTS, send)
        await self._send(send, answer.opening())
        first: list[str] = []
        try:
            while pieces := await generation.next():
                first += [piece.text for piece in pieces if not piece.index]
                await self._send(send, [answer.chunk(piece) for piece in pieces])
        except CuelightError as error:
            # The status is sent already.
            generation.record.fail(error)
            _, type, code = describe(error)
            body = b"data: %b\n\ndata: [DONE]\n\n" % error_body(str(error), type, code)
            await send({"type": "http.response.body", "body": body})
            return
        await answer.conclude("".join(first))
        await self._end(send)

    async def _end(self, send: Send) -> None:
        events = b"".join([b"data: %b\n\n" % to_json(event) for event in self._answer.closing()])
        await send({"type": "http.response.body", "body": events + b"data: [DONE]\n\n"})

    async def _begin(self, headers: Sequence[tuple[bytes, bytes]], send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [*headers, *self._more]})

    async def _send(self, send: Send, events: Sequence[Mapping[str, object]]) -> None:
        body = b"".join([b"data: %b\n\n" % to_json(event) for event in events])
        await send({"type": "http.response.body", "body": body, "more_body": True})


def _join(pieces: Sequence[Piece], answers: int) -> list[Piece]:
    """Pieces of each answer in one."""
    joined = []
    for index in range(answers):
        own = [piece for piece in pieces if piece.index == index]
        tokens = [token for piece in own for token in piece.tokens]
        joined.append(Piece(index, "".join([piece.text for piece in own]), tokens, own[-1].finish))
    return joined


@contextlib.contextmanager
def _log_outcome(scope: Scope, generation: Generation) -> Iterator[None]:
    """Have the line about the request tell what it asked for and how it ended."""
    order, record = generation.order, generation.record
    about_request(scope, tier=order.tier, owner=order.owner, prompt_tokens=generation.prompt_tokens)
    try:
        yield
    finally:
        # If nothing else has ended it, its client is gone.
        record.end("abort", generation.cached_tokens)
        about_request(scope, new_tokens=record.new_tokens, outcome=record.outcome)
        if generation.logs_text:
            about_request(scope, **generation.texts())
