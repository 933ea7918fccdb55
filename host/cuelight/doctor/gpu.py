"""What NVIDIA's driver, and a try, say of a GPU."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import dataclass
from typing import Any

from cuelight.doctor.function import LinkState
from cuelight.doctor.probes.nvidia import FIELDS

__all__ = ["GpuState", "GpuTry", "read_links", "read_samples", "read_states", "read_try"]


@dataclass(frozen=True, slots=True)
class GpuState:
    """An answer of nvidia-smi; None where it did not say."""

    name: str
    driver: str
    persistent: bool
    clock_mhz: float | None
    clock_most_mhz: float | None
    slowed: int
    """Bits of what holds its clocks back (NVML, nvmlClocksEventReasons)."""
    busy_percent: float | None
    celsius: float | None
    watts: float | None
    watts_most: float | None
    memory_mib: float | None
    memory_used_mib: float | None


@dataclass(frozen=True, slots=True)
class GpuTry:
    """What came of using it."""

    error: str
    """The CUDA driver's name for why it could not be used; empty if it could."""
    free: int
    """Bytes of its memory."""
    total: int
    largest: int | None
    """Bytes of the largest block that could be had; None if others used it, so that it was not tried."""
    samples: dict[str, tuple[LinkState, ...]]
    """Of links above it while it copied, by address of their lower ends."""
    copied_gb_s: float
    registers: dict[str, str]
    """By address of a board: the CUDA driver's name for what came of mapping its registers."""


def read_states(said: str | None) -> dict[str, GpuState]:
    """Read what `probes.nvidia.ask_gpus` printed, by PCI address."""
    found = {}
    for row in csv.reader((said or "").splitlines()[1:], skipinitialspace=True):
        if len(row) != len(FIELDS):
            continue
        field = dict(zip(FIELDS, row, strict=True))
        found[_address(field["pci.bus_id"])] = GpuState(
            name=field["name"],
            driver=field["driver_version"],
            persistent=field["persistence_mode"] == "Enabled",
            clock_mhz=_number(field["clocks.sm"]),
            clock_most_mhz=_number(field["clocks.max.sm"]),
            slowed=_bits(field["clocks_event_reasons.active"]),
            busy_percent=_number(field["utilization.gpu"]),
            celsius=_number(field["temperature.gpu"]),
            watts=_number(field["power.draw"]),
            watts_most=_number(field["enforced.power.limit"]),
            memory_mib=_number(field["memory.total"]),
            memory_used_mib=_number(field["memory.used"]),
        )
    return found


def read_links(said: str | None, addresses: tuple[str, ...]) -> dict[str, tuple[bool, ...]]:
    """Read what `probes.nvidia.ask_links` printed: whether each NVLink is up.

    Parameters
    ----------
    said
        GPUs are in the order of the driver, which is that of `addresses`.
    """
    blocks = re.split(r"^GPU \d+:.*$", said or "", flags=re.MULTILINE)[1:]
    links = [tuple("inactive" not in state for state in re.findall(r"Link \d+: (.*)", block)) for block in blocks]
    return {address: up for address, up in zip(addresses, links, strict=False) if up}


def read_try(said: str | None) -> GpuTry | None:
    """Read what `probes.cuda` printed; None of what is nothing of the kind."""
    try:
        found: dict[str, Any] = json.loads(said or "")
        link = found.get("link", {})
        return GpuTry(
            error=str(found.get("error", "")),
            free=int(found.get("free", 0)),
            total=int(found.get("total", 0)),
            largest=None if found.get("largest") is None else int(found["largest"]),
            samples=read_samples("\n".join(link.get("samples", ()))),
            copied_gb_s=float(link.get("gb_s", 0)),
            registers={str(board): str(result) for board, result in found.get("registers", {}).items()},
        )
    except (ValueError, TypeError, AttributeError):
        return None


def read_samples(said: str | None) -> dict[str, tuple[LinkState, ...]]:
    """Read lines of `probes.link`, by address of the links' lower ends."""
    lines = re.findall(r"^(\S+) (\d+(?:\.\d+)?) (\d+)$", said or "", re.MULTILINE)
    found: dict[str, tuple[LinkState, ...]] = {}
    for address, speed, width in lines:
        found[address] = (*found.get(address, ()), LinkState(float(speed), int(width)))
    return found


def _address(bus_id: str) -> str:
    """NVIDIA writes eight digits where the kernel writes four."""
    domain, _, rest = bus_id.lower().partition(":")
    return f"{domain.lstrip('0').zfill(4)}:{rest}"


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else None


def _bits(text: str) -> int:
    return int(text, 16) if re.fullmatch(r"0x[0-9a-fA-F]+", text) else 0
