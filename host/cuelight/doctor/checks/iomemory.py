"""Can a GPU write to a board's registers?"""

from __future__ import annotations

from collections.abc import Iterator

from cuelight.doctor.finding import Finding, Severity
from cuelight.doctor.machine import Machine

__all__ = ["check_registers"]


def check_registers(machine: Machine) -> Iterator[Finding]:
    """What came of mapping each board's registers for each GPU (cuMemHostRegister with IOMEMORY)."""
    for board in machine.boards:
        for gpu in machine.gpus:
            tried = machine.gpu_tries.get(gpu.address)
            result = tried.registers.get(board.address) if tried is not None else None
            if result == "CUDA_SUCCESS":
                yield Finding(
                    "iomemory", Severity.OK, board.address, f"The GPU {gpu.address} can write to its registers."
                )
            elif result is not None:
                yield Finding(
                    "iomemory",
                    Severity.WARNING,
                    board.address,
                    f"The GPU {gpu.address} can't be given its registers ({result}).",
                    "Kernels can't report a stage as done by themselves; the processor has to do it for them.",
                    "Run as root; look that no other driver has the board and that the kernel is not started with "
                    "iomem=strict; then look at IOMMU and peers here.",
                )
            else:
                yield Finding(
                    "iomemory",
                    Severity.NOTE,
                    board.address,
                    f"Whether the GPU {gpu.address} can write to its registers was not tried.",
                    "The try needs CUDA's driver and the package cuda-bindings.",
                    "pip install 'cuelight[gpu]', then run cuelight doctor as root.",
                )
