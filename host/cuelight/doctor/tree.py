"""Captured machines: a folder, a file of our own, or what `lspci -D -xxxx` prints."""

from __future__ import annotations

import re
from pathlib import Path

from cuelight.doctor.function import DEVICES
from cuelight.doctor.saved import Saved, parse, read_capture
from cuelight.doctor.source import Folder, Source
from cuelight.errors import CaptureError
from cuelight.pci.config import EXTENDED_SIZE, ConfigSpace

__all__ = ["load_tree", "parse_lspci"]

FUNCTION = re.compile(r"^(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) ", re.MULTILINE)
ROW = re.compile(r"^([0-9a-f]{2,3}):((?: [0-9a-f]{2}){1,16})\s*$", re.MULTILINE)


def load_tree(path: Path) -> Source:
    """Open a captured machine.

    Raises
    ------
    CaptureError
        It can't be read, or is none.
    """
    if path.is_dir():
        if not (path / "sys").is_dir():
            raise CaptureError(f"{path} has no folder sys; name a folder with a copy of /sys and /proc in it.")
        return Folder(path)
    text = read_capture(path)
    return parse_lspci(text) if FUNCTION.match(text) and ROW.search(text) else parse(text, str(path))


def parse_lspci(text: str) -> Saved:
    """Read configuration spaces as lspci prints them with -x, -xxx or -xxxx, and what follows from them.

    Ports above a function follow from the buses that bridges say are behind them. Drivers, IOMMU groups and the like
    are not known.
    """
    spaces: dict[str, ConfigSpace] = {}
    starts = [*FUNCTION.finditer(text)]
    for start, end in zip(starts, [*(one.start() for one in starts[1:]), len(text)], strict=True):
        data = bytearray(EXTENDED_SIZE)
        size = 0
        for row in ROW.finditer(text, start.end(), end):
            offset, values = int(row[1], 16), bytes.fromhex(row[2])
            data[offset : offset + len(values)] = values
            size = max(size, offset + len(values))
        spaces[f"{start[1] or '0000'}:{start[2]}"] = ConfigSpace(bytes(data[:size]))
    saved = Saved({}, {})
    for address, config in spaces.items():
        folder = f"{DEVICES}/{address}"
        saved.links[folder] = f"../../../devices/{'/'.join(_path(spaces, address))}"
        saved.files[f"{folder}/config"] = config.data
        saved.files[f"{folder}/vendor"] = f"{config.vendor_id:#06x}".encode()
        saved.files[f"{folder}/device"] = f"{config.device_id:#06x}".encode()
        saved.files[f"{folder}/class"] = f"{config.class_code:#08x}".encode()
    return saved


def _path(spaces: dict[str, ConfigSpace], address: str) -> list[str]:
    """Host bridge, bridges and the function itself."""
    path = [address]
    while True:
        domain, bus = path[0].split(":")[:2]
        above = [
            other
            for other, config in spaces.items()
            if other.startswith(f"{domain}:") and other not in path and config.buses and config.buses[0] == int(bus, 16)
        ]
        if not above or int(bus, 16) == 0:
            return [f"pci{domain}:{bus}", *path]
        path.insert(0, above[0])
