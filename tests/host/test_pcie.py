"""Boards are found, opened, lost and refused as sysfs says. Trees of files stand for it, so registers do nothing."""

from __future__ import annotations

import errno
import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cuelight import Device, regmap
from cuelight.errors import (
    CuelightError,
    DeviceBusy,
    DeviceClosed,
    DeviceLost,
    InvalidArgument,
    TransportError,
    UnknownDevice,
)
from cuelight.lanes.port import LanePort
from cuelight.pci.function import find_boards
from cuelight.regmap import COUNTERS, IDENTITY, PushCommand
from cuelight.transports.bar import BAR_SIZE
from cuelight.transports.lock import DeviceLock
from cuelight.transports.pcie import Board
from cuelight.transports.pcie_vfio import VfioDevice
from cuelight.transports.polled import PolledTransport
from cuelight.transports.push import PushTimes
from cuelight.transports.vfio import Op

from .board import BDF, BUS_MASTER, MEMORY, make_board, resource, write_registers
from .checks import until
from .vfio_kernel import VfioKernel

WAIT_S = 30.0
URI = f"pcie:{BDF}"
COMMAND = BAR_SIZE + 4
"""Of the configuration space behind BAR0 in a VFIO device's file."""
# The kernel lets nobody write it, not even root.
UNWRITABLE = Path("/proc/sys/kernel/osrelease")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_board(tmp_path)
    return tmp_path


def folder(root: Path) -> Path:
    return resource(root).parent


def open_board(root: Path, uri: str = URI) -> PolledTransport:
    return Board(uri, context=64, blocks=4, root=root).open()


def config_word(root: Path, offset: int) -> int:
    return int.from_bytes((folder(root) / "config").read_bytes()[offset : offset + 2], "little")


def test_boards_are_found_by_their_ids(tmp_path: Path) -> None:
    assert find_boards(tmp_path) == ()
    make_board(tmp_path, "0000:03:00.0", device=0x1234)
    make_board(tmp_path, "0000:65:00.0")
    make_board(tmp_path, "0000:04:00.0")
    assert find_boards(tmp_path) == ("0000:04:00.0", "0000:65:00.0")


@pytest.mark.parametrize("uri", [URI, URI.upper().replace("PCIE", "pcie"), "pcie"])
def test_board_is_reset_and_opened_without_mastering_the_bus(root: Path, uri: str) -> None:
    transport = open_board(root, uri)
    assert (folder(root) / "enable").read_text() == "1\n"
    assert (folder(root) / "reset").read_text() == "1"
    assert not config_word(root, 4) & BUS_MASTER
    assert (transport.segment.shape.lanes, transport.segment.shape.slots) == (2, 64)
    assert transport.read64(IDENTITY + regmap.Identity.BOOT_NONCE) == 7
    transport.write32(regmap.CONTROL + regmap.Control.STAGE_COUNT, 5)
    at = regmap.CONTROL + regmap.Control.STAGE_COUNT
    assert resource(root).read_bytes()[at : at + 4] == bytes([5, 0, 0, 0])
    transport.close()
    transport.close()
    assert (folder(root) / "enable").read_text() == "0\n"
    with pytest.raises(DeviceClosed, match="closed; open it again"):
        transport.read32(0)
    assert not transport.segment.path.exists()


def test_board_whose_clock_stands_still_does_not_move(root: Path) -> None:
    """Memory answers every read, as a device may whose scheduler is stuck."""
    transport = open_board(root)
    assert not transport.moves(0.05)
    transport.close()


def test_board_is_opened_by_one_program_at_a_time(root: Path) -> None:
    transport = open_board(root)
    with pytest.raises(DeviceBusy, match=rf"{BDF} is in use by this program; end that"):
        open_board(root)
    transport.close()
    open_board(root).close()


