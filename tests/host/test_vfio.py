"""Boards behind an IOMMU: structures as the kernel's header has them, and each refusal told with its remedy."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from cuelight import regmap
from cuelight.errors import CuelightError, DeviceBusy, DeviceClosed, TransportError
from cuelight.pci.config import Command
from cuelight.pci.errors import Uncorrectable
from cuelight.pci.function import Function
from cuelight.regmap import IDENTITY
from cuelight.transports import vfio
from cuelight.transports.bar import BAR_SIZE, Bar
from cuelight.transports.lock import DeviceLock
from cuelight.transports.pcie_config import ConfigFile, Mastering
from cuelight.transports.pcie_vfio import VfioDevice
from cuelight.transports.vfio import Op

from .board import BDF, make_board
from .vfio_kernel import VfioKernel

HEADER = Path("/usr/include/linux/vfio.h")
STRUCTURES: dict[str, type[ctypes.Structure]] = {
    "vfio_group_status": vfio.GroupStatus,
    "vfio_device_info": vfio.DeviceInfo,
    "vfio_region_info": vfio.RegionInfo,
    "vfio_irq_info": vfio.IrqInfo,
    "vfio_iommu_type1_dma_map": vfio.DmaMap,
    "vfio_irq_set": type(vfio.irq_set(vfio.MSIX_IRQ, (0,))),
}
NUMBERS = {f"VFIO_{op.name}": int(op) for op in Op} | {
    "VFIO_API_VERSION": vfio.API_VERSION,
    "VFIO_TYPE1v2_IOMMU": vfio.TYPE1V2_IOMMU,
    "VFIO_PCI_BAR0_REGION_INDEX": vfio.BAR0_REGION,
    "VFIO_PCI_CONFIG_REGION_INDEX": vfio.CONFIG_REGION,
    "VFIO_PCI_MSIX_IRQ_INDEX": vfio.MSIX_IRQ,
    "VFIO_GROUP_FLAGS_VIABLE": vfio.GroupStatus.VIABLE,
    "VFIO_DEVICE_FLAGS_RESET": vfio.DeviceInfo.RESET,
    "VFIO_DEVICE_FLAGS_PCI": vfio.DeviceInfo.PCI,
    "VFIO_REGION_INFO_FLAG_MMAP": vfio.RegionInfo.MMAP,
    "VFIO_IRQ_INFO_EVENTFD": vfio.IrqInfo.EVENTFD,
    "VFIO_DMA_MAP_FLAG_READ": vfio.DmaMap.READ,
    "VFIO_DMA_MAP_FLAG_WRITE": vfio.DmaMap.WRITE,
}


@pytest.mark.skipif(not HEADER.exists() or shutil.which("gcc") is None, reason="needs the kernel's headers and gcc")
def test_structures_and_numbers_are_those_of_the_kernels_header(tmp_path: Path) -> None:
    expressions = {name: str(value) for name, value in NUMBERS.items()}
    for name, structure in STRUCTURES.items():
        for field in structure._fields_:
            place = getattr(structure, field[0])
            expressions[f"offsetof(struct {name}, {field[0]})"] = str(place.offset)
            if field[0] != "data":
                expressions[f"sizeof(((struct {name} *)0)->{field[0]})"] = str(place.size)
    checks = "".join(f'_Static_assert(({name}) == {value}, "{name}");\n' for name, value in expressions.items())
    # What the kernel may have added since is behind what is asked for.
    for name, structure in STRUCTURES.items():
        size = ctypes.sizeof(structure) if name != "vfio_irq_set" else 20
        checks += f'_Static_assert(sizeof(struct {name}) >= {size}, "{name}");\n'
    source = tmp_path / "check.c"
    source.write_text(f"#include <stddef.h>\n#include <linux/vfio.h>\n{checks}")
    result = subprocess.run(["gcc", "-fsyntax-only", str(source)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    source.write_text(source.read_text().replace(f"== {vfio.API_VERSION}, ", "== 77, ", 1))
    assert subprocess.run(["gcc", "-fsyntax-only", str(source)], capture_output=True).returncode != 0


@pytest.fixture
def kernel(tmp_path: Path) -> VfioKernel:
    return VfioKernel(tmp_path / "dev")


@pytest.fixture
def function(tmp_path: Path) -> Function:
    folder = make_board(tmp_path / "sys")
    group = tmp_path / "sys" / "kernel" / "iommu_groups" / "12"
    (group / "devices").mkdir(parents=True)
    (folder / "iommu_group").symlink_to(group)
    (group / "devices" / BDF).symlink_to(folder)
    return Function(BDF, tmp_path / "sys")


def open_vfio(function: Function, kernel: VfioKernel) -> VfioDevice:
    return VfioDevice(function, devices=kernel.devices, ioctl=kernel.ioctl)


def open_descriptors(kernel: VfioKernel) -> int:
    places = (Path(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd"))
    return sum(str(place.readlink()).startswith(str(kernel.devices)) for place in places if place.is_symlink())


def map_bar(function: Function, device: VfioDevice) -> Bar:
    held = ExitStack()
    lock = DeviceLock(function.folder / "config", BDF)
    held.callback(lock.close)
    return device.map_bar(lock, held)


def test_registers_are_mapped_after_a_reset_with_mastering_off(function: Function, kernel: VfioKernel) -> None:
    device = open_vfio(function, kernel)
    bar = map_bar(function, device)
    assert bar.read64(IDENTITY + regmap.Identity.BOOT_NONCE) == 101
    bar.write64(regmap.PAGE + regmap.Page.SCHED_CMD, 0x0123_4567_89AB_CDEF)
    assert kernel.board.read_bytes()[8:16] == bytes.fromhex("efcdab8967452301")
    command = device.config.read_all().command
    assert command & Command.MEMORY
    assert not command & Command.BUS_MASTER
    bar.close()
    with pytest.raises(DeviceClosed):
        bar.read32(0)
    assert open_descriptors(kernel) == 0


def test_memory_is_reached_where_it_was_mapped_and_not_twice(function: Function, kernel: VfioKernel) -> None:
    device = open_vfio(function, kernel)
    memory = mmap.mmap(-1, 8192)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    device.map_memory(address, 8192, 1 << 32)
    assert kernel.mapped == {1 << 32: (address, 8192)}
    with pytest.raises(TransportError, match="refuses IOMMU_MAP_DMA"):
        device.map_memory(address, 4096, (1 << 32) + 4096)
    device.close()


def test_interrupts_are_counted_until_it_is_closed(function: Function, kernel: VfioKernel) -> None:
    device = open_vfio(function, kernel)
    descriptors = device.open_interrupts(3)
    assert kernel.eventfds == descriptors
    os.eventfd_write(kernel.eventfds[1], 2)
    assert os.eventfd_read(descriptors[1]) == 2
    with pytest.raises(BlockingIOError):
        os.eventfd_read(descriptors[0])
    with pytest.raises(TransportError, match="has 32 MSI-X interrupts and not 33"):
        device.open_interrupts(33)
    device.close()
    assert kernel.eventfds == ()
    device.close()


def refuse(op: Op, number: int) -> Callable[[VfioKernel], None]:
    return lambda kernel: kernel.refuse.update({op: number})


def share_group(kernel: VfioKernel) -> None:
    kernel.viable = False
    devices = kernel.devices.parent / "sys" / "kernel" / "iommu_groups" / "12" / "devices"
    for address, driver in (("0000:66:00.0", "nvidia"), ("0000:66:00.1", "pcieport")):
        folder = make_board(kernel.devices.parent / "sys", address)
        (folder / "driver").symlink_to(folder / driver)
        (devices / address).symlink_to(folder)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda kernel: (kernel.devices / "vfio").unlink(), r"vfio can't be opened .*; modprobe vfio-pci"),
        (lambda kernel: (kernel.devices / "12").unlink(), r"12 can't be opened .*; bind the board to vfio-pci again"),
        (lambda kernel: (kernel.devices / "noiommu-12").touch(), r"stands behind no IOMMU; switch it on"),
        (refuse(Op.GET_API_VERSION, errno.ENOTTY), r"VFIO refuses GET_API_VERSION .*; use a kernel whose VFIO"),
        (share_group, r"only together with 0000:66:00\.0 \(nvidia\); bind those to vfio-pci or to no driver"),
        (refuse(Op.GROUP_SET_CONTAINER, errno.EINVAL), r"VFIO refuses GROUP_SET_CONTAINER"),
        (refuse(Op.SET_IOMMU, errno.EPERM), r"refuses SET_IOMMU .*; switch interrupt remapping on"),
        (refuse(Op.GROUP_GET_DEVICE_FD, errno.EINVAL), r"refuses GROUP_GET_DEVICE_FD .*; bind it to vfio-pci again"),
        (lambda kernel: setattr(kernel, "flags", vfio.DeviceInfo.PCI), r"can't be reset by VFIO"),
        (refuse(Op.DEVICE_RESET, errno.EIO), r"refuses DEVICE_RESET"),
    ],
)
def test_refusal_says_why_and_leaves_nothing_open(
    function: Function, kernel: VfioKernel, spoil: Callable[[VfioKernel], object], said: str
) -> None:
    spoil(kernel)
    with pytest.raises(TransportError, match=said):
        open_vfio(function, kernel)
    assert open_descriptors(kernel) == 0


def test_group_that_another_program_has_is_busy(
    function: Function, kernel: VfioKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_group(path: str | Path, flags: int, *arguments: int) -> int:
        if Path(path).name == "12":
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        return really(path, flags, *arguments)

    really = os.open
    monkeypatch.setattr(os, "open", open_group)
    with pytest.raises(DeviceBusy, match="12 is in use by another program"):
        open_vfio(function, kernel)


def test_device_file_that_is_no_vfio_is_refused(function: Function, kernel: VfioKernel) -> None:
    """The kernel's own answer: a plain file knows no such ioctl."""
    with pytest.raises(TransportError, match=r"refuses GET_API_VERSION .*Inappropriate ioctl"):
        VfioDevice(function, devices=kernel.devices)


