"""One function on the PCI bus, as Linux shows it in /sys/bus/pci/devices."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from cuelight.doctor.source import Source
from cuelight.pci.access import AccessControl
from cuelight.pci.config import ConfigSpace
from cuelight.pci.errors import ErrorReporting
from cuelight.pci.express import Express
from cuelight.pci.power import power_state

__all__ = ["DEVICES", "Function", "LinkState", "Region", "read_function", "read_number"]

DEVICES = "/sys/bus/pci/devices"
ADDRESS = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
UNSET = 0x2000_0000
"""Flag of a resource: it has no address yet (Linux, include/linux/ioport.h)."""

BARS = 6


@dataclass(frozen=True, slots=True)
class Region:
    """Addresses of a BAR, as the kernel has assigned them."""

    start: int
    end: int
    flags: int

    @property
    def size(self) -> int:
        """Bytes; 0 of a BAR that is not there."""
        return self.end - self.start + 1 if self.flags else 0

    @property
    def assigned(self) -> bool:
        """It has an address."""
        return self.start > 0 and not self.flags & UNSET


@dataclass(frozen=True, slots=True)
class LinkState:
    """Speed in GT/s, None if it is unknown, and lanes."""

    speed_gts: float | None
    width: int

    def __str__(self) -> str:
        speed = "an unknown speed" if self.speed_gts is None else f"{self.speed_gts:g} GT/s"
        return f"{speed} x{self.width}"


@dataclass(frozen=True)
class Function:
    """What is known of it; None where that was not said."""

    address: str
    root: str
    """Its host bridge, as in pci0000:00."""
    above: tuple[str, ...]
    """Bridges between the two, from the root port on."""
    vendor_id: int
    device_id: int
    class_code: int
    config: ConfigSpace
    driver: str | None
    bars: tuple[Region, ...]
    iommu_group: int | None
    numa_node: int | None
    enabled: int
    """How often it was enabled and not disabled again; above 0 somebody uses it."""
    power_state: str | None
    """D0 to D3cold, or unknown."""
    runtime_control: str | None
    """auto: it may be put to sleep when nobody uses it."""
    d3cold_allowed: bool | None
    error_counts: Mapping[str, Mapping[str, int]]
    """Of each kind (correctable, nonfatal, fatal) those errors that happened, without totals."""
    link_said: LinkState | None
    link_most_said: LinkState | None

    @property
    def path(self) -> tuple[str, ...]:
        """Addresses from the root port to itself."""
        return (*self.above, self.address)

    @property
    def ids(self) -> tuple[int, int]:
        """Vendor and device, as the kernel found them."""
        return self.vendor_id, self.device_id

    @property
    def bridge(self) -> bool:
        """Of class 0604: a port, or a bridge to PCI."""
        return self.class_code >> 8 == 0x0604

    @cached_property
    def express(self) -> Express | None:
        """Its PCI Express capability."""
        return Express.of(self.config)

    @cached_property
    def errors(self) -> ErrorReporting | None:
        """Its error registers."""
        return ErrorReporting.of(self.config)

    @cached_property
    def access(self) -> AccessControl | None:
        """Its Access Control Services."""
        return AccessControl.of(self.config)

    @property
    def link(self) -> LinkState | None:
        """Its link now: towards the root, or below it if it is a root or downstream port."""
        if self.express is not None and self.express.has_link:
            return LinkState(self.express.speed_gts, self.express.width)
        return self.link_said

    @property
    def link_most(self) -> LinkState | None:
        """What its end of that link is capable of."""
        if self.express is not None and self.express.has_link:
            return LinkState(self.express.speed_most_gts, self.express.width_most)
        return self.link_most_said


def read_number(text: str | None, base: int = 10) -> int | None:
    """Read a whole number; None of what is none."""
    try:
        return None if text is None else int(text, base)
    except ValueError:
        return None


def read_function(source: Source, address: str) -> Function:
    """Read all of it."""
    folder = f"{DEVICES}/{address}"

    def text(name: str) -> str | None:
        data = source.read(f"{folder}/{name}")
        return None if data is None else data.decode(errors="replace").strip()

    def base(name: str) -> str | None:
        target = source.link(f"{folder}/{name}")
        return None if target is None else target.rpartition("/")[2]

    target = source.link(folder) or ""
    root = re.search(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}", target)
    chain = re.findall(rf"(?<=/){ADDRESS}(?=/|$)", target)
    numa_node = read_number(text("numa_node"))
    d3cold = text("d3cold_allowed")
    config = ConfigSpace(source.read(f"{folder}/config") or b"")
    return Function(
        address=address,
        root=root[0] if root else "",
        above=tuple(other for other in chain if other != address),
        vendor_id=read_number(text("vendor"), 16) or 0,
        device_id=read_number(text("device"), 16) or 0,
        class_code=read_number(text("class"), 16) or 0,
        config=config,
        driver=base("driver"),
        bars=_read_bars(text("resource")),
        iommu_group=read_number(base("iommu_group")),
        numa_node=None if numa_node == -1 else numa_node,
        enabled=read_number(text("enable")) or 0,
        power_state=text("power_state") or _power_state(config),
        runtime_control=text("power/control"),
        d3cold_allowed=None if d3cold is None else d3cold == "1",
        error_counts=MappingProxyType(
            {kind: _read_counts(text(f"aer_dev_{kind}")) for kind in ("correctable", "nonfatal", "fatal")}
        ),
        link_said=_read_link(text("current_link_speed"), text("current_link_width")),
        link_most_said=_read_link(text("max_link_speed"), text("max_link_width")),
    )


def _power_state(config: ConfigSpace) -> str | None:
    state = power_state(config)
    return None if state is None else "D3hot" if state == 3 else f"D{state}"


def _read_bars(text: str | None) -> tuple[Region, ...]:
    lines = [re.findall(r"\b0x[0-9a-f]+\b", line) for line in (text or "").splitlines()[:BARS]]
    return tuple(Region(*(int(value, 16) for value in line)) for line in lines if len(line) == 3)


def _read_counts(text: str | None) -> Mapping[str, int]:
    pairs = re.findall(r"^(\w+) (\d+)$", text or "", re.MULTILINE)
    return {name: int(count) for name, count in pairs if int(count) and not name.startswith("TOTAL_")}


def _read_link(speed: str | None, width: str | None) -> LinkState | None:
    lanes = read_number(width)
    number = re.match(r"(\d+(?:\.\d+)?) GT/s", speed or "")
    if lanes is None or not (number or lanes):
        return None
    return LinkState(float(number[1]) if number else None, lanes)
