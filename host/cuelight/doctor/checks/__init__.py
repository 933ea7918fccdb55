"""Every check. Each is a function of the machine that yields findings; one that has nothing to look at yields none."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cuelight.doctor.checks.aspm import check_aspm
from cuelight.doctor.checks.attention import check_attention
from cuelight.doctor.checks.bars import check_bars
from cuelight.doctor.checks.driver import check_driver
from cuelight.doctor.checks.errors import check_errors
from cuelight.doctor.checks.gpu import check_clocks, check_memory, check_nvlinks, check_window
from cuelight.doctor.checks.iomemory import check_registers
from cuelight.doctor.checks.iommu import check_iommu
from cuelight.doctor.checks.link import check_links
from cuelight.doctor.checks.payload import check_payload
from cuelight.doctor.checks.peer import check_peers
from cuelight.doctor.checks.power import check_power
from cuelight.doctor.checks.presence import check_answers, check_boards
from cuelight.doctor.checks.timeout import check_timeout
from cuelight.doctor.finding import Finding
from cuelight.doctor.machine import Machine

__all__ = ["CHECKS", "examine"]

CHECKS: tuple[Callable[[Machine], Iterator[Finding]], ...] = (
    check_boards,
    check_answers,
    check_bars,
    check_driver,
    check_power,
    check_links,
    check_aspm,
    check_errors,
    check_timeout,
    check_payload,
    check_iommu,
    check_peers,
    check_registers,
    check_window,
    check_clocks,
    check_nvlinks,
    check_memory,
    check_attention,
)


FROM_CONFIG = (
    check_boards,
    check_answers,
    check_links,
    check_aspm,
    check_errors,
    check_timeout,
    check_payload,
    check_peers,
    check_window,
)
"""Those that have something to say where configuration space is all that is known."""


def examine(machine: Machine) -> list[Finding]:
    """Run every check that can know something; findings come in the order of `CHECKS`."""
    checks = [check for check in CHECKS if check in FROM_CONFIG or not machine.config_only]
    return [finding for check in checks for finding in check(machine)]
