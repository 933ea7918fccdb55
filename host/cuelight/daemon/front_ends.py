"""Keeps a process for each front end, for as long as the daemon runs."""

from __future__ import annotations

import asyncio
import contextlib
import gc
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
from cuelight.daemon.front_end import LAST_WORDS_S, TIDY_S, settle_down
from cuelight.daemon.front_link import FrontLink
from cuelight.daemon.settings import Settings
from cuelight.errors import CuelightError

__all__ = ["FrontEnds", "FrontEndsFail"]

_PROGRAM = ("-m", "cuelight.daemon.front_process")
_TICK_S = 1.0
_REST_S = 1.0
_LONGEST_REST_S = 30.0
_FRUITLESS = 3
_EXIT_S = 5.0
_GONE_S = 1.0
_log = logging.getLogger(__name__)


class FrontEndsFail(CuelightError):
    """Processes of front ends don't start."""


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
        self._stopping = asyncio.Event()
        self._failure: FrontEndsFail | None = None
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
        """Serve until `stop`.

        Raises
        ------
        FrontEndsFail
            They don't start.
        """
        self._loop = asyncio.get_running_loop()
        settle_down()
        with contextlib.ExitStack() as undo:
            undo.callback(os.close, self._table_fd)
            undo.callback(self._table.close)
            folder = undo.enter_context(self._counting())
            async with asyncio.TaskGroup() as group:
                group.create_task(self._tidy())
                for place in range(self._places):
                    group.create_task(self._keep(place, folder))
        if self._failure:
            raise self._failure

    def stop(self) -> None:
        """Take nothing new and let what is under way end; at the second call, end at once."""
        if not self._stopping.is_set():
            self._stopping.set()
            for listener in self._listeners:
                listener.close()
            asyncio.get_running_loop().call_later(self._core.settings.server.drain_s + 2 * LAST_WORDS_S, self._close)
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

    async def _rest(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    async def _tidy(self) -> None:
        """Collect garbage while nobody waits for anything."""
        while not self._stopping.is_set():
            await self._rest(TIDY_S)
            if not any(link.orders for link in self.links.values()):
                gc.collect()

    async def _keep(self, place: int, folder: str) -> None:
        fruitless = 0
        while not self._stopping.is_set():
            was_ready, status = await self._run(place, folder)
            if self._stopping.is_set():
                return
            self._lost.inc()
            _log.error("Front end %d has ended with status %d; it is started again.", place, status)
            fruitless = 0 if was_ready else fruitless + 1
            if fruitless >= _FRUITLESS and not any(link.ready for link in self.links.values()):
                self._failure = FrontEndsFail(
                    f"Front ends end with status {status} before they have begun; see what they wrote before that."
                )
                self.stop()
            elif fruitless:
                await self._rest(min(_REST_S * 2 ** (fruitless - 1), _LONGEST_REST_S))

    async def _run(self, place: int, folder: str) -> tuple[bool, int]:
        """Start a process, and return when it is gone and all that it had is given back.

        Returns
        -------
        bool
            Whether it has taken connections.
        int
            Its exit status.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            process = self._start(place, theirs, folder)
        link = FrontLink(self._core, process.pid, lambda: self._note_ready(place))
        await link.open(ours)
        self.links[place] = link
        if self._stopping.is_set():
            link.stop()
        try:
            while not link.lost.is_set():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_TICK_S):
                        await link.lost.wait()
                link.tick()
        finally:
            del self.links[place]
            status = await self._loop.run_in_executor(None, self._end, process)
            Crowd(self._table, place).clear()
        return link.ready, status

    def _start(self, place: int, channel: socket.socket, folder: str) -> subprocess.Popen[bytes]:
        shared = channel.fileno(), self._listeners[place].fileno(), self._table_fd
        return subprocess.Popen(
            [sys.executable, *_PROGRAM, *map(str, (*shared, place, self._places))],
            pass_fds=shared,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": folder},
        )

    def _end(self, process: subprocess.Popen[bytes]) -> int:
        """See that it ends, and return its status; in a thread that may wait."""
        try:
            return process.wait(_EXIT_S if self._stopping.is_set() else _GONE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def _note_ready(self, place: int) -> None:
        if place in self._awaited:
            self._awaited.remove(place)
            if not self._awaited:
                self._started()
