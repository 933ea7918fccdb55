"""Can a board be given to a program, and to it alone?"""

from __future__ import annotations

from collections.abc import Iterator

from cuelight.doctor.checks.driver import VFIO
from cuelight.doctor.finding import Finding, Severity
from cuelight.doctor.function import Function
from cuelight.doctor.machine import Machine

__all__ = ["check_iommu"]


def check_iommu(machine: Machine) -> Iterator[Finding]:
    """IOMMU groups of boards, and how GPUs are translated."""
    for board in machine.boards:
        if board.iommu_group is None:
            yield Finding(
                "iommu",
                Severity.WARNING,
                board.address,
                "It is in no IOMMU group.",
                "Without an IOMMU a program can't be given memory that a device may write to, so PUSH is not possible.",
                "Turn on VT-d or AMD-Vi in the firmware"
                + (
                    f"; the kernel was told already ({machine.options})."
                    if "iommu=" in machine.options
                    else ", and start the kernel with intel_iommu=on iommu=pt, or with iommu=pt on AMD."
                ),
            )
        else:
            yield _check_group(machine, board, board.iommu_group)
    for gpu in machine.gpus:
        kind = machine.groups[gpu.iommu_group].kind if gpu.iommu_group is not None else "identity"
        if kind not in ("identity", None):
            yield Finding(
                "iommu-mode",
                Severity.NOTE,
                gpu.address,
                f"Its accesses are translated by the IOMMU ({kind}).",
                "Each needs an entry of the translation cache, and peers reach each other through the root only.",
                "Start the kernel with iommu=pt.",
            )


def _check_group(machine: Machine, board: Function, number: int) -> Finding:
    mates = [machine.functions[name] for name in machine.groups[number].members if name in machine.functions]
    others = [one for one in mates if one.address != board.address and not one.bridge]
    foreign = [one for one in others if one.driver not in (None, VFIO)]
    if foreign:
        names = ", ".join(f"{one.address} ({one.driver})" for one in foreign)
        return Finding(
            "iommu",
            Severity.WARNING,
            board.address,
            f"Its IOMMU group {number} has others whose drivers use them: {names}.",
            "A group is given away as a whole, so vfio-pci refuses this board, and PUSH is not possible.",
            "Put the board into another slot, best one of the processor's own; or take the others from their drivers, "
            "if this machine can do without them.",
        )
    if others:
        return Finding(
            "iommu",
            Severity.NOTE,
            board.address,
            f"Its IOMMU group {number} has others: {', '.join(one.address for one in others)}.",
            "They can only be given away together.",
            "Leave them without a driver, or with vfio-pci.",
        )
    return Finding("iommu", Severity.OK, board.address, f"It has IOMMU group {number} for itself.")
