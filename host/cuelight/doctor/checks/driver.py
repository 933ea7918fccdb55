"""Who has a board, is it switched on, and can it send interrupts?"""

from __future__ import annotations

from collections.abc import Iterator

from cuelight.doctor.finding import Finding, Severity
from cuelight.doctor.function import DEVICES, Function
from cuelight.doctor.machine import Machine
from cuelight.pci.config import Command
from cuelight.pci.msix import MsiX

__all__ = ["VFIO", "check_driver"]

VFIO = "vfio-pci"
BIND = "echo vfio-pci > {folder}/driver_override; echo {address} > /sys/bus/pci/drivers_probe (after modprobe vfio-pci)"


def check_driver(machine: Machine) -> Iterator[Finding]:
    """Driver, memory decode, bus mastering and MSI-X of each board that answers."""
    for board in machine.boards:
        yield _check_driver(board)
        if not board.config.absent and board.config.data:
            yield _check_command(board)
            if board.express is not None:
                yield _check_interrupts(board)


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


def _check_interrupts(board: Function) -> Finding:
    interrupts = MsiX.of(board.config)
    if interrupts is None:
        return Finding(
            "interrupts",
            Severity.NOTE,
            board.address,
            "It has no MSI-X.",
            "The driver has to look again and again for what the device has to say.",
            "Use a bitstream whose endpoint has it.",
        )
    if interrupts.enabled and not board.config.command & Command.BUS_MASTER:
        return Finding(
            "interrupts",
            Severity.WARNING,
            board.address,
            "Its interrupts are on, but it is no bus master.",
            "An interrupt is a write to memory, so none can be sent, and whoever waits for one waits in vain.",
            "Close what uses it, and open it again.",
        )
    state = "on" if interrupts.enabled else "off until the driver needs them"
    said = f"It has {interrupts.vectors} interrupts (MSI-X), {state}."
    return Finding("interrupts", Severity.OK, board.address, said)
