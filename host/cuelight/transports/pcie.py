"""A board on PCI Express: found, locked, reset, and reached in the way that its driver allows."""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path

from cuelight import regmap
from cuelight.errors import InvalidArgument, TransportError, UnknownDevice
from cuelight.pci.function import Function, find_boards
from cuelight.regmap import COUNTERS, IDENTITY
from cuelight.transports.bar import Bar
from cuelight.transports.lock import DeviceLock
from cuelight.transports.pcie_sysfs import open_by_sysfs
from cuelight.transports.pcie_vfio import VfioDevice
from cuelight.transports.polled import PolledTransport
from cuelight.transports.push import Master

__all__ = ["Board", "open_board"]


class Board:
    """A board that can be opened again after it was lost.

    Parameters
    ----------
    uri : str
        `pcie:` and its address, or `pcie` for the only board of this machine.
    context, blocks, vocabulary : int
        Sizes of the segment; see `Shape`.
    polling : bool
        As for `PolledTransport`.
    push : bool, optional
        Whether the board shall master the bus; if left out, where its driver allows it.
    root : Path
        Where sysfs is mounted.
    """

    def __init__(
        self,
        uri: str,
        *,
        context: int = 2048,
        blocks: int = 32,
        vocabulary: int = 0,
        polling: bool = False,
        push: bool | None = None,
        root: Path = Path("/sys"),
    ) -> None:
        self._uri = uri
        self._push = push
        self._root = root
        self._open = functools.partial(
            PolledTransport, context=context, blocks=blocks, vocabulary=vocabulary, polling=polling
        )
        self._opened: PolledTransport | None = None

    def open(self) -> PolledTransport:
        """Open it, reset; what was opened before is given back.

        Raises
        ------
        UnknownDevice
            There is no such board.
        DeviceBusy
            Another program has it.
        DeviceLost
            It does not answer.
        InvalidArgument
            It shall master the bus, and can't.
        TransportError
            This user may not use it, it is of another version, or the system is not set up for it.
        """
        if self._opened:
            # Its segment is still looked at.
            self._opened.release()
        self._opened = self._open(*open_board(self._uri, self._push, self._root))
        return self._opened


def open_board(uri: str, push: bool | None, root: Path) -> tuple[Bar, Master | None]:
    """Open a board's registers, fresh from reset, and what it needs to master the bus; all else is as for `Board`."""
    function = _find(uri, root)
    function.check_ids()
    driver = function.driver
    if push and driver is None:
        raise InvalidArgument(
            f"PUSH to {function.address} needs an IOMMU that knows this program's memory, and interrupts, which sysfs "
            "has neither of; bind the board to vfio-pci, or leave PUSH out."
        )
    if driver not in (None, "vfio-pci"):
        raise TransportError(
            f"{function.address} is bound to the driver {driver}; as root, "
            f"echo {function.address} > /sys/bus/pci/drivers/{driver}/unbind."
        )
    held = contextlib.ExitStack()
    try:
        lock = DeviceLock(function.folder / "config", f"pcie:{function.address}")
        held.callback(lock.close)
        if function.config().absent:
            raise TransportError(
                f"{function.address} reads all ones, so its link is down; check its power and its slot, then rescan."
            )
        if driver is None:
            bar, master = open_by_sysfs(function, lock, held), None
        else:
            master = VfioDevice(function)
            bar = master.map_bar(lock, held)
        _check_fresh(bar, function)
    except BaseException:
        held.close()
        raise
    return bar, None if push is False else master


def _find(uri: str, root: Path) -> Function:
    _, _, address = uri.partition(":")
    if address:
        return Function(address, root)
    boards = find_boards(root)
    if len(boards) == 1:
        return Function(boards[0], root)
    here = ", ".join(f"pcie:{board}" for board in boards)
    raise UnknownDevice(f"Say which: {here}." if here else "This machine has no Cuelight board; use 'twin'.")


def _check_fresh(bar: Bar, function: Function) -> None:
    if not bar.read64(IDENTITY + regmap.Identity.MAGIC):
        raise TransportError(
            f"BAR0 of {function.address} reads zero, so the board was programmed without a rescan, or not at all; "
            f"as root, echo 1 > {function.folder}/remove, then echo 1 > /sys/bus/pci/rescan."
        )
    if bar.read32(COUNTERS + regmap.Counters.ADMITTED):
        raise TransportError(
            f"{function.address} has requests of another program although it was reset; program the board anew."
        )
