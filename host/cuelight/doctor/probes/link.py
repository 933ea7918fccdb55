"""Speed and width of the links above a board while its registers are read without a pause."""

from __future__ import annotations

import mmap
import os
import re
import time
from pathlib import Path

from cuelight.pci.config import Command, ConfigSpace
from cuelight.regmap import IDENTITY, Identity

__all__ = ["DEVICES", "SAMPLES", "links_above", "read_links", "sample"]

DEVICES = Path("/sys/bus/pci/devices")
SAMPLES = 25
READ_S = 0.02


def sample(address: str) -> str | None:
    """Sample the links between the board at a PCI address and the root.

    Reads of registers have no effect. Nothing is read of a device that does not decode memory, is not in D0, or whose
    registers this user may not read.

    Returns
    -------
    str or None
        `SAMPLES` times a line for each link: PCI address of its lower end, GT/s, lanes.
    """
    folder = DEVICES / address
    try:
        config = ConfigSpace((folder / "config").read_bytes())
        bar = config.memory_bar(0)
        if bar is None or not bar.address or not config.command & Command.MEMORY:
            return None
        if (folder / "power_state").read_text().strip() != "D0":
            return None
        file = os.open(folder / "resource0", os.O_RDONLY)
        try:
            registers = mmap.mmap(file, mmap.PAGESIZE, mmap.MAP_SHARED, mmap.PROT_READ, offset=IDENTITY)
        finally:
            os.close(file)
    except (OSError, ValueError):
        return None
    with registers, memoryview(registers) as window, window.cast("I") as words:
        return "".join(_sample(links_above(address), words) for _ in range(SAMPLES))


def links_above(address: str) -> list[str]:
    """Find the lower ends of the links between a function and the root, by PCI address."""
    path = re.findall(r"(?<=/)[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", str((DEVICES / address).resolve()))
    return path[1::2] or path


def read_links(addresses: list[str]) -> str:
    """Read GT/s and lanes of the links above functions, a line for each that has one."""
    lines = []
    for address in addresses:
        try:
            speed, width = ((DEVICES / address / f"current_link_{what}").read_text() for what in ("speed", "width"))
        except OSError:
            continue
        lines.append(f"{address} {speed.split()[0]} {width.strip()}\n")
    return "".join(lines)


def _sample(addresses: list[str], words: memoryview) -> str:
    end = time.monotonic() + READ_S
    while time.monotonic() < end:
        words[Identity.MAGIC // 4]
    return read_links(addresses)
