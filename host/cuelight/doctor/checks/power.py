"""Is a board's power cut while nobody uses it?"""

from __future__ import annotations

from collections.abc import Iterator

from cuelight.doctor.checks.driver import VFIO
from cuelight.doctor.finding import Finding, Severity
from cuelight.doctor.function import DEVICES
from cuelight.doctor.machine import Machine

__all__ = ["check_power"]


def check_power(machine: Machine) -> Iterator[Finding]:
    """Power states of boards and of the ports above them."""
    for board in machine.boards:
        path = machine.on_paths(board)
        keep = "; ".join(
            f"echo on > {DEVICES}/{one.address}/power/control; echo 0 > {DEVICES}/{one.address}/d3cold_allowed"
            for one in path
        )
        cold = [one.address for one in path if one.power_state == "D3cold"]
        asleep = [one.address for one in path if one.power_state == "D3hot"]
        if cold:
            yield Finding(
                "power",
                Severity.FAULT,
                board.address,
                f"Its power is cut (D3cold: {', '.join(cold)}).",
                "An FPGA without power loses its design; when power comes back, the device is another one or none.",
                f"Load the bitstream anew, then keep it on: {keep}",
            )
        elif asleep and not (board.driver == VFIO and board.address in asleep):
            yield Finding(
                "power",
                Severity.WARNING,
                board.address,
                f"It is not reachable at once (D3hot: {', '.join(asleep)}).",
                "In D3hot a function answers to no read of a register, and a port passes none on.",
                keep,
            )
        elif board.driver == VFIO and machine.idle_d3 and board.runtime_control != "on" and board.d3cold_allowed:
            yield Finding(
                "power",
                Severity.NOTE,
                board.address,
                "vfio-pci may put it to sleep, down to D3cold, while nobody has it open.",
                "If this machine can cut the slot's power, the FPGA loses its design then.",
                f"{keep}; or: modprobe vfio-pci disable_idle_d3=1",
            )
        else:
            yield Finding("power", Severity.OK, board.address, "Its power stays on.")