@pytest.mark.parametrize(("field", "value"), [("bar_size", 4096), ("bar_size", 0)])
def test_board_without_its_bar_is_refused(function: Function, kernel: VfioKernel, field: str, value: int) -> None:
    setattr(kernel, field, value)
    device = open_vfio(function, kernel)
    with pytest.raises(TransportError, match=rf"has {value} bytes and can't be mapped as {BAR_SIZE}"):
        map_bar(function, device)
    device.close()


def test_limit_of_locked_memory_is_told(function: Function, kernel: VfioKernel) -> None:
    device = open_vfio(function, kernel)
    kernel.refuse[Op.IOMMU_MAP_DMA] = errno.ENOMEM
    with pytest.raises(
        CuelightError, match=r"let this user lock 8 KiB of memory, of which the limit is .* \(ulimit -l"
    ):
        device.map_memory(0x1000, 8192, 1 << 32)
    device.close()


AER, EXPRESS = 0x100, 0x40
MASK = AER + 0x08
TIMEOUT = int(Uncorrectable.COMPLETION_TIMEOUT)


def config_file(tmp_path: Path, *, mask: int = 0x10_0000, base: int = 0) -> tuple[ConfigFile, Path]:
    """A configuration space with the PCI Express and the error reporting capability."""
    space = bytearray(0x1000)
    for offset, width, value in (
        (0x00, 4, 0xC0E1_10EE),
        (0x04, 2, Command.MEMORY),
        (0x06, 2, 0x10),
        (0x34, 1, EXPRESS),
        (EXPRESS, 4, 0x0002_0010),
        (AER, 4, 0x0001_0001),
        (MASK, 4, mask),
    ):
        space[offset : offset + width] = int(value).to_bytes(width, "little")
    path = tmp_path / "config"
    path.write_bytes(bytes(base) + space)
    return ConfigFile(os.open(path, os.O_RDWR), base), path


