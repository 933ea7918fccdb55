"""Runs the daemon until it is asked to end."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from typing import cast

import uvicorn
import uvloop

from cuelight.daemon.app import build_app
from cuelight.daemon.connection import Connection
from cuelight.daemon.service import Service
from cuelight.daemon.settings import Server, SettingsError

__all__ = ["Daemon", "listen"]

_BACKLOG = 1024
_SEND_BYTES = 128 << 10
_LAST_WORDS_S = 5
_SWITCH_S = 0.0005
# Of the collector: the oldest generation, which takes longest, all but waits for `_tidy`.
_GENERATIONS = (500, 2, 5000)
_TIDY_S = 10
_log = logging.getLogger(__name__)


def listen(server: Server) -> socket.socket:
    """Listen where the settings say.

    Raises
    ------
    SettingsError
        It can't be.
    """
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    try:
        listener = socket.create_server((server.host, server.port), family=family, backlog=_BACKLOG)
        # Connections inherit it: what a client leaves unread must not grow to megabytes before anybody notices.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BYTES)
        return listener
    except OSError as error:
        raise SettingsError(
            f"The daemon can't listen at {server.host} port {server.port} ({os.strerror(error.errno or 0)}); "
            "choose another."
        ) from error


class Daemon:
    """A service at a socket.

    Parameters
    ----------
    service : Service
        What to serve.
    listener : socket.socket
        Where; closed by `run`.

    Attributes
    ----------
    url : str
        Where.
    """

    def __init__(self, service: Service, listener: socket.socket) -> None:
        self._service = service
        self._listener = listener
        host, port = listener.getsockname()[:2]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        service.llm.device.url = self.url
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server = _Server(
            uvicorn.Config(
                build_app(service),
                http=cast(type[asyncio.Protocol], functools.partial(Connection, lambda: service.settings.limits)),
                ws="none",
                lifespan="on",
                access_log=False,
                log_config=None,
                server_header=False,
                # Nothing here depends on where a client is, and anybody can claim it.
                proxy_headers=False,
                # The service ends by itself what is under way for too long; this is for what does not end then.
                callback_notify=self._tidy,
                timeout_notify=_TIDY_S,
                timeout_graceful_shutdown=int(service.settings.server.drain_s) + _LAST_WORDS_S,
            ),
            f"{service.model} at {self.url}",
        )

    def run(self) -> None:
        """Serve until SIGINT, SIGTERM or `stop`, then let what is under way end; a second signal ends it at once."""
        with self._listener, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._run())

    def stop(self) -> None:
        """Have `run` end; from any thread."""
        if self._loop is not None:
            # A loop that is closed has ended already.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stop)

    def reload(self, timeout_s: float) -> None:
        """Have settings read again, as SIGHUP does, and wait for that; from any other thread, while it runs.

        Raises
        ------
        TimeoutError
            It takes longer than `timeout_s` seconds.
        """
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(self._service.reload(), self._loop).result(timeout_s)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        if threading.current_thread() is threading.main_thread():
            self._loop.add_signal_handler(signal.SIGINT, self._stop)
            self._loop.add_signal_handler(signal.SIGTERM, self._stop)
            self._loop.add_signal_handler(signal.SIGHUP, self._reload)
        await self._server.serve([self._listener])

    async def _tidy(self) -> None:
        """Collect garbage while nobody waits for anything."""
        if not self._server.server_state.tasks:
            gc.collect()

    def _stop(self) -> None:
        if self._server.should_exit:
            self._server.force_exit = True
        self._server.should_exit = True
        self._service.drain()

    def _reload(self) -> None:
        self._reloading = asyncio.ensure_future(self._service.reload())


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, what: str) -> None:
        super().__init__(config)
        self._what = what
        # What it says of itself is said here better, or of no interest.
        logging.getLogger("uvicorn.error").setLevel(logging.WARNING)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # What is there stays; the collector need not look at it again, which would stop everything for a while.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*_GENERATIONS)
        # Who brings a VIP onto the device gives the interpreter away at each register access.
        sys.setswitchinterval(_SWITCH_S)
        _log.info("Serving %s.", self._what)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # The daemon's own; uvicorn would raise them again at the end, before the model is closed.
        yield
