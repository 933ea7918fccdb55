"""A kernel with VFIO, as far as the host's code asks it: what the ioctls do to groups, memory and interrupts.

Device files are plain files, and so is the board: its registers are at the start, its configuration space behind them.
"""

from __future__ import annotations

import ctypes
import errno
import os
from ctypes import Structure
from pathlib import Path
from typing import Any

from cuelight.transports.bar import BAR_SIZE
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
)

from .board import BDF, write_registers

__all__ = ["VfioKernel"]

_COMMAND = 0x04


class VfioKernel:
    """Answers `ioctl`.

    Parameters
    ----------
    folder : Path
        Where its device files are made.
    group : int
        The board's IOMMU group.

    Attributes
    ----------
    refuse : dict
        Error numbers by the operation that is to fail with them.
    mapped : dict
        (address, size) by the bus address that memory was mapped at.
    eventfds : tuple of int
        Where interrupts 0, 1, … go.
    order : list of Op
        What was asked.
    """

    def __init__(self, folder: Path, group: int = 12) -> None:
        self.devices = folder
        folder.mkdir()
        (folder / "vfio").touch()
        (folder / str(group)).touch()
        self.board = folder / "board"
        write_registers(self.board)
        with self.board.open("ab") as stream:
            stream.write(bytes(0x1000))
        self.refuse: dict[Op, int] = {}
        self.viable = True
        self.flags = DeviceInfo.PCI | DeviceInfo.RESET
        self.bar_size = BAR_SIZE
        self.interrupts = 32
        self.mapped: dict[int, tuple[int, int]] = {}
        self.eventfds: tuple[int, ...] = ()
        self.order: list[Op] = []
        self.resets = 0
        self._container: int | None = None
        self._joined = False
        self._device: int | None = None

    def ioctl(self, descriptor: int, op: int, argument: Any = 0) -> int:
        asked = Op(op)
        self.order.append(asked)
        if asked in self.refuse:
            raise OSError(self.refuse[asked], os.strerror(self.refuse[asked]))
        if isinstance(argument, Structure) and argument.argsz < ctypes.sizeof(argument):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        answer: int = getattr(self, f"_{asked.name.lower()}")(descriptor, argument)
        return answer

    def _get_api_version(self, container: int, _: int) -> int:
        self._container = container
        return API_VERSION

    def _check_extension(self, _: int, extension: int) -> int:
        return int(extension == TYPE1V2_IOMMU)

    def _group_get_status(self, _: int, status: GroupStatus) -> int:
        status.flags = GroupStatus.VIABLE if self.viable else 0
        return 0

    def _group_set_container(self, _: int, container: ctypes.c_int32) -> int:
        assert container.value == self._container
        self._joined = True
        return 0

    def _set_iommu(self, container: int, kind: int) -> int:
        # There is no IOMMU to set before a group has joined.
        assert self._joined
        assert (container, kind) == (self._container, TYPE1V2_IOMMU)
        return 0

    def _group_get_device_fd(self, _: int, name: ctypes.Array[ctypes.c_char]) -> int:
        assert name.value == BDF.encode()
        assert Op.SET_IOMMU in self.order
        self._device = os.open(self.board, os.O_RDWR)
        return self._device

    def _device_get_info(self, device: int, info: DeviceInfo) -> int:
        assert device == self._device
        info.flags = self.flags
        return 0

    def _device_get_region_info(self, _: int, info: RegionInfo) -> int:
        if info.index == BAR0_REGION:
            info.flags, info.offset, info.size = RegionInfo.MMAP, 0, self.bar_size
        elif info.index == CONFIG_REGION:
            info.flags, info.offset, info.size = 0, BAR_SIZE, 0x1000
        return 0

    def _device_get_irq_info(self, _: int, info: IrqInfo) -> int:
        assert info.index == MSIX_IRQ
        info.flags, info.count = IrqInfo.EVENTFD, self.interrupts
        return 0

    def _device_set_irqs(self, _: int, asked: Any) -> int:
        words = memoryview(bytes(asked)).cast("I")
        size, flags, index, start, count = words[:5]
        assert (size, index, start) == (20 + 4 * count, MSIX_IRQ, 0)
        assert flags == 1 << 5 | (1 << 2 if count else 1 << 0)
        self.eventfds = tuple(words[5 : 5 + count])
        return 0

    def _device_reset(self, device: int, _: int) -> int:
        self.resets += 1
        write_registers(self.board, nonce=100 + self.resets)
        return 0

    def _iommu_map_dma(self, _: int, asked: DmaMap) -> int:
        assert asked.flags == DmaMap.READ | DmaMap.WRITE
        if (asked.vaddr | asked.iova | asked.size) % 4096 or not asked.size:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        if any(at < asked.iova + asked.size and asked.iova < at + size for at, (_, size) in self.mapped.items()):
            raise OSError(errno.EEXIST, os.strerror(errno.EEXIST))
        self.mapped[asked.iova] = (asked.vaddr, asked.size)
        return 0
