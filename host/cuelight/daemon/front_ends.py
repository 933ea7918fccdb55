"""Keeps a process for each front end, for as long as the daemon runs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import mmap
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence

from prometheus_client import Counter, Gauge
from prometheus_client.multiprocess import MultiProcessCollector

from cuelight.daemon.core import DeviceCore
from cuelight.daemon.crowd import Crowd, table_bytes
from cuelight.daemon.front_end import LAST_WORDS_S, settle_down
from cuelight.daemon.front_link import FrontLink
from cuelight.daemon.settings import Settings

__all__ = ["FrontEnds"]

_PROGRAM = ("-m", "cuelight.daemon.front_process")
_TICK_S = 1.0
_SHORT_LIFE_S = 5.0
_REST_S = 1.0
_EXIT_S = 5.0
_log = logging.getLogger(__name__)


class FrontEnds:
    """Front ends in processes of their own; one that is gone is started again.

    Parameters
    ----------
    core : DeviceCore
        Who answers all of them.
    listeners : sequence of socket.socket
        One for each; closed when the end begins.
    started : callable
        Called once all take connections.

    Attributes
    ----------
    links : dict
        Those that live, by place.
    """

    def __init__(self, core: DeviceCore, listeners: Sequence[socket.socket], started: Callable[[], None]) -> None:
        self.links: dict[int, FrontLink] = {}
        self._core = core
        self._listeners = listeners
        self._started = started
        self._awaited = set(range(len(listeners)))
        self._stopping = False
        self._places = len(listeners)
        # Nameless, and for this process and those that it is given to.
        self._table_fd = os.memfd_create("cuelight-connections")
        os.ftruncate(self._table_fd, table_bytes(self._places))
        self._table = mmap.mmap(self._table_fd, table_bytes(self._places))
        core.settings_changed = self._set_settings
        self._lost = Counter("cuelight_front_ends_lost", "Front ends that were started again", registry=core.registry)
        Gauge("cuelight_front_ends", "Front ends that live", registry=core.registry).set_function(
            lambda: len(self.links)
        )

    async def serve(self) -> None:
        """Serve until `stop`."""
        self._loop = asyncio.get_running_loop()
        settle_down()
        with self._counting() as folder:
            async with asyncio.TaskGroup() as group:
                for place in range(self._places):
                    group.create_task(self._keep(place, folder))

    def stop(self) -> None:
        """Take nothing new and let what is under way end; at the second call, end at once."""
        if not self._stopping:
            self._stopping = True
            for listener in self._listeners:
                listener.close()
            self._loop.call_later(self._core.settings.server.drain_s + 2 * LAST_WORDS_S, self._close)
        for link in self.links.values():
            link.stop()

    def _close(self) -> None:
        for link in self.links.values():
            link.close()

    def _set_settings(self, settings: Settings) -> None:
        for link in self.links.values():
            link.set_settings(settings)

    @contextlib.contextmanager
    def _counting(self) -> Iterator[str]:
        """The folder of the files in which front ends count."""
        with tempfile.TemporaryDirectory(prefix=f"cuelight-{os.getpid()}-metrics-", dir="/dev/shm") as folder:
            MultiProcessCollector(self._core.registry, folder)  # type: ignore[no-untyped-call]
            yield folder

    async def _keep(self, place: int, folder: str) -> None:
        while not self._stopping:
            begun = self._loop.time()
            await self._run(place, folder)
            if not self._stopping:
                self._lost.inc()
                _log.error("Front end %d is gone; it is started again.", place)
                if self._loop.time() - begun < _SHORT_LIFE_S:
                    await asyncio.sleep(_REST_S)

    async def _run(self, place: int, folder: str) -> None:
        """Start a process, and return when it is gone and all that it had is given back."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = self._start(place, theirs, folder)
        link = FrontLink(self._core, process.pid, lambda: self._note_ready(place))
        await link.open(ours)
        self.links[place] = link
        if self._stopping:
            link.stop()
        try:
            while not link.lost.is_set():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_TICK_S):
                        await link.lost.wait()
                link.tick()
        finally:
            del self.links[place]
            await self._loop.run_in_executor(None, self._end, process)
            Crowd(self._table, place).clear()

    def _start(self, place: int, channel: socket.socket, folder: str) -> subprocess.Popen[bytes]:
        shared = channel.fileno(), self._listeners[place].fileno(), self._table_fd
        return subprocess.Popen(
            [sys.executable, *_PROGRAM, *map(str, (*shared, place, self._places))],
            pass_fds=shared,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": folder},
        )

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """See that it ends; in a thread that may wait."""
        if not self._stopping:
            process.kill()
        try:
            process.wait(_EXIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _note_ready(self, place: int) -> None:
        if place in self._awaited:
            self._awaited.remove(place)
            if not self._awaited:
                self._started()