@pytest.mark.parametrize("base", [0, BAR_SIZE])
def test_completion_timeout_is_masked_while_the_board_masters(tmp_path: Path, base: int) -> None:
    config, path = config_file(tmp_path, base=base)
    before = path.read_bytes()
    mastering = Mastering(config, "pcie:a")
    assert config.read(0x04, 2) == Command.MEMORY | Command.BUS_MASTER
    assert config.read(MASK, 4) == 0x10_0000 | TIMEOUT
    mastering.close()
    assert path.read_bytes() == before


def test_mask_that_was_set_before_stays_set(tmp_path: Path) -> None:
    config, path = config_file(tmp_path, mask=TIMEOUT)
    before = path.read_bytes()
    Mastering(config, "pcie:a").close()
    assert path.read_bytes() == before


def test_error_bits_are_masked_before_mastering_begins_and_freed_after_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, _ = config_file(tmp_path)
    seen = []
    write = config.write

    def watch(offset: int, width: int, value: int) -> None:
        write(offset, width, value)
        seen.append((bool(config.read(0x04, 2) & Command.BUS_MASTER), bool(config.read(MASK, 4) & TIMEOUT)))

    monkeypatch.setattr(config, "write", watch)
    Mastering(config, "pcie:a").close()
    assert seen == [(False, True), (True, True), (False, True), (False, False)]


def test_board_that_does_not_become_master_is_left_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, path = config_file(tmp_path)
    before = path.read_bytes()
    read = config.read

    def stuck(offset: int, width: int) -> int:
        return read(offset, width) & ~(Command.BUS_MASTER if offset == 0x04 else 0)

    monkeypatch.setattr(config, "read", stuck)
    with pytest.raises(TransportError, match="can't be made bus master"):
        Mastering(config, "pcie:a")
    assert path.read_bytes() == before


@pytest.mark.parametrize("number", [errno.ENODEV, errno.EIO])
def test_mastering_ends_where_the_board_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    config, _ = config_file(tmp_path)
    mastering = Mastering(config, "pcie:a")

    def gone(*_: int) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(config, "read", gone)
    mastering.close()
