"""A board that is bound to vfio-pci: registers, memory that it may reach, and interrupts."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import resource
from collections.abc import Callable
from ctypes import Structure
from pathlib import Path
from typing import Any

from cuelight.errors import CuelightError, DeviceBusy, TransportError
from cuelight.pci.config import Command
from cuelight.pci.function import Function
from cuelight.transports.bar import BAR_SIZE, Bar
from cuelight.transports.lock import DeviceLock
from cuelight.transports.pcie_config import ConfigFile, Mastering
from cuelight.transports.vfio import (
    API_VERSION,
    BAR0_REGION,
    CONFIG_REGION,
    MSIX_IRQ,
    TYPE1V2_IOMMU,
    DeviceInfo,
    DmaMap,
    GroupStatus,
    IrqInfo,
    Op,
    RegionInfo,
    irq_set,
)

__all__ = ["Ioctl", "VfioDevice"]

Ioctl = Callable[[int, int, Any], int]
"""As `fcntl.ioctl`."""

_COMMAND = 0x04


class VfioDevice:
    """A board behind an IOMMU: it reaches memory that was mapped for it, and no other.

    The kernel resets it when it is opened and when it is closed.

    Parameters
    ----------
    function : Function
        Bound to vfio-pci.
    devices : Path
        Folder of VFIO's device files.
    ioctl : callable
        Asks the kernel.

    Raises
    ------
    TransportError
        VFIO, the IOMMU or the board refuses; the message says which and what to do.
    DeviceBusy
        Another program has its group.
    """

    def __init__(self, function: Function, *, devices: Path = Path("/dev/vfio"), ioctl: Ioctl = fcntl.ioctl) -> None:
        self._function = function
        self._ioctl = ioctl
        self._held = contextlib.ExitStack()
        with contextlib.ExitStack() as undo:
            undo.callback(self._held.close)
            group_number = self._find_group(devices)
            self._container = self._open(devices / "vfio", "modprobe vfio-pci")
            self._check_container()
            group = self._open(devices / str(group_number), "bind the board to vfio-pci again")
            self._join(group)
            self._device = self._ask(
                group,
                Op.GROUP_GET_DEVICE_FD,
                ctypes.create_string_buffer(function.address.encode()),
                "bind it to vfio-pci again",
            )
            self._held.callback(os.close, self._device)
            self._check_device()
            self._config = ConfigFile(self._device, self._region(CONFIG_REGION).offset)
            self.reset()
            undo.pop_all()

    @property
    def config(self) -> ConfigFile:
        """Configuration space, as far as VFIO lets it be written."""
        return self._config

    def map_bar(self, lock: DeviceLock, held: contextlib.ExitStack) -> Bar:
        """Map BAR0; `held` is undone, and this closed, when the registers are closed.

        Raises
        ------
        TransportError
            There is no BAR0 that can be mapped.
        """
        held.callback(self.close)
        region = self._region(BAR0_REGION)
        if region.size < BAR_SIZE or not region.flags & RegionInfo.MMAP:
            raise TransportError(
                f"BAR0 of {self._function.address} has {region.size} bytes and can't be mapped as {BAR_SIZE}; "
                "program the board with Cuelight's bitstream and rescan the bus."
            )
        name = f"pcie:{self._function.address}"
        return Bar(self._device, region.offset, name=name, still_there=lock.check, held=held)

    def reset(self) -> None:
        """Reset the board, and have it answer to memory accesses again; nothing is left of what it had."""
        self._ask(self._device, Op.DEVICE_RESET, 0, "bind it to vfio-pci again")
        self._config.change(_COMMAND, 2, set_=Command.MEMORY)
        if not self._config.read(_COMMAND, 2) & Command.MEMORY:
            raise TransportError(
                f"{self._function.address} does not answer to memory accesses after its reset; rescan the bus."
            )

    def map_memory(self, address: int, size: int, bus_address: int) -> None:
        """Pin memory of this process and let the board reach it at `bus_address`, until `close`.

        Parameters
        ----------
        address, size, bus_address : int
            Multiples of the page size.

        Raises
        ------
        TransportError
            It is more than this user may pin, or the IOMMU has no such address.
        """
        flags = DmaMap.READ | DmaMap.WRITE
        asked = DmaMap(ctypes.sizeof(DmaMap), flags, address, bus_address, size)
        soft = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
        limit = "unlimited" if soft == resource.RLIM_INFINITY else f"{soft >> 10} KiB"
        self._ask(
            self._container,
            Op.IOMMU_MAP_DMA,
            asked,
            f"let this user lock {size >> 10} KiB of memory, of which the limit is {limit} (ulimit -l, limits.conf), "
            "or leave PUSH out",
        )

    def open_interrupts(self, count: int) -> tuple[int, ...]:
        """Have the board's MSI-X interrupts 0 to `count` - 1 counted by eventfds, which stay open until `close`.

        Raises
        ------
        TransportError
            The board has fewer.
        """
        info = IrqInfo(ctypes.sizeof(IrqInfo), 0, MSIX_IRQ, 0)
        self._ask(self._device, Op.DEVICE_GET_IRQ_INFO, info, "open it again, or leave PUSH out")
        if info.count < count or not info.flags & IrqInfo.EVENTFD:
            raise TransportError(
                f"{self._function.address} has {info.count} MSI-X interrupts and not {count}; "
                "program the board with Cuelight's bitstream."
            )
        descriptors = tuple(os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK) for _ in range(count))
        for descriptor in descriptors:
            self._held.callback(os.close, descriptor)
        remedy = "open it again, or leave PUSH out"
        self._ask(self._device, Op.DEVICE_SET_IRQS, irq_set(MSIX_IRQ, descriptors), remedy)
        self._held.callback(self._close_interrupts)
        return descriptors

    def start_mastering(self) -> None:
        """Let the board write and read memory that is mapped for it, until `close`; see `Mastering`.

        Raises
        ------
        TransportError
            It does not become bus master.
        """
        self._held.callback(Mastering(self._config, f"pcie:{self._function.address}").close)

    def close(self) -> None:
        """Give the board back: it reaches no memory of this process any more. A second call does nothing."""
        self._held.close()

    def _close_interrupts(self) -> None:
        with contextlib.suppress(CuelightError):
            self._ask(self._device, Op.DEVICE_SET_IRQS, irq_set(MSIX_IRQ, ()), "open it again")

    def _find_group(self, devices: Path) -> int:
        number = self._function.iommu_group
        if number is None or (devices / f"noiommu-{number}").exists():
            raise TransportError(
                f"{self._function.address} stands behind no IOMMU; switch it on in the firmware and on the kernel's "
                "command line (intel_iommu=on), or unbind the board from vfio-pci to use it without PUSH."
            )
        return number

    def _open(self, path: Path, remedy: str) -> int:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            if error.errno == errno.EBUSY:
                raise DeviceBusy(f"{path} is in use by another program; end that, or use another device.") from error
            if error.errno in (errno.EACCES, errno.EPERM):
                remedy = f"as root, chown {os.geteuid()} {path}"
            raise TransportError(f"{path} can't be opened ({error.strerror}); {remedy}.") from error
        self._held.callback(os.close, descriptor)
        return descriptor

    def _check_container(self) -> None:
        remedy = "use a kernel whose VFIO has an IOMMU of type 1 v2"
        version = self._ask(self._container, Op.GET_API_VERSION, 0, remedy)
        if version != API_VERSION or not self._ask(self._container, Op.CHECK_EXTENSION, TYPE1V2_IOMMU, remedy):
            raise TransportError(f"VFIO here is of version {version} or lacks the IOMMU of type 1 v2; {remedy}.")

    def _join(self, group: int) -> None:
        status = GroupStatus(ctypes.sizeof(GroupStatus), 0)
        self._ask(group, Op.GROUP_GET_STATUS, status, "bind the board to vfio-pci again")
        if not status.flags & GroupStatus.VIABLE:
            mates = ", ".join(
                f"{address} ({driver})"
                for address, driver in self._function.group_mates()
                if driver not in (None, "vfio-pci", "pcieport")
            )
            raise TransportError(
                f"The IOMMU isolates {self._function.address} only together with {mates or 'others'}; "
                "bind those to vfio-pci or to no driver, or put the board into another slot."
            )
        container = ctypes.c_int32(self._container)
        self._ask(group, Op.GROUP_SET_CONTAINER, container, "open it again")
        self._ask(
            self._container,
            Op.SET_IOMMU,
            TYPE1V2_IOMMU,
            "switch interrupt remapping on in the firmware, or read dmesg for the IOMMU's reason",
        )

    def _check_device(self) -> None:
        info = DeviceInfo(ctypes.sizeof(DeviceInfo))
        self._ask(self._device, Op.DEVICE_GET_INFO, info, "bind it to vfio-pci again")
        if not info.flags & DeviceInfo.PCI or not info.flags & DeviceInfo.RESET:
            raise TransportError(
                f"{self._function.address} can't be reset by VFIO, so what another program left in it would stay; "
                "program the board with Cuelight's bitstream and rescan the bus."
            )

    def _region(self, index: int) -> RegionInfo:
        info = RegionInfo(ctypes.sizeof(RegionInfo), 0, index)
        self._ask(self._device, Op.DEVICE_GET_REGION_INFO, info, "rescan the bus")
        return info

    def _ask(
        self,
        descriptor: int,
        op: Op,
        argument: Structure | ctypes.c_int32 | ctypes.Array[ctypes.c_char] | int,
        remedy: str,
    ) -> int:
        try:
            return self._ioctl(descriptor, op, argument)
        except OSError as error:
            raise TransportError(
                f"VFIO refuses {op.name} for {self._function.address} ({error.strerror}); {remedy}."
            ) from error
