"""All that checks look at."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cuelight.doctor.function import DEVICES, Function, LinkState, read_function, read_number
from cuelight.doctor.gpu import GpuState, GpuTry, read_links, read_samples, read_states, read_try
from cuelight.doctor.source import Source
from cuelight.pci.ids import DEVICE_ID, VENDOR_ID

__all__ = ["Group", "Machine", "read_machine"]

GROUPS = "/sys/kernel/iommu_groups"
NVIDIA, DISPLAY, BRIDGE = 0x10DE, 0x03, 0x0604


@dataclass(frozen=True, slots=True)
class Group:
    """Functions that the IOMMU can't tell apart, so that they can only be given away together."""

    kind: str | None
    """Of its own translation: identity, DMA, DMA-FQ …; None where the kernel does not say."""
    members: tuple[str, ...]


@dataclass(frozen=True)
class Machine:
    """Boards and GPUs, the ports above them, and what was said about them."""

    config_only: bool
    """Nothing is known but configuration space, as when lspci is all that was asked."""
    functions: dict[str, Function]
    """By address: boards, GPUs, bridges, and whatever shares a group with a board."""
    boards: tuple[Function, ...]
    gpus: tuple[Function, ...]
    strangers: tuple[Function, ...]
    """FPGAs of the boards' maker with other designs."""
    groups: dict[int, Group]
    options: str
    """What the kernel was started with, as far as it is about PCI."""
    idle_d3: bool
    """vfio-pci lets devices sleep that nobody has open."""
    samples: dict[str, tuple[LinkState, ...]]
    """Of links under load, by address of their lower ends."""
    gpu_states: dict[str, GpuState]
    nvlinks: dict[str, tuple[bool, ...]]
    gpu_tries: dict[str, GpuTry]
    attention: dict[str, Any]
    """What `probes.attention` printed; empty if it could not run."""

    @property
    def looked_at(self) -> tuple[Function, ...]:
        """Boards, then GPUs."""
        return self.boards + self.gpus

    def ports(self, function: Function) -> list[Function]:
        """Bridges above a function that are known, from the root port on."""
        return [self.functions[address] for address in function.above if address in self.functions]

    def links(self, *functions: Function) -> Iterator[tuple[Function, Function | None]]:
        """Each link between these functions and the root once: its lower end, its upper end if there is one."""
        seen = set()
        for function in functions:
            # Root port and switch port, switch port and function: what lies between is inside a switch.
            path = function.path
            ends = list(zip(path[0::2], path[1::2], strict=False)) if function.above else [(None, function.address)]
            for upper, lower in reversed(ends):
                if lower not in seen and lower in self.functions:
                    seen.add(lower)
                    yield self.functions[lower], self.functions.get(upper or "")

    def on_paths(self, *functions: Function) -> list[Function]:
        """These functions and the ports above them, each once."""
        found = {one.address: one for function in functions for one in (function, *reversed(self.ports(function)))}
        return list(found.values())


def read_machine(source: Source) -> Machine:
    """Read everything; what is not there is left out."""
    kinds = {address: _identify(source, address) for address in source.entries(DEVICES)}
    wanted = [
        address
        for address, (vendor, device, kind) in kinds.items()
        if kind >> 8 == BRIDGE or vendor == VENDOR_ID or (vendor == NVIDIA and kind >> 16 == DISPLAY)
    ]
    functions = {address: read_function(source, address) for address in wanted}
    boards = tuple(one for one in functions.values() if one.ids == (VENDOR_ID, DEVICE_ID))
    gpus = tuple(one for one in functions.values() if one.vendor_id == NVIDIA and not one.bridge)
    numbers = {one.iommu_group for one in boards + gpus if one.iommu_group is not None}
    groups = {number: _read_group(source, number) for number in sorted(numbers)}
    for board in boards:
        for address in groups[board.iommu_group].members if board.iommu_group is not None else ():
            if address not in functions:
                functions[address] = read_function(source, address)
    said = {name: source.probe(name) for name in ("nvidia-smi", "nvlink")} if gpus else {}
    results = {one.address: read_try(source.probe("cuda", one.address)) for one in gpus}
    tries = {address: tried for address, tried in results.items() if tried is not None}
    samples: dict[str, tuple[LinkState, ...]] = {}
    for one in boards:
        samples |= read_samples(source.probe("link", one.address))
    # A GPU loads a link that it shares with a board more than that does.
    for tried in tries.values():
        samples |= tried.samples
    return Machine(
        config_only=bool(wanted) and not any(source.read(f"{DEVICES}/{address}/enable") for address in wanted),
        functions=functions,
        boards=boards,
        gpus=gpus,
        strangers=tuple(one for one in functions.values() if one.vendor_id == VENDOR_ID and one not in boards),
        groups=groups,
        options=(source.read("/proc/cmdline") or b"").decode(errors="replace"),
        idle_d3=(source.read("/sys/module/vfio_pci/parameters/disable_idle_d3") or b"N").strip() != b"Y",
        samples=samples,
        gpu_states=read_states(said.get("nvidia-smi")),
        nvlinks=read_links(said.get("nvlink"), tuple(one.address for one in gpus)),
        gpu_tries=tries,
        attention=_read_attention(source.probe("attention")),
    )


def _identify(source: Source, address: str) -> tuple[int, int, int]:
    data = [source.read(f"{DEVICES}/{address}/{name}") or b"" for name in ("vendor", "device", "class")]
    vendor, device, kind = (read_number(value.decode(errors="replace").strip(), 16) or 0 for value in data)
    return vendor, device, kind


def _read_group(source: Source, number: int) -> Group:
    kind = source.read(f"{GROUPS}/{number}/type")
    members = [name for name in source.entries(f"{GROUPS}/{number}/devices") if source.link(_member(number, name))]
    return Group(None if kind is None else kind.decode(errors="replace").strip(), tuple(members))


def _member(number: int, address: str) -> str:
    return f"{GROUPS}/{number}/devices/{address}"


def _read_attention(said: str | None) -> dict[str, Any]:
    line = next((line for line in (said or "").splitlines() if re.match(r"\{.*\}$", line)), "{}")
    try:
        found: dict[str, Any] = json.loads(line)
    except ValueError:
        return {}
    return found
