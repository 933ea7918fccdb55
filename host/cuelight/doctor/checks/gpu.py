"""What holds a GPU back."""

from __future__ import annotations

from collections.abc import Iterator

from cuelight.doctor.finding import Finding, Severity
from cuelight.doctor.gpu import GpuState
from cuelight.doctor.machine import Machine
from cuelight.pci.resizable import resizable_bars

__all__ = ["check_clocks", "check_memory", "check_nvlinks", "check_window"]

IDLE, POWER_CAP, SLOWDOWN, THERMAL, HARDWARE_THERMAL, POWER_BRAKE = 0x01, 0x04, 0x08, 0x20, 0x40, 0x80
"""Bits of nvmlClocksEventReasons (NVML API reference)."""

SLOWED = {
    HARDWARE_THERMAL: "it is too hot, so hardware halves them",
    POWER_BRAKE: "the power supply asks for it",
    THERMAL: "it is hot",
    SLOWDOWN: "hardware halves them",
}
WHOLE = 0.9
"""Share of free memory that the largest block has while memory is not in pieces."""

MEMORY_BAR = 1


def check_window(machine: Machine) -> Iterator[Finding]:
    """How much of a GPU's memory others on the bus can reach."""
    for gpu in machine.gpus:
        for bar in resizable_bars(gpu.config):
            if bar.bar == MEMORY_BAR and bar.sizes and bar.size < bar.sizes[-1]:
                yield Finding(
                    "window",
                    Severity.NOTE,
                    gpu.address,
                    f"Others reach {bar.size >> 20} MiB of its memory; it could show {bar.sizes[-1] >> 20}.",
                    "A lane's ring fits, but other GPUs can't copy from and to all of its memory.",
                    "Turn on resizable BAR and decoding above 4 GiB in the firmware.",
                )


def check_clocks(machine: Machine) -> Iterator[Finding]:
    """Clocks, and what keeps them low."""
    for gpu in machine.gpus:
        state = machine.gpu_states.get(gpu.address)
        if state is None:
            yield Finding(
                "gpu",
                Severity.NOTE,
                gpu.address,
                "NVIDIA's driver says nothing about this GPU.",
                "Its clocks, memory and NVLink are not known.",
                "Install the driver, and look whether nvidia-smi lists the GPU.",
            )
            continue
        yield _check_clocks(gpu.address, state)
        if not state.persistent:
            yield Finding(
                "gpu-persistence",
                Severity.NOTE,
                gpu.address,
                "Its driver's state is not kept while no program uses it.",
                "The first program then waits for seconds.",
                "nvidia-smi -pm 1, or start nvidia-persistenced.",
            )


def _check_clocks(address: str, state: GpuState) -> Finding:
    clocks = f"{state.clock_mhz:g} of {state.clock_most_mhz:g} MHz" if state.clock_mhz and state.clock_most_mhz else ""
    reasons = [reason for bit, reason in SLOWED.items() if state.slowed & bit]
    if reasons:
        heat = f" at {state.celsius:g} °C" if state.celsius is not None else ""
        return Finding(
            "gpu-clocks",
            Severity.WARNING,
            address,
            f"Its clocks are held down, {clocks}{heat}: {reasons[0]}.",
            "Every kernel takes as much longer, and passes with it.",
            "Look at fans, airflow and power cables; nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER tells more.",
        )
    if state.slowed & POWER_CAP:
        return Finding(
            "gpu-clocks",
            Severity.NOTE,
            address,
            f"Its clocks are held down by its power limit, {clocks}, {state.watts or 0:g} of "
            f"{state.watts_most or 0:g} W.",
            "Under full load that is as it should be, unless the limit was lowered.",
            "nvidia-smi -q -d POWER tells the limit, nvidia-smi -pl sets it.",
        )
    idle = ", idle" if state.slowed & IDLE else ""
    return Finding("gpu-clocks", Severity.OK, address, f"Nothing holds its clocks down ({state.name}, {clocks}{idle}).")


def check_nvlinks(machine: Machine) -> Iterator[Finding]:
    """NVLinks that are down beside others that are up; where all are down, nothing is connected."""
    for address, up in machine.nvlinks.items():
        down = [str(number) for number, one in enumerate(up) if not one]
        if down and len(down) < len(up):
            yield Finding(
                "nvlink",
                Severity.WARNING,
                address,
                f"{len(down)} of its {len(up)} NVLinks are down ({', '.join(down)}).",
                "Lanes that share a request's KV cache over it have less bandwidth, or fall back to PCIe.",
                "Look whether the bridge sits right, restart nvidia-fabricmanager where there are switches, then reset "
                "the GPUs.",
            )
        elif not down:
            yield Finding("nvlink", Severity.OK, address, f"All of its {len(up)} NVLinks are up.")


def check_memory(machine: Machine) -> Iterator[Finding]:
    """The largest block that could be had, against what is free."""
    for address, tried in machine.gpu_tries.items():
        if tried.error:
            yield Finding(
                "gpu",
                Severity.FAULT,
                address,
                f"It can't be used: its driver says {tried.error}.",
                "No lane can run on it.",
                "Look at what the kernel said (dmesg, lines with NVRM), then reset it: nvidia-smi --gpu-reset.",
            )
        elif tried.largest is None:
            yield Finding(
                "gpu-memory",
                Severity.NOTE,
                address,
                f"{tried.free >> 20} of {tried.total >> 20} MiB are free; others use it, so no block was tried.",
                "A lane needs its KV cache in one piece.",
                "Stop the others, and look again.",
            )
        elif tried.largest < WHOLE * tried.free:
            yield Finding(
                "gpu-memory",
                Severity.WARNING,
                address,
                f"{tried.free >> 20} MiB are free, but the largest block has {tried.largest >> 20}.",
                "A lane needs its KV cache in one piece, and gets no more blocks than fit there.",
                "Compact it: restart the lane, whose requests are prefilled again, and other programs on this GPU.",
            )
        else:
            yield Finding(
                "gpu-memory",
                Severity.OK,
                address,
                f"{tried.largest >> 20} of {tried.free >> 20} MiB that are free can be had in one piece; host to GPU "
                f"{tried.copied_gb_s:g} GB/s.",
            )
