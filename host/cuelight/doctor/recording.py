"""Keeps what was read of a machine, without what is nobody's business."""

from __future__ import annotations

import re
from collections.abc import Callable

from cuelight.doctor.saved import Saved
from cuelight.doctor.source import Source
from cuelight.pci.config import ConfigSpace

__all__ = ["KERNEL_OPTIONS", "Recording"]

KERNEL_OPTIONS = ("amd_iommu", "intel_iommu", "iommu", "pci", "pcie_aspm", "pcie_ports", "vfio")
"""What is kept of the kernel's command line: these, and options of modules of these names."""

SERIAL_NUMBER, VITAL_PRODUCT_DATA = 0x0003, 0x03


class Recording:
    """A `Source` that remembers in `saved` what another one answered.

    Serial numbers, UUIDs and all options of the kernel that are not about PCI are taken out before anyone sees them.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self.saved = Saved({}, {})

    def read(self, path: str) -> bytes | None:
        """Read a file, cleaned."""
        data = self._source.read(path)
        if data is not None:
            data = self.saved.files[path] = CLEAN.get(path.rpartition("/")[2], bytes)(data)
        return data

    def link(self, path: str) -> str | None:
        """Read a symbolic link."""
        target = self._source.link(path)
        if target is not None:
            self.saved.links[path] = target
        return target

    def entries(self, path: str) -> tuple[str, ...]:
        """List a folder; what of it is read is kept."""
        return self._source.entries(path)

    def probe(self, name: str, address: str = "") -> str | None:
        """Ask a probe."""
        said = self._source.probe(name, address)
        if said is not None:
            said = re.sub(r"\(UUID:[^)]*\)|\b(GPU|MIG)-[0-9a-f-]{36}", "", said)
            self.saved.files["/".join(("/probe", name, address)).rstrip("/")] = said.encode()
        return said


def _without_serial_numbers(data: bytes) -> bytes:
    config = ConfigSpace(data)
    blank = bytearray(data)
    serial = config.extended.find(SERIAL_NUMBER)
    if serial is not None:
        blank[serial + 4 : serial + 12] = bytes(8)
    product = config.capabilities.find(VITAL_PRODUCT_DATA)
    if product is not None:
        blank[product + 4 : product + 8] = bytes(4)
    return bytes(blank[: len(data)])


def _options(data: bytes) -> bytes:
    pattern = re.compile(rf"({'|'.join(KERNEL_OPTIONS)})([-_][a-z_-]+)?([.=]\S*)?")
    return " ".join(option for option in data.decode(errors="replace").split() if pattern.fullmatch(option)).encode()


CLEAN: dict[str, Callable[[bytes], bytes]] = {"config": _without_serial_numbers, "cmdline": _options}
