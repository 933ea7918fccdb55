"""Speed and width of a board's link while its registers are read without a pause."""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path

from cuelight.pci.config import Command, ConfigSpace
from cuelight.regmap import IDENTITY, Identity

__all__ = ["SAMPLES", "read_link", "sample"]

DEVICES = Path("/sys/bus/pci/devices")
SAMPLES = 25
READ_S = 0.02


def sample(address: str) -> str | None:
    """Sample the link of the board at a PCI address.

    Reads of registers have no effect. Nothing is read of a device that does not decode memory, is not in D0, or whose
    registers this user may not read.

    Returns
    -------
    str or None
        A line for each of `SAMPLES` samples: GT/s, then lanes.
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
        return "".join(_sample(folder, words) for _ in range(SAMPLES))


def read_link(folder: Path) -> str:
    """Read GT/s and lanes of the link above a function, as one line; empty where it has none."""
    try:
        speed, width = ((folder / f"current_link_{what}").read_text() for what in ("speed", "width"))
    except OSError:
        return ""
    return f"{speed.split()[0]} {width.strip()}\n"


def _sample(folder: Path, words: memoryview) -> str:
    end = time.monotonic() + READ_S
    while time.monotonic() < end:
        words[Identity.MAGIC // 4]
    return read_link(folder)