def test_lock_names_the_process_that_holds_it(root: Path) -> None:
    config = folder(root) / "config"
    hold = f"import fcntl; file = open({str(config)!r}); fcntl.flock(file, fcntl.LOCK_EX); print('held'); input()"
    with subprocess.Popen(
        [sys.executable, "-uc", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout
        assert other.stdout.readline() == "held\n"
        with pytest.raises(DeviceBusy, match=rf"in use by process {other.pid};"):
            open_board(root)
        other.communicate("\n", WAIT_S)
    open_board(root).close()


def spoil_config(offset: int, value: bytes) -> Callable[[Path], None]:
    def spoil(root: Path) -> None:
        with (folder(root) / "config").open("r+b") as stream:
            stream.seek(offset)
            stream.write(value)

    return spoil


def spoil_registers(offset: int, value: bytes) -> Callable[[Path], None]:
    def spoil(root: Path) -> None:
        with resource(root).open("r+b") as stream:
            stream.seek(offset)
            stream.write(value)

    return spoil


def bind(driver: str) -> Callable[[Path], None]:
    def spoil(root: Path) -> None:
        (root / driver).mkdir()
        (folder(root) / "driver").symlink_to(root / driver)

    return spoil


def resize(size: int) -> Callable[[Path], None]:
    def spoil(root: Path) -> None:
        shutil.rmtree(folder(root))
        make_board(root, size=size)

    return spoil


def forbid(attribute: str) -> Callable[[Path], None]:
    def spoil(root: Path) -> None:
        (folder(root) / attribute).unlink()
        (folder(root) / attribute).symlink_to(UNWRITABLE)

    return spoil


@pytest.mark.parametrize(
    ("spoil", "kind", "said"),
    [
        (bind("nvidia"), TransportError, r"bound to the driver nvidia; as root, echo .* > .*/nvidia/unbind"),
        (bind("vfio-pci"), TransportError, r"stands behind no IOMMU; switch it on"),
        (resize(0), TransportError, r"has no BAR0, so it was programmed after the bus was scanned; .*rescan"),
        (resize(0x1000), TransportError, r"BAR0 .* has 4096 bytes instead of 65536, so it is another design"),
        (forbid("enable"), TransportError, r"enable may not be used by this user .*; run as root"),
        (forbid("reset"), TransportError, r"reset may not be used by this user"),
        (forbid("resource0"), TransportError, r"resource0 may not be used by this user"),
        (lambda root: (folder(root) / "reset").unlink(), TransportError, r"can't be reset alone"),
        (lambda root: resource(root).unlink(), TransportError, r"resource0 can't be used .*; .*rescan"),
        (spoil_config(0, b"\xff" * 64), TransportError, r"reads all ones, so its link is down"),
        (spoil_config(4, b"\0\0"), TransportError, r"does not answer to memory accesses.*setpci"),
        (
            spoil_config(0x10, b"\0\0\0\0"),
            TransportError,
            r"BAR0 .* has no address any more, so it was programmed anew",
        ),
        (spoil_registers(0, b"\0" * 0x10000), TransportError, r"BAR0 .* reads zero, so the board was programmed"),
        (spoil_registers(0, b"\xff" * 0x10000), DeviceLost, r"reads all ones, so its link is down"),
        (spoil_registers(IDENTITY, b"MOON"), TransportError, r"has the magic 0x4e4f4f4d, so it is no Cuelight"),
        (spoil_registers(IDENTITY + 6, b"\2"), TransportError, r"speaks version 2 and this driver 1"),
        (spoil_registers(COUNTERS, b"\1"), TransportError, r"has requests of another program although it was reset"),
        (lambda root: (folder(root) / "vendor").write_text("0x8086\n"), UnknownDevice, r"is 8086:c0e1 and no Cuelight"),
        (lambda root: (folder(root) / "vendor").write_text("none\n"), TransportError, r"holds 'none\\n' and no number"),
    ],
)
def test_board_that_can_not_be_used_is_refused_with_the_reason(
    root: Path, spoil: Callable[[Path], object], kind: type[CuelightError], said: str
) -> None:
    spoil(root)
    with pytest.raises(kind, match=said) as refusal:
        open_board(root)
    assert str(refusal.value).count(". ") == 0
    # Whatever it had taken by then was given back.
    DeviceLock(folder(root) / "config", URI).close()
    if (folder(root) / "enable").stat().st_size == 2:
        assert (folder(root) / "enable").read_text() == "0\n"


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("pcie:0000:66:00.0", r"no PCI function 0000:66:00.0; boards here are 0000:65:00.0"),
        ("pcie:../../65:00.0", r"no address of a PCI function; one looks like pcie:0000:65:00.0"),
        ("pcie:65:00.0", r"no address of a PCI function"),
    ],
)
def test_board_that_is_not_there_is_unknown(root: Path, uri: str, said: str) -> None:
    with pytest.raises(UnknownDevice, match=said):
        open_board(root, uri)


