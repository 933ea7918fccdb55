"""What Linux shows of a board, made of files: enough to find, open and lose it. Its registers do nothing."""

from __future__ import annotations

import os
import struct
from pathlib import Path

from cuelight import regmap
from cuelight.pci.ids import DEVICE_ID, VENDOR_ID
from cuelight.regmap import IDENTITY, IdentityCapabilities, IdentityVersion
from cuelight.transports.bar import BAR_SIZE

__all__ = ["BDF", "make_board", "resource", "write_registers"]

BDF = "0000:65:00.0"
MEMORY, BUS_MASTER = 2, 4


def write_registers(path: Path, *, nonce: int = 7, magic: int = regmap.Identity.MAGIC_RESET, major: int = 1) -> None:
    """Let BAR0 read as that of a device fresh from reset, in one go."""
    registers = bytearray(BAR_SIZE)

    def put(offset: int, value: int) -> None:
        struct.pack_into("<Q", registers, offset, value)

    version = IdentityVersion(minor=0, major=major).pack()
    put(IDENTITY + regmap.Identity.MAGIC, magic | version << 32)
    put(IDENTITY + regmap.Identity.BOOT_NONCE, nonce)
    sizes = IdentityCapabilities(slots=64, seats=16, stages=128, lanes=2, tiers=4, pages=8).pack()
    put(IDENTITY + regmap.Identity.CAPABILITIES, sizes)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    os.pwrite(descriptor, registers, 0)
    os.close(descriptor)


def resource(root: Path, bdf: str = BDF) -> Path:
    """BAR0 of a board."""
    return root / "bus" / "pci" / "devices" / bdf / "resource0"


def make_board(
    root: Path,
    bdf: str = BDF,
    *,
    vendor: int = VENDOR_ID,
    device: int = DEVICE_ID,
    command: int = MEMORY,
    size: int = BAR_SIZE,
) -> Path:
    """Make the folder of a board below `root`, which stands for /sys; return it."""
    folder = root / "bus" / "pci" / "devices" / bdf
    folder.mkdir(parents=True)
    (folder / "vendor").write_text(f"{vendor:#06x}\n")
    (folder / "device").write_text(f"{device:#06x}\n")
    (folder / "enable").write_text("0\n")
    (folder / "reset").write_text("")
    end = 0xE000_0000 + size - 1 if size else 0
    (folder / "resource").write_text(f"{0xE000_0000 if size else 0:#018x} {end:#018x} 0x0000000000040200\n" * 6)
    header = bytearray(0x1000)
    struct.pack_into("<HHHH", header, 0, vendor, device, command, 0x10)
    struct.pack_into("<I", header, 0x10, 0xE000_0000)
    (folder / "config").write_bytes(header)
    if size:
        write_registers(folder / "resource0")
    return folder
