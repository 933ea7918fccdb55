"""A front end: a service at a socket, until it is asked to end."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import logging
import socket
import sys
from collections.abc import Callable, Iterator
from typing import cast

import uvicorn

from cuelight.daemon.app import build_app
from cuelight.daemon.connection import Connection
from cuelight.daemon.crowd import Crowd
from cuelight.daemon.service import Service

__all__ = ["LAST_WORDS_S", "TIDY_S", "FrontEnd", "settle_down"]

LAST_WORDS_S = 5
"""How long connections may take to end after the time that answers have."""
TIDY_S = 10
"""How often garbage is collected, if nobody waits for anything."""
_SWITCH_S = 0.0005
# Of the collector: the oldest generation, which takes longest, all but waits for that.
_GENERATIONS = (500, 2, 5000)


class FrontEnd:
    """Serves HTTP at a socket.

    Parameters
    ----------
    service : Service
        What to serve.
    listener : socket.socket
        Where; closed at the end.
    crowd : Crowd
        Counts its connections.
    started : callable
        Called once it takes connections.
    """

    def __init__(self, service: Service, listener: socket.socket, crowd: Crowd, started: Callable[[], None]) -> None:
        self._service = service
        self._listener = listener
        self._server = _Server(
            uvicorn.Config(
                build_app(service),
                http=cast(
                    type[asyncio.Protocol], functools.partial(Connection, lambda: service.settings.limits, crowd)
                ),
                ws="none",
                lifespan="on",
                access_log=False,
                log_config=None,
                server_header=False,
                # Nothing here depends on where a client is, and anybody can claim it.
                proxy_headers=False,
                # The service ends by itself what is under way for too long; this is for what does not end then.
                callback_notify=self._tidy,
                timeout_notify=TIDY_S,
                timeout_graceful_shutdown=int(service.settings.server.drain_s) + LAST_WORDS_S,
            ),
            started,
        )

    async def serve(self) -> None:
        """Serve until `stop`."""
        await self._server.serve([self._listener])

    def stop(self) -> None:
        """Take nothing new and let what is under way end; at the second call, end at once."""
        if self._server.should_exit:
            self._server.force_exit = True
        self._server.should_exit = True
        self._service.drain()

    async def _tidy(self) -> None:
        """Collect garbage while nobody waits for anything."""
        if not self._server.server_state.tasks:
            gc.collect()


def settle_down() -> None:
    """Have the interpreter ready for work, once all is there that stays."""
    # The collector need not look at it again, which would stop everything for a while.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GENERATIONS)
    # Who brings a VIP onto the device gives the interpreter away at each register access.
    sys.setswitchinterval(_SWITCH_S)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._tell_started = started
        # What it says of itself is said here better, or of no interest.
        logging.getLogger("uvicorn.error").setLevel(logging.WARNING)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        settle_down()
        self._tell_started()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # The daemon's own; uvicorn would raise them again at the end, before the model is closed.
        yield
