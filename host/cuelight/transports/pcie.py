"""A board on PCI Express: found, locked, reset, and reached in the way that its driver allows."""

from __future__ import annotations

import contextlib
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

__all__ = ["Board", "open_registers"]


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
        root: Path = Path("/sys"),
    ) -> None:
        self._uri = uri
        self._root = root
        self._settings = {"context": context, "blocks": blocks, "vocabulary": vocabulary}
        self._polling = polling
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
        TransportError
            This user may not use it, it is of another version, or the system is not set up for it.
        """
        if self._opened:
            # Its segment is still looked at.
            self._opened.release()
        registers = open_registers(self._uri, root=self._root)
        self._opened = PolledTransport(registers, polling=self._polling, **self._settings)
        return self._opened


def open_registers(uri: str, *, push: bool = False, root: Path = Path("/sys")) -> Bar:
    """Open a board's registers, fresh from reset; errors are those of `Board.open`, and:

    Parameters
    ----------
    uri, root
        As for `Board`.
    push : bool
        The board is to master the bus.

    Raises
    ------
    InvalidArgument
        It can't: see the message.
    """
    function = _find(uri, root)
    function.check_ids()
    driver = function.driver
    if push:
        raise InvalidArgument(
            f"PUSH to {function.address} needs an IOMMU that knows this program's memory, and interrupts, which sysfs "
            "has neither of; bind the board to vfio-pci, or leave PUSH out."
            if driver is None
            else f"PUSH to {function.address} is not in this version of the driver; leave it out."
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
        bar = open_by_sysfs(function, lock, held) if driver is None else VfioDevice(function).map_bar(lock, held)
        _check_fresh(bar, function)
    except BaseException:
        held.close()
        raise
    return bar


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