def test_only_board_is_meant_where_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownDevice, match="no Cuelight board; use 'twin'"):
        open_board(tmp_path, "pcie")
    for bus in (3, 4):
        make_board(tmp_path, f"0000:0{bus}:00.0")
    with pytest.raises(UnknownDevice, match=r"Say which: pcie:0000:03:00\.0, pcie:0000:04:00\.0"):
        open_board(tmp_path, "pcie")


def test_push_is_refused_where_only_registers_can_be_reached(root: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"needs an IOMMU .*; bind the board to vfio-pci"):
        Board(URI, push=True, context=64, blocks=4, root=root).open()
    DeviceLock(folder(root) / "config", URI).close()
    with pytest.raises(InvalidArgument, match="The twin masters no bus; leave PUSH out"):
        Device.open("twin", push=True)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> VfioKernel:
    kernel = VfioKernel(tmp_path / "dev")
    monkeypatch.setattr(
        "cuelight.transports.pcie.VfioDevice",
        functools.partial(VfioDevice, devices=kernel.devices, ioctl=kernel.ioctl),
    )
    return kernel


@pytest.fixture
def isolated(root: Path) -> Path:
    """The board is bound to vfio-pci, and alone behind its IOMMU."""
    bind("vfio-pci")(root)
    group = root / "kernel" / "iommu_groups" / "12"
    (group / "devices").mkdir(parents=True)
    (group / "devices" / BDF).symlink_to(folder(root))
    (folder(root) / "iommu_group").symlink_to(group)
    return root


def board_word(kernel: VfioKernel, offset: int, width: int = 4) -> int:
    return int.from_bytes(kernel.board.read_bytes()[offset : offset + width], "little")


def test_board_behind_an_iommu_reaches_the_ports_of_its_lanes_and_nothing_else(
    isolated: Path, kernel: VfioKernel
) -> None:
    transport = open_board(isolated)
    shape = transport.segment.shape
    ports = transport.segment.port_memory(0).ctypes.data
    assert kernel.mapped == {1 << 32: (ports, shape.lanes * shape.port_stride)}
    assert len(kernel.eventfds) == 4
    assert board_word(kernel, COMMAND, 2) & BUS_MASTER
    for lane in range(shape.lanes):
        push = regmap.PUSH + regmap.PUSH_STRIDE * lane
        port = (1 << 32) + lane * shape.port_stride
        assert board_word(kernel, push + regmap.Push.PORT_ADDRESS, 8) == port
        assert board_word(kernel, push + regmap.Push.HEARTBEAT_ADDRESS, 8) == port + regmap.LanePort.HEARTBEAT
        # Nobody is there to be pushed to.
        assert board_word(kernel, push + regmap.Push.COMMAND) == 0
        overdue = board_word(kernel, push + regmap.Push.OVERDUE)
        assert overdue == round(1e6 * PushTimes().overdue_s)
    transport.close()
    assert not board_word(kernel, COMMAND, 2) & BUS_MASTER
    assert not kernel.eventfds


def test_lane_is_probed_once_it_shows_that_it_lives(isolated: Path, kernel: VfioKernel) -> None:
    transport = open_board(isolated)
    push = regmap.PUSH + regmap.PUSH_STRIDE
    with LanePort(transport.segment.path, 1) as port:
        until(lambda: port.wait(0.01) is None and board_word(kernel, push + regmap.Push.COMMAND) == PushCommand.PROBE)
    assert board_word(kernel, push + regmap.Push.GENERATION) == 1
    assert board_word(kernel, regmap.PUSH + regmap.Push.COMMAND) == 0
    transport.close()


