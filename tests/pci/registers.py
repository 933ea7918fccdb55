"""Configuration space laid out register by register."""

from __future__ import annotations

from cuelight.pci.config import ConfigSpace

__all__ = ["ENDPOINT", "space"]

ENDPOINT: dict[int, str] = {
    0x00: "ee 10 e1 c0 06 04 10 00 01 00 80 12 00 00 00 00",
    0x10: "00 00 00 d0",
    0x18: "0c 00 00 00 40 00 00 00",
    0x34: "40",
    0x40: "01 50 03 00 00 00 00 00",
    0x50: "11 60 07 80 02 10 00 00 02 20 00 00",
    0x60: "10 00 02 00 c2 8f e8 17 5f 29 00 00 83 4c 40 00 41 01 82 10",
    0x84: "1f 00 10 00 06 00 00 00 0e 01 00 00 23 00 00 00",
    0x100: "01 00 02 14 20 00 00 00 00 40 00 00 30 20 46 00 40 10 00 00 00 e0 00 00",
    0x140: "0d 00 01 16 5f 00 1d 00",
    0x160: "15 00 01 18 00 f0 01 00 20 0a 00 00",
    0x180: "1e 00 01 00 1f 00 00 00 0c 00 00 00",
}
"""An endpoint with every capability that is decoded; offsets ascend, each row is bytes in order."""


def space(*changes: dict[int, str], size: int = 4096) -> ConfigSpace:
    """Lay out `ENDPOINT` and then each change, in zeros, cut to `size` bytes."""
    data = bytearray(4096)
    for rows in (ENDPOINT, *changes):
        for offset, row in rows.items():
            values = bytes.fromhex(row)
            data[offset : offset + len(values)] = values
    return ConfigSpace(bytes(data[:size]))
