"""A client's connection: how long it may take to ask and to read, and what it may send before it has asked."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any, cast

from starlette.types import Scope
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from cuelight.daemon.crowd import Crowd
from cuelight.daemon.failures import error_body
from cuelight.daemon.settings import Limits

__all__ = ["Connection", "connection_of"]

_HEAD_BYTES = 64 << 10
_SCOPE = "cuelight.connection"


class Connection(HttpToolsProtocol):
    """uvicorn's, with an end to everything that it would wait for without one.

    Parameters
    ----------
    limits : callable
        Gives the limits of the moment.
    crowd : Crowd
        Counts it among all.
    **settings
        uvicorn's own.
    """

    def __init__(self, limits: Callable[[], Limits], crowd: Crowd, **settings: Any) -> None:
        super().__init__(**settings)
        self._limits = limits
        self._crowd = crowd
        self._head_bytes = 0
        self._asking: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._running: RequestResponseCycle | None = None
        self._leave: Callable[[], object] | None = None

    @property
    def asked(self) -> bool:
        """Whether the question that is being answered is here to its end, or will never be."""
        return self._running is None or not self._running.more_body

    @contextlib.contextmanager
    def kept(self, leave: Callable[[], object]) -> Iterator[None]:
        """Call `leave` once the client has closed the connection, and at the end of this in any case."""
        self._leave = leave
        # A large body has stopped that.
        self.flow.resume_reading()
        try:
            if self._running is None:
                leave()
            yield
        finally:
            self._leave = None
            leave()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a client, unless there are too many."""
        super().connection_made(transport)
        most = self._limits().connections
        if self._crowd.join() > most:
            self._refuse(503, f"There are {most} connections, as many as may be; close some, or come again later.")
        else:
            self._await_question()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let whoever works for the client know."""
        self._crowd.leave()
        for timer in (self._asking, self._stalled):
            if timer:
                timer.cancel()
        # uvicorn tells the latest question only, which may wait behind this one.
        if self._running and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
        super().connection_lost(exc)
        # Their scopes have this connection: a ring that only the collector would find.
        self._running = self.cycle = None  # type: ignore[assignment]
        if self._leave:
            self._leave()

    def data_received(self, data: bytes) -> None:
        """Take what the client sends."""
        if self.transport.is_closing():
            return
        self._head_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._head_bytes > _HEAD_BYTES and self._asking:
            self._refuse(431, f"The headers have more than {_HEAD_BYTES} bytes; send fewer or shorter ones.")
        elif self._is_idle() and not self.timeout_keep_alive_task:
            self._await_question()

    def on_headers_complete(self) -> None:
        """Begin with a question."""
        self._head_bytes = 0
        if self._asking:
            self._asking.cancel()
            self._asking = None
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of its body."""
        self._head_bytes = 0
        super().on_body(body)

    def pause_writing(self) -> None:
        """Wait for the client to read, but not for ever."""
        super().pause_writing()
        self._stalled = self.loop.call_later(self._limits().stall_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on: it has read."""
        super().resume_writing()
        if self._stalled:
            self._stalled.cancel()
            self._stalled = None

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP."""
        self._refuse(400, "This is no HTTP request; correct the client.")

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        cast(Scope, cycle.scope)[_SCOPE] = self
        super()._start_asgi_task(cycle, app)

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _await_question(self) -> None:
        if self._asking is None:
            self._asking = self.loop.call_later(self._limits().receive_s, self._give_up)

    def _give_up(self) -> None:
        if self._head_bytes:
            self._refuse(408, f"The headers did not come within {self._limits().receive_s:g} s; send them at once.")
        else:
            self.transport.close()

    def _refuse(self, status: int, message: str) -> None:
        body = error_body(message, "invalid_request_error" if status < 500 else "service_unavailable")
        self.transport.write(
            STATUS_LINE[status]
            + b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
            + body
        )
        self.transport.close()


def connection_of(scope: Scope) -> Connection:
    """Whose question has this scope."""
    return cast(Connection, scope[_SCOPE])
