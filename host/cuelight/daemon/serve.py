"""Runs the daemon until it is asked to end."""

from __future__ import annotations

import socket

import uvicorn

from cuelight.daemon.app import build_app
from cuelight.daemon.service import Service
from cuelight.daemon.settings import SettingsError

__all__ = ["Daemon"]

_BACKLOG = 1024


class Daemon:
    """A service that listens.

    Parameters
    ----------
    service : Service
        What to serve.

    Attributes
    ----------
    url : str
        Where.

    Raises
    ------
    SettingsError
        It can't listen where its settings say.
    """

    def __init__(self, service: Service) -> None:
        server = service.settings.server
        family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
        try:
            self._listener = socket.create_server((server.host, server.port), family=family, backlog=_BACKLOG)
        except OSError as error:
            raise SettingsError(
                f"The daemon can't listen at {server.host} port {server.port} ({error.strerror}); choose another."
            ) from error
        host, port = self._listener.getsockname()[:2]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        self._server = uvicorn.Server(
            uvicorn.Config(
                build_app(service),
                loop="uvloop",
                http="httptools",
                ws="none",
                lifespan="on",
                access_log=False,
                log_config=None,
                server_header=False,
                timeout_graceful_shutdown=int(server.drain_s),
            )
        )

    def run(self) -> None:
        """Serve until SIGINT, SIGTERM or `stop`, then let what is under way end."""
        with self._listener:
            self._server.run([self._listener])

    def stop(self) -> None:
        """Have `run` end; from any thread."""
        self._server.should_exit = True
