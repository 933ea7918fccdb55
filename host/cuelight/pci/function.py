"""A PCI function as Linux shows it in sysfs."""

from __future__ import annotations

import os
import re
from pathlib import Path

from cuelight.errors import DeviceLost, TransportError, UnknownDevice
from cuelight.pci.config import ConfigSpace
from cuelight.pci.ids import DEVICE_ID, VENDOR_ID

__all__ = ["Function", "find_boards"]

_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-1][0-9a-f]\.[0-7]")


class Function:
    """One function, which is there.

    Parameters
    ----------
    address : str
        Domain, bus, device and function: `0000:65:00.0`.
    root : Path
        Where sysfs is mounted.

    Raises
    ------
    UnknownDevice
        There is none at this address, or it is no address.
    """

    def __init__(self, address: str, root: Path = Path("/sys")) -> None:
        self.address = address.lower()
        if not _ADDRESS.fullmatch(self.address):
            raise UnknownDevice(f"{address!r} is no address of a PCI function; one looks like pcie:0000:65:00.0.")
        self.folder = root / "bus" / "pci" / "devices" / self.address
        self._root = root
        if not self.folder.is_dir():
            raise UnknownDevice(f"There is no PCI function {self.address}; {_boards_here(root)}.")

    @property
    def ids(self) -> tuple[int, int]:
        """Vendor and device id."""
        return self._number("vendor"), self._number("device")

    def check_ids(self) -> None:
        """Refuse what is no board of this project.

        Raises
        ------
        UnknownDevice
            It has other ids.
        """
        if self.ids != (VENDOR_ID, DEVICE_ID):
            vendor, device = self.ids
            raise UnknownDevice(
                f"{self.address} is {vendor:04x}:{device:04x} and no Cuelight, which is "
                f"{VENDOR_ID:04x}:{DEVICE_ID:04x}; {_boards_here(self._root)}."
            )

    @property
    def driver(self) -> str | None:
        """Kernel driver that it is bound to."""
        return self._link("driver")

    @property
    def iommu_group(self) -> int | None:
        """Number of its IOMMU group; None where there is no IOMMU."""
        name = self._link("iommu_group")
        return int(name) if name and name.isdecimal() else None

    def group_mates(self) -> tuple[tuple[str, str | None], ...]:
        """Addresses and drivers of the other functions of its IOMMU group."""
        folder = self.folder / "iommu_group" / "devices"
        addresses = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        return tuple(
            (address, Function(address, self._root).driver) for address in addresses if address != self.address
        )

    def bar_size(self, index: int) -> int:
        """Bytes of a BAR as Linux has assigned it; 0 where it has none."""
        lines = self._text("resource").splitlines()
        start, end, _ = (int(word, 16) for word in lines[index].split()) if index < len(lines) else (0, 0, 0)
        return end - start + 1 if start else 0

    def config(self) -> ConfigSpace:
        """Read its configuration space: the first 64 bytes only, for who is not root."""
        try:
            return ConfigSpace((self.folder / "config").read_bytes())
        except OSError as error:
            raise self.lost from error

    def write(self, attribute: str, value: str) -> None:
        """Write an attribute, in one go."""
        descriptor = os.open(self.folder / attribute, os.O_WRONLY)
        try:
            os.write(descriptor, value.encode())
        finally:
            os.close(descriptor)

    @property
    def lost(self) -> DeviceLost:
        """What is to be said when it is there no more."""
        return DeviceLost(
            f"{self.address} was removed from the bus; put it back, or rescan with echo 1 > /sys/bus/pci/rescan."
        )

    def _text(self, attribute: str) -> str:
        try:
            return (self.folder / attribute).read_text()
        except OSError as error:
            raise self.lost from error

    def _number(self, attribute: str) -> int:
        text = self._text(attribute)
        try:
            return int(text, 16)
        except ValueError as error:
            raise TransportError(
                f"{self.folder / attribute} holds {text[:20]!r} and no number; rescan the bus."
            ) from error

    def _link(self, name: str) -> str | None:
        try:
            return Path(os.readlink(self.folder / name)).name
        except OSError:
            return None


def find_boards(root: Path = Path("/sys")) -> tuple[str, ...]:
    """Addresses of this machine's boards, by vendor and device id, in order."""
    wanted = {"vendor": VENDOR_ID, "device": DEVICE_ID}
    found = []
    for folder in sorted((root / "bus" / "pci" / "devices").glob("*:*:*.*")):
        try:
            ids = {name: int((folder / name).read_text(), 16) for name in wanted}
        except (OSError, ValueError):
            continue  # removed meanwhile
        if ids == wanted:
            found.append(folder.name)
    return tuple(found)


def _boards_here(root: Path) -> str:
    boards = find_boards(root)
    return f"boards here are {', '.join(boards)}" if boards else "this machine has no board, so use 'twin'"
