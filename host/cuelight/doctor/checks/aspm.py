"""Do links go to sleep between accesses?"""

from __future__ import annotations

from collections.abc import Iterator

from cuelight.doctor.finding import Finding, Severity
from cuelight.doctor.function import DEVICES, Function
from cuelight.doctor.machine import Machine
from cuelight.pci.express import Aspm
from cuelight.pci.power import L1Substates, enabled_substates

__all__ = ["check_aspm"]

L1_EXIT_US = ("1", "2", "4", "8", "16", "32", "64", "more than 64")
"""By code: microseconds to leave L1 at most (PCIe Base Specification 5.0, 7.5.3.6)."""


def check_aspm(machine: Machine) -> Iterator[Finding]:
    """Each link between a board or GPU and the root; a sleeping link is worse above a board, which is written to often.

    A state is entered only where both ends allow it.
    """
    boards = {lower.address for lower, _ in machine.links(*machine.boards)}
    for lower, upper in machine.links(*machine.looked_at):
        if lower.express is None or lower.config.absent:
            continue
        above = upper.express if upper is not None and upper.express is not None else lower.express
        states = lower.express.aspm & above.aspm
        if Aspm.L1 in states:
            yield _sleeps(lower, upper, Severity.WARNING if lower.address in boards else Severity.NOTE)
        elif Aspm.L0S in lower.express.aspm | above.aspm:
            yield Finding(
                "aspm",
                Severity.NOTE,
                lower.address,
                "Its link may rest in L0s.",
                "Leaving it takes up to some microseconds, now and then.",
                "Start the kernel with pcie_aspm.policy=performance.",
            )
        elif lower.address in boards:
            yield Finding("aspm", Severity.OK, lower.address, "Its link never sleeps (ASPM is off).")


def _sleeps(lower: Function, upper: Function | None, severity: Severity) -> Finding:
    codes = [one.express.link_capabilities >> 15 & 0x7 for one in (lower, upper) if one and one.express]
    deeper = enabled_substates(lower.config) & (L1Substates.ASPM_L1_1 | L1Substates.ASPM_L1_2)
    depth = " and its substates" if deeper else ""
    return Finding(
        "aspm",
        severity,
        lower.address,
        f"Its link sleeps between accesses (ASPM L1{depth}).",
        f"The first access after a pause waits until it is awake, {L1_EXIT_US[max(codes)]} µs at most by its own "
        "account; some ports lose completions over it.",
        f"echo 0 > {DEVICES}/{lower.address}/link/l1_aspm, or start the kernel with pcie_aspm.policy=performance.",
    )
