"""Looks at devices that other processes of the same user have opened."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from pathlib import Path

from cuelight.errors import DeviceClosed, Timeout, TransportError
from cuelight.snapshot import Snapshot

__all__ = ["FOLDER", "SUFFIX", "find_devices", "observe"]

FOLDER = Path("/dev/shm")
SUFFIX = ".status"
"""Of a segment's path with this at its end, the device's socket."""

_ANSWER_LIMIT = 1 << 24
_QUEUE_S = 0.01


def find_devices(folder: Path = FOLDER) -> list[Path]:
    """Sockets of this user's devices, oldest first; some may be of processes that were killed."""
    found = []
    for path in folder.glob(f"cuelight-*{SUFFIX}"):
        with contextlib.suppress(FileNotFoundError):
            state = path.lstat()
            if state.st_uid == os.geteuid():
                found.append((state.st_mtime_ns, path))
    return [path for _, path in sorted(found)]


def observe(path: Path, timeout_s: float = 2.0) -> Snapshot:
    """Look at a device.

    Parameters
    ----------
    path : Path
        Its socket; removed if the process behind it is gone.
    timeout_s : float
        Longest wait for the whole answer, in seconds.

    Raises
    ------
    DeviceClosed
        It is closed, or its process is gone.
    Timeout
        Its process does not answer.
    TransportError
        What answers is no Cuelight of this version, or the device itself can't be read.
    """
    try:
        answer = _receive(path, time.monotonic() + timeout_s)
    except TimeoutError:
        raise Timeout(
            f"The device behind {path} does not answer within {timeout_s:g} s; see whether its process is stopped."
        ) from None
    except ConnectionRefusedError:
        path.unlink(missing_ok=True)
        raise _closed(path) from None
    except (FileNotFoundError, ConnectionResetError, BrokenPipeError):
        raise _closed(path) from None
    except OSError as error:
        raise TransportError(f"{path} can't be read ({error.strerror}); look as the user who opened it.") from error
    if not answer:
        raise _closed(path)
    try:
        values = json.loads(answer)
        if isinstance(values, dict) and isinstance(sentence := values.get("error"), str):
            raise TransportError(sentence)
        return Snapshot.from_dict(values)
    except (ValueError, RecursionError) as error:
        raise TransportError(
            f"What answers at {path} is of another version; use one version of Cuelight for both."
        ) from error


def _receive(path: Path, deadline: float) -> bytes:
    answer = b""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        _connect(connection, path, deadline)
        while len(answer) < _ANSWER_LIMIT:
            connection.settimeout(max(0.001, deadline - time.monotonic()))
            if not (piece := connection.recv(1 << 16)):
                break
            answer += piece
    return answer


def _connect(connection: socket.socket, path: Path, deadline: float) -> None:
    connection.setblocking(False)
    while True:
        try:
            return connection.connect(str(path))
        except BlockingIOError:
            # Others are in the queue before us; a local socket does not tell when there is room in it.
            if time.monotonic() > deadline:
                raise TimeoutError from None
            time.sleep(_QUEUE_S)


def _closed(path: Path) -> DeviceClosed:
    return DeviceClosed(f"The device behind {path} has been closed; open one, and look again.")
