"""A lean HTTP client for benches: it shares the processors with what it measures."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, cast

import httptools

__all__ = ["Connection", "Cut", "Reply"]


class Cut(Exception):
    """The connection has ended in the middle of an answer."""


@dataclass
class Reply:
    """An answer as it came.

    Parameters
    ----------
    asked : float
        When the question was sent, `time.perf_counter`.
    """

    asked: float
    status: int = 0
    parts: list[bytes] = field(default_factory=list)
    """Of the body."""
    times: list[float] = field(default_factory=list)
    """When each came."""
    ended: float = 0.0

    @property
    def body(self) -> Any:
        """Of an answer in one piece, as JSON."""
        return json.loads(b"".join(self.parts))

    @property
    def events(self) -> list[Any]:
        """Of a streamed answer, without its last line.

        Raises
        ------
        ValueError
            It is not one, or not to its end.
        """
        *events, done, rest = b"".join(self.parts).split(b"\n\n")
        if self.status != 200 or done != b"data: [DONE]" or rest:
            raise ValueError(f"This is no whole stream (status {self.status}): {b''.join(self.parts)[-200:]!r}")
        return [json.loads(event.removeprefix(b"data: ")) for event in events]

    @property
    def first_text_s(self) -> float:
        """Time to the first event with text, in seconds."""
        for at, part in zip(self.times, self.parts, strict=True):
            if any(text_of(json.loads(event[6:])) for event in part.split(b"\n\n") if event.startswith(b"data: {")):
                return at - self.asked
        raise ValueError("The answer has no text.")


def text_of(event: Mapping[str, Any]) -> str:
    """What is new with an event of a streamed chat."""
    return "".join(choice["delta"].get("content", "") for choice in event["choices"])


class Connection(asyncio.Protocol):
    """Asks one question after the other; made by `open`."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport
        self._parser: httptools.HttpResponseParser
        self._reply: Reply
        self._over: asyncio.Future[None] | None = None
        self._on_part: Callable[[Reply], object] | None = None

    @classmethod
    async def open(cls, host: str, port: int) -> Self:
        """Connect."""
        _, connection = await asyncio.get_running_loop().create_connection(cls, host, port)
        return connection

    async def ask(
        self,
        question: Mapping[str, Any] | bytes,
        path: str = "/v1/chat/completions",
        on_part: Callable[[Reply], object] | None = None,
        headers: Sequence[str] = (),
    ) -> Reply:
        """Ask, and wait for all of the answer.

        Parameters
        ----------
        question : mapping or bytes
            The body, or what becomes its JSON.
        path : str
            Where.
        on_part : callable, optional
            Called with the reply at each part that comes.
        headers : sequence of str
            More header lines.

        Raises
        ------
        Cut
            The connection ended first.
        """
        body = question if isinstance(question, bytes) else json.dumps(question).encode()
        head = [f"POST {path} HTTP/1.1", "Host: bench", "Content-Type: application/json", *headers]
        self._parser = httptools.HttpResponseParser(self)
        self._over = asyncio.get_running_loop().create_future()
        self._on_part = on_part
        self._reply = Reply(time.perf_counter())
        self._transport.write("\r\n".join([*head, f"Content-Length: {len(body)}", "", ""]).encode() + body)
        await self._over
        return self._reply

    def close(self) -> None:
        """Hang up."""
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Be connected."""
        # uvloop's are no subclass.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        self._parser.feed_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Be disconnected."""
        if self._over and not self._over.done():
            self._over.set_exception(Cut("The connection has ended before the answer did."))

    def on_headers_complete(self) -> None:
        """For the parser."""
        self._reply.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        """For the parser."""
        self._reply.parts.append(body)
        self._reply.times.append(time.perf_counter())
        if self._on_part:
            self._on_part(self._reply)

    def on_message_complete(self) -> None:
        """For the parser."""
        self._reply.ended = time.perf_counter()
        if self._over and not self._over.done():
            self._over.set_result(None)
