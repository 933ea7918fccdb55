"""Runs the daemon until it is asked to end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import mmap
import os
import signal
import socket
import threading
from collections.abc import Sequence

import uvloop

from cuelight.daemon.core import DeviceCore
from cuelight.daemon.crowd import Crowd, table_bytes
from cuelight.daemon.front_end import FrontEnd
from cuelight.daemon.front_ends import FrontEnds
from cuelight.daemon.service import Service
from cuelight.daemon.settings import Server, SettingsError

__all__ = ["Daemon", "listen"]

_BACKLOG = 1024
_SEND_BYTES = 128 << 10
_log = logging.getLogger(__name__)


def listen(server: Server) -> list[socket.socket]:
    """Listen where the settings say, with a socket for each front-end process, or one if there are none.

    Raises
    ------
    SettingsError
        It can't be.
    """
    with contextlib.ExitStack() as undo:
        try:
            # Alone at first: another daemon of this user would share its port with those that follow.
            first = undo.enter_context(_listen(server.host, server.port, shared=False))
            if not server.front_ends:
                undo.pop_all()
                return [first]
            port = first.getsockname()[1]
            first.close()
            listeners = [undo.enter_context(_listen(server.host, port, shared=True)) for _ in range(server.front_ends)]
            undo.pop_all()
            return listeners
        except OSError as error:
            raise SettingsError(
                f"The daemon can't listen at {server.host} port {server.port} ({os.strerror(error.errno or 0)}); "
                "choose another."
            ) from error


def _listen(host: str, port: int, *, shared: bool) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=_BACKLOG, reuse_port=shared)
    # Connections inherit it: what a client leaves unread must not grow to megabytes before anybody notices.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BYTES)
    return listener


class Daemon:
    """A core and its front ends: one in this process at one socket, or a process for each of several.

    Parameters
    ----------
    core : DeviceCore
        What to serve.
    listeners : sequence of socket.socket
        Where, as `listen` has them; closed by `run`.

    Attributes
    ----------
    url : str
        Where.
    front : FrontEnd or FrontEnds
        What speaks HTTP.
    service : Service, optional
        Of the front end in this process.
    """

    def __init__(self, core: DeviceCore, listeners: Sequence[socket.socket]) -> None:
        self._core = core
        self._listeners = listeners
        host, port = listeners[0].getsockname()[:2]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        core.llm.device.url = self.url
        self.service: Service | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.front: FrontEnd | FrontEnds
        if core.settings.server.front_ends:
            self.front = FrontEnds(core, listeners, self._tell)
        else:
            self.service = Service(core, core.llm, core.settings, core.registry)
            core.settings_changed = self.service.set_settings
            crowd = Crowd(mmap.mmap(-1, table_bytes(1)), 0)
            self.front = FrontEnd(self.service, listeners[0], crowd, self._tell)

    def run(self) -> None:
        """Serve until SIGINT, SIGTERM or `stop`, then let what is under way end; a second signal ends it at once."""
        with contextlib.ExitStack() as undo:
            for listener in self._listeners:
                undo.enter_context(listener)
            runner = undo.enter_context(asyncio.Runner(loop_factory=uvloop.new_event_loop))
            runner.run(self._run())

    def stop(self) -> None:
        """Have `run` end; from any thread."""
        if self._loop is not None:
            # A loop that is closed has ended already.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self.front.stop)

    def reload(self, timeout_s: float) -> None:
        """Have settings read again, as SIGHUP does, and wait for that; from any other thread, while it runs.

        Raises
        ------
        TimeoutError
            It takes longer than `timeout_s` seconds.
        """
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(self._core.reload(), self._loop).result(timeout_s)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        if threading.current_thread() is threading.main_thread():
            self._loop.add_signal_handler(signal.SIGINT, self.front.stop)
            self._loop.add_signal_handler(signal.SIGTERM, self.front.stop)
            self._loop.add_signal_handler(signal.SIGHUP, self._reload)
        await self._core.begin()
        try:
            await self.front.serve()
        finally:
            await self._core.close()

    def _tell(self) -> None:
        _log.info("Serving %s at %s.", self._core.facts.model, self.url)

    def _reload(self) -> None:
        self._reloading = asyncio.ensure_future(self._core.reload())
