"""BAR0 of a board that no driver has, by way of sysfs: registers and nothing else."""

from __future__ import annotations

import contextlib
import errno
import os

from cuelight.errors import TransportError
from cuelight.pci.config import Command
from cuelight.pci.function import Function
from cuelight.transports.bar import BAR_SIZE, Bar
from cuelight.transports.lock import DeviceLock

__all__ = ["open_by_sysfs"]


def open_by_sysfs(function: Function, lock: DeviceLock, held: contextlib.ExitStack) -> Bar:
    """Switch memory decode on, reset the board and map its registers uncached. It never becomes bus master.

    Parameters
    ----------
    function : Function
        Bound to no driver.
    lock : DeviceLock
        Held on it.
    held : ExitStack
        Undone when the registers are closed.

    Raises
    ------
    TransportError
        There is no right, no BAR0, or no way to reset it.
    """
    _check_bar(function)
    _write(function, "enable", "1")
    held.callback(_disable, function)
    # Whoever had it before may have left requests and settings behind.
    _write(function, "reset", "1")
    config = function.config()
    if config.absent:
        raise TransportError(
            f"{function.address} no longer answers after its reset; rescan the bus, or power the machine off and on."
        )
    bar = config.memory_bar(0)
    if bar is None or not bar.address:
        raise TransportError(
            f"BAR0 of {function.address} has no address any more, so it was programmed anew; {_rescan(function)}."
        )
    if not config.command & Command.MEMORY:
        raise TransportError(
            f"{function.address} does not answer to memory accesses, and enabling it changed nothing; "
            f"try setpci -s {function.address} COMMAND=2:2 as root."
        )
    try:
        # Uncached, as BAR0 is not prefetchable; O_SYNC says so once more.
        descriptor = os.open(function.folder / "resource0", os.O_RDWR | os.O_SYNC | os.O_CLOEXEC)
    except OSError as error:
        raise _refused(function, "resource0", error) from error
    try:
        return Bar(descriptor, name=f"pcie:{function.address}", still_there=lock.check, held=held)
    finally:
        os.close(descriptor)


def _check_bar(function: Function) -> None:
    size = function.bar_size(0)
    if not size:
        raise TransportError(
            f"{function.address} has no BAR0, so it was programmed after the bus was scanned; {_rescan(function)}."
        )
    if size < BAR_SIZE:
        raise TransportError(
            f"BAR0 of {function.address} has {size} bytes instead of {BAR_SIZE}, so it is another design; "
            "program the board with Cuelight's bitstream."
        )


def _write(function: Function, attribute: str, value: str) -> None:
    try:
        function.write(attribute, value)
    except OSError as error:
        raise _refused(function, attribute, error) from error


def _refused(function: Function, attribute: str, error: OSError) -> TransportError:
    path = function.folder / attribute
    if error.errno in (errno.EACCES, errno.EPERM):
        return TransportError(
            f"{path} may not be used by this user ({error.strerror}); run as root with the kernel's lockdown off, "
            "or bind the board to vfio-pci."
        )
    if attribute == "reset" and error.errno in (errno.ENOENT, errno.ENOTTY):
        return TransportError(
            f"{function.address} can't be reset alone, so what another program left in it would stay; "
            "bind it to vfio-pci, or program the board anew."
        )
    return TransportError(f"{path} can't be used ({error.strerror}); {_rescan(function)}.")


def _disable(function: Function) -> None:
    # The kernel counts who has enabled it.
    with contextlib.suppress(OSError):
        function.write("enable", "0")


def _rescan(function: Function) -> str:
    return f"as root, echo 1 > {function.folder}/remove, then echo 1 > /sys/bus/pci/rescan"
