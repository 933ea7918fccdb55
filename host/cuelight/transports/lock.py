"""One program at a time has a device."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from cuelight.errors import DeviceBusy, DeviceClosed, DeviceLost, TransportError

__all__ = ["DeviceLock"]


class DeviceLock:
    """Held from now until `close`, or the end of the process.

    Parameters
    ----------
    path : Path
        File of the device that every user of it may read; it is not changed.
    name : str
        The device, for messages.

    Raises
    ------
    DeviceBusy
        Another one holds it.
    TransportError
        It can't be read.
    """

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._name = name
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise TransportError(f"{path} can't be read ({error.strerror}); make it readable.") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(self._descriptor)
            os.close(self._descriptor)
            raise DeviceBusy(f"{name} is in use by {holder}; end that, or use another device.") from None
        except BaseException:
            os.close(self._descriptor)
            raise

    def check(self) -> None:
        """See whether the file is still the one that was locked.

        Raises
        ------
        DeviceLost
            It is gone, or another one has its name: the device was removed, and perhaps found again.
        DeviceClosed
            It is held no more.
        """
        if self._descriptor < 0:
            raise DeviceClosed(f"{self._name} is closed; open it again.")
        try:
            now = os.stat(self._path)
        except OSError:
            now = None
        mine = os.fstat(self._descriptor)
        if now is None or (now.st_dev, now.st_ino) != (mine.st_dev, mine.st_ino):
            raise DeviceLost(f"{self._name} was removed since it was opened; open it again once it is back.")

    def close(self) -> None:
        """Let go of it."""
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)


def _holder(descriptor: int) -> str:
    """Who holds a lock on an open file, as far as the kernel tells."""
    status = os.fstat(descriptor)
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    try:
        locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    except OSError:
        locks = []
    # "1: FLOCK ADVISORY WRITE 4711 00:16:1234 0 EOF"; who waits has an arrow first.
    pids = [int(words[4]) for words in locks if words[1] == "FLOCK" and words[5] == place]
    if not pids:
        return "another program"
    return "this program" if os.getpid() in pids else f"process {pids[0]}"
