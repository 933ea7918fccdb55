"""VFIO as the kernel's header linux/vfio.h has it: what is asked, by number and structure."""

from __future__ import annotations

import enum
from ctypes import Structure, c_int32, c_uint32, c_uint64
from typing import ClassVar

__all__ = [
    "API_VERSION",
    "BAR0_REGION",
    "CONFIG_REGION",
    "MSIX_IRQ",
    "TYPE1V2_IOMMU",
    "DeviceInfo",
    "DmaMap",
    "GroupStatus",
    "IrqInfo",
    "Op",
    "RegionInfo",
    "irq_set",
]

API_VERSION = 0
TYPE1V2_IOMMU = 3
BAR0_REGION, CONFIG_REGION = 0, 7
MSIX_IRQ = 2

_BASE = ord(";") << 8 | 100


class Op(enum.IntEnum):
    """Numbers of ioctl: `_IO(';', 100 + n)`."""

    GET_API_VERSION = _BASE + 0
    CHECK_EXTENSION = _BASE + 1
    SET_IOMMU = _BASE + 2
    GROUP_GET_STATUS = _BASE + 3
    GROUP_SET_CONTAINER = _BASE + 4
    GROUP_GET_DEVICE_FD = _BASE + 6
    DEVICE_GET_INFO = _BASE + 7
    DEVICE_GET_REGION_INFO = _BASE + 8
    DEVICE_GET_IRQ_INFO = _BASE + 9
    DEVICE_SET_IRQS = _BASE + 10
    DEVICE_RESET = _BASE + 11
    IOMMU_MAP_DMA = _BASE + 13


class GroupStatus(Structure):
    """struct vfio_group_status."""

    VIABLE: ClassVar[int] = 1 << 0

    argsz: int
    flags: int
    _fields_ = (("argsz", c_uint32), ("flags", c_uint32))


class DeviceInfo(Structure):
    """struct vfio_device_info, as far as it is asked for."""

    RESET: ClassVar[int] = 1 << 0
    PCI: ClassVar[int] = 1 << 1

    argsz: int
    flags: int
    num_regions: int
    num_irqs: int
    _fields_ = (("argsz", c_uint32), ("flags", c_uint32), ("num_regions", c_uint32), ("num_irqs", c_uint32))


class RegionInfo(Structure):
    """struct vfio_region_info."""

    MMAP: ClassVar[int] = 1 << 2

    argsz: int
    flags: int
    index: int
    cap_offset: int
    size: int
    offset: int
    _fields_ = (
        ("argsz", c_uint32),
        ("flags", c_uint32),
        ("index", c_uint32),
        ("cap_offset", c_uint32),
        ("size", c_uint64),
        ("offset", c_uint64),
    )


class IrqInfo(Structure):
    """struct vfio_irq_info."""

    EVENTFD: ClassVar[int] = 1 << 0

    argsz: int
    flags: int
    index: int
    count: int
    _fields_ = (("argsz", c_uint32), ("flags", c_uint32), ("index", c_uint32), ("count", c_uint32))


class DmaMap(Structure):
    """struct vfio_iommu_type1_dma_map."""

    READ: ClassVar[int] = 1 << 0
    WRITE: ClassVar[int] = 1 << 1

    argsz: int
    flags: int
    vaddr: int
    iova: int
    size: int
    _fields_ = (
        ("argsz", c_uint32),
        ("flags", c_uint32),
        ("vaddr", c_uint64),
        ("iova", c_uint64),
        ("size", c_uint64),
    )


_DATA_NONE, _DATA_EVENTFD, _ACTION_TRIGGER = 1 << 0, 1 << 2, 1 << 5


def irq_set(index: int, descriptors: tuple[int, ...]) -> Structure:
    """Make a struct vfio_irq_set that has interrupts 0, 1, … written to these eventfds; without any: to none."""

    class IrqSet(Structure):
        """With its data."""

        _fields_ = (
            ("argsz", c_uint32),
            ("flags", c_uint32),
            ("index", c_uint32),
            ("start", c_uint32),
            ("count", c_uint32),
            ("data", c_int32 * len(descriptors)),
        )

    asked = IrqSet(0, (_DATA_EVENTFD if descriptors else _DATA_NONE) | _ACTION_TRIGGER, index, 0, len(descriptors))
    asked.argsz = IrqSet.data.offset + 4 * len(descriptors)
    for at, descriptor in enumerate(descriptors):
        asked.data[at] = descriptor
    return asked
