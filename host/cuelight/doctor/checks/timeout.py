"""How long does a read wait for its answer, and what happens then?"""

from __future__ import annotations

from collections.abc import Iterator

from cuelight.doctor.finding import Finding, Severity
from cuelight.doctor.function import Function
from cuelight.doctor.machine import Machine
from cuelight.pci.config import Command
from cuelight.pci.errors import Uncorrectable
from cuelight.pci.express import Express

__all__ = ["check_timeout"]

SHORT_S, LONG_S = 10e-3, 1.0
"""A read of busy memory can take milliseconds; a processor that waits longer than a second is gone for its users."""


def check_timeout(machine: Machine) -> Iterator[Finding]:
    """Of boards, which read heartbeats, and of root ports above them, which read registers for the processor."""
    for board in machine.boards:
        if board.express is not None and not board.config.absent:
            yield from _check_board(board, board.express)
    roots = {port.address: port for board in machine.boards for port in machine.ports(board)[:1]}
    for root in roots.values():
        if root.express is not None and not root.config.absent:
            yield from _check_root(root, root.express)


def _check_board(board: Function, express: Express) -> Iterator[Finding]:
    fine = True
    if express.timeout_disabled:
        fine = False
        yield Finding(
            "timeout",
            Severity.WARNING,
            board.address,
            "Its completion timeout is disabled.",
            "A heartbeat's read that is lost holds its tag until the device's own timer ends, and a late answer can "
            "meet a tag that is in use again.",
            f"setpci -s {board.address} CAP_EXP+28.w=0:10",
        )
    elif express.timeout_s is None:
        fine = False
        yield Finding(
            "timeout",
            Severity.WARNING,
            board.address,
            "Its completion timeout is set to a value that does not exist.",
            "How long it waits is not known.",
            f"setpci -s {board.address} CAP_EXP+28.w=0:f",
        )
    elif express.timeout_s[1] < SHORT_S:
        fine = False
        yield Finding(
            "timeout",
            Severity.WARNING,
            board.address,
            f"Its completion timeout is {_span(express.timeout_s)}.",
            "Memory that is busy answers later than that, so that lanes fall back to POLL without need.",
            f"setpci -s {board.address} CAP_EXP+28.w=0:f for the default of 50 µs to 50 ms"
            + (", or 6:f for 65 to 210 ms." if "B" in express.timeout_ranges else "."),
        )
    errors = board.errors
    masked = errors is None or bool(errors.mask & Uncorrectable.COMPLETION_TIMEOUT)
    if board.config.command & Command.BUS_MASTER and not masked and board.enabled:
        fine = False
        fatal = errors is not None and bool(errors.fatal & Uncorrectable.COMPLETION_TIMEOUT)
        yield Finding(
            "timeout-mask",
            Severity.WARNING,
            board.address,
            f"It reads memory while Completion Timeout is not masked{', and counts as fatal' if fatal else ''}.",
            "One heartbeat that a lane's memory does not answer makes the kernel stop or reset the device, with all "
            "lanes.",
            "Cuelight's driver masks it while it has the device: close what else uses the device.",
        )
    if fine and express.timeout_s:
        ranges = f", of ranges {express.timeout_ranges}" if express.timeout_ranges else ""
        yield Finding(
            "timeout", Severity.OK, board.address, f"Its completion timeout is {_span(express.timeout_s)}{ranges}."
        )


def _check_root(root: Function, express: Express) -> Iterator[Finding]:
    if express.timeout_disabled or (express.timeout_s and express.timeout_s[1] > LONG_S):
        span = "is disabled" if express.timeout_disabled else f"is {_span(express.timeout_s or (0, 0))}"
        yield Finding(
            "timeout-root",
            Severity.WARNING,
            root.address,
            f"The completion timeout of the root port {span}.",
            "A processor that reads a register of a device that is gone stands still as long, and whoever waits for "
            "it.",
            f"setpci -s {root.address} CAP_EXP+28.w=0:1f for 50 µs to 50 ms; look for a setting in the firmware.",
        )


def _span(seconds: tuple[float, float]) -> str:
    return " to ".join(f"{value * 1e6:g} µs" if value < 1e-3 else f"{value * 1e3:g} ms" for value in seconds)