def test_interrupt_wakes_the_host(isolated: Path, kernel: VfioKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """For each vector that announces something to the host; without one, nobody looks at counters for a while."""
    monkeypatch.setattr("cuelight.transports.polled._CHECK_S", 1e6)
    transport = open_board(isolated)
    for vector, counter in enumerate((regmap.Counters.REJECTED, regmap.Counters.RETIRED)):
        bell = transport.segment.host_bell()
        with kernel.board.open("r+b") as stream:
            stream.seek(COUNTERS + counter)
            stream.write(b"\1")
        os.eventfd_write(kernel.eventfds[vector], 1)
        assert transport.wait(bell, WAIT_S) != bell
    transport.close()


@pytest.mark.parametrize("op", [Op.IOMMU_MAP_DMA, Op.DEVICE_SET_IRQS, Op.DEVICE_GET_IRQ_INFO])
def test_board_that_may_not_push_is_refused_and_can_be_polled(isolated: Path, kernel: VfioKernel, op: Op) -> None:
    kernel.refuse[op] = errno.ENOMEM
    with pytest.raises(TransportError, match=f"VFIO refuses {op.name}"):
        open_board(isolated)
    kernel.order.clear()
    transport = Board(URI, push=False, context=64, blocks=4, root=isolated).open()
    assert Op.IOMMU_MAP_DMA not in kernel.order
    assert not board_word(kernel, COMMAND, 2) & BUS_MASTER
    transport.close()


@pytest.mark.parametrize("times", [{"stall_s": 0.0}, {"overdue_s": 5000.0}, {"beats": 256}, {"beats": 0}])
def test_times_that_no_register_holds_are_refused(times: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        PushTimes(**times).registers()


def remove(root: Path) -> None:
    shutil.rmtree(folder(root))


def remove_and_rescan(root: Path) -> None:
    remove(root)
    make_board(root)


def reset(root: Path) -> None:
    write_registers(resource(root), nonce=8)


def unmap(root: Path) -> None:
    os.truncate(resource(root), 0)


@pytest.mark.parametrize(
    ("lose", "said"),
    [
        (remove, "was removed since it was opened"),
        (remove_and_rescan, "was removed since it was opened"),
        (reset, "was reset"),
        (unmap, "was removed, or its memory decode was switched off"),
    ],
)
def test_handle_of_a_board_that_went_away_is_refused(root: Path, lose: Callable[[Path], None], said: str) -> None:
    board = Board(URI, context=64, blocks=4, root=root)
    transport = board.open()
    bell = transport.segment.host_bell()
    lose(root)
    assert transport.wait(bell, WAIT_S) != bell
    for access in (lambda: transport.read32(IDENTITY), lambda: transport.write32(0x10, 1), transport.drain_trace):
        with pytest.raises(DeviceLost, match=said):
            access()
    # Once it is back it is opened again, although nobody has closed the old one.
    shutil.rmtree(folder(root), ignore_errors=True)
    make_board(root)
    again = board.open()
    assert again.read32(IDENTITY + regmap.Identity.MAGIC) == regmap.Identity.MAGIC_RESET
    again.close()
    transport.close()


def test_enable_that_the_kernel_refuses_is_told_with_its_reason(root: Path) -> None:
    (folder(root) / "enable").unlink()
    (folder(root) / "enable").symlink_to("/dev/full")
    with pytest.raises(TransportError, match=rf"enable can't be used \({os.strerror(errno.ENOSPC)}\)"):
        open_board(root)


def test_command_register_is_left_as_it_was(root: Path) -> None:
    transport = open_board(root)
    transport.close()
    assert config_word(root, 4) == MEMORY


def test_program_that_closes_nothing_ends_in_order(root: Path) -> None:
    program = f"from tests.host.test_pcie import *; kept = open_board(Path({str(root)!r})); print(kept.segment.path)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=10 * WAIT_S, env=environment
    )
    assert (result.returncode, result.stderr) == (0, "")
    open_board(root).close()
