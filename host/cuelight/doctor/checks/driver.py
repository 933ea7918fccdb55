"""Who has a board, and is it switched on?"""

from __future__ import annotations

from collections.abc import Iterator

from cuelight.doctor.finding import Finding, Severity
from cuelight.doctor.function import DEVICES, Function
from cuelight.doctor.machine import Machine
from cuelight.pci.config import Command

__all__ = ["VFIO", "check_driver"]

VFIO = "vfio-pci"
BIND = "echo vfio-pci > {folder}/driver_override; echo {address} > /sys/bus/pci/drivers_probe (after modprobe vfio-pci)"


def check_driver(machine: Machine) -> Iterator[Finding]:
    """Driver, memory decode and bus mastering of each board that answers."""
    for board in machine.boards:
        yield _check_driver(board)
        if not board.config.absent and board.config.data:
            yield _check_command(board)


def _check_driver(board: Function) -> Finding:
    folder = f"{DEVICES}/{board.address}"
    bind = BIND.format(folder=folder, address=board.address)
    if board.driver == VFIO:
        return Finding("driver", Severity.OK, board.address, "It is bound to vfio-pci.")
    if board.driver is None:
        return Finding(
            "driver",
            Severity.NOTE,
            board.address,
            "No driver has it.",
            "It can be used through resource0, by root and in POLL mode only; PUSH needs vfio-pci.",
            bind,
        )
    return Finding(
        "driver",
        Severity.FAULT,
        board.address,
        f"The driver {board.driver} has it.",
        "Two that write to one device disturb each other.",
        f"echo {board.address} > {folder}/driver/unbind; {bind}",
    )


def _check_command(board: Function) -> Finding:
    memory, mastering = (bool(board.config.command & bit) for bit in (Command.MEMORY, Command.BUS_MASTER))
    if board.enabled and not memory:
        return Finding(
            "decode",
            Severity.FAULT,
            board.address,
            "It does not decode memory, although somebody has it enabled.",
            "It was reset and nobody restored its configuration; every read is all ones.",
            "Close what uses it, and open it again.",
        )
    if board.enabled:
        said = "It decodes memory" + (" and is a bus master." if mastering else ", and is no bus master: POLL only.")
        return Finding("decode", Severity.OK, board.address, said)
    if memory:
        return Finding("decode", Severity.OK, board.address, "It decodes memory.")
    return Finding(
        "decode",
        Severity.NOTE,
        board.address,
        "It does not decode memory, and nobody uses it.",
        "The driver switches that on when it opens the device.",
        "Nothing has to be done.",
    )
