"""Lets other processes of the same user look at a device, and change nothing."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from cuelight.errors import CuelightError, TransportError
from cuelight.snapshot import Snapshot

__all__ = ["Publisher"]

_SEND_S = 1.0
_RETRY_S = 1.0


class Publisher:
    """A socket beside the device's segment; whoever connects is sent one JSON object, and that is all.

    The object is `Snapshot.to_dict()`, or has `error` alone: a sentence that says why there is none.

    Parameters
    ----------
    path : Path
        Where: a new name, open to this user only.
    snapshot : callable
        Called for each who connects.

    Raises
    ------
    TransportError
        The socket can't be made.
    """

    def __init__(self, path: Path, snapshot: Callable[[], Snapshot]) -> None:
        self._path = path
        self._snapshot = snapshot
        self._closing = threading.Event()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        fresh = Path(f"{path}-new")
        try:
            # Before it has a name, so that nobody else can ever connect.
            os.fchmod(self._socket.fileno(), 0o600)
            self._socket.bind(str(fresh))
            self._socket.listen(8)
            # It has its name only when it answers: one that refuses is stale.
            fresh.rename(path)
        except OSError as error:
            self._socket.close()
            fresh.unlink(missing_ok=True)
            raise TransportError(
                f"{path} can't be made ({error.strerror or error}); make {path.parent} writable."
            ) from error
        self._thread = threading.Thread(target=self._serve, name="cuelight-publish", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop answering and remove the socket; a second call does nothing."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            # Wakes the thread; closing alone would not.
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(2 * _SEND_S)
        self._socket.close()

    def _serve(self) -> None:
        while not self._closing.is_set():
            try:
                connection, _ = self._socket.accept()
            except OSError:
                # Closing, or out of descriptors for now.
                self._closing.wait(_RETRY_S)
                continue
            with connection, contextlib.suppress(OSError):
                connection.settimeout(_SEND_S)
                # Whoever embeds this may have SIGPIPE end the process.
                connection.sendall(self._answer(), socket.MSG_NOSIGNAL)

    def _answer(self) -> bytes:
        try:
            answer = self._snapshot().to_dict()
        except CuelightError as error:
            answer = {"error": str(error)}
        return json.dumps(answer).encode()
