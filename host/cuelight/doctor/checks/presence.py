"""Is a board there, and does it answer?"""

from __future__ import annotations

from collections.abc import Iterator

from cuelight.doctor.finding import Finding, Severity
from cuelight.doctor.function import DEVICES
from cuelight.doctor.machine import Machine
from cuelight.pci.config import HEADER_SIZE

__all__ = ["RESCAN", "check_answers", "check_boards"]

RESCAN = "echo 1 > {folder}/remove; echo 1 > /sys/bus/pci/rescan"


def check_boards(machine: Machine) -> Iterator[Finding]:
    """Boards by their identity; without one, what may be a board that has not been configured."""
    if machine.boards:
        yield from (Finding("board", Severity.OK, one.address, "It is a Cuelight board.") for one in machine.boards)
        return
    yield Finding(
        "board",
        Severity.NOTE,
        "system",
        "No Cuelight board is on the PCI bus.",
        "Without one the device is the twin, which needs none of what is checked here.",
        "If a board is plugged in, load its bitstream, then: echo 1 > /sys/bus/pci/rescan. If that does not find it, "
        "restart the machine without cutting the board's power.",
    )
    for one in machine.strangers:
        yield Finding(
            "board",
            Severity.NOTE,
            one.address,
            f"An FPGA with another design is here ({one.vendor_id:04x}:{one.device_id:04x}).",
            "It may be a board on which Cuelight's bitstream has not been loaded.",
            f"Load the bitstream, then: {RESCAN.format(folder=f'{DEVICES}/{one.address}')}",
        )
    for port in machine.functions.values():
        if port.express is not None and port.express.occupied and port.express.down:
            yield Finding(
                "board",
                Severity.NOTE,
                port.address,
                "A card is in the slot below this port, but its link is down.",
                "An FPGA that was not configured when the machine started looks so.",
                "Load the bitstream, then: echo 1 > /sys/bus/pci/rescan",
            )


def check_answers(machine: Machine) -> Iterator[Finding]:
    """Configuration space is there, is the one the kernel found, and is whole."""
    hidden = []
    for one in machine.on_paths(*machine.looked_at):
        if len(one.config.data) < HEADER_SIZE:
            yield Finding(
                "config",
                Severity.NOTE,
                one.address,
                "Its configuration space can't be read.",
                "Most checks need it.",
                "Run cuelight doctor as root.",
            )
        elif one.config.absent:
            yield Finding(
                "config",
                Severity.FAULT,
                one.address,
                "It no longer answers: its configuration space reads all ones.",
                "It has lost its link or its power, or its FPGA was loaded anew since the kernel found it; every "
                "register reads all ones, and what is written is lost.",
                f"{RESCAN.format(folder=f'{DEVICES}/{one.address}')}. If it does not come back, remove the port above "
                "it instead; if that does not help either, restart the machine.",
            )
        elif (found := (one.config.vendor_id, one.config.device_id)) != one.ids:
            yield Finding(
                "config",
                Severity.FAULT,
                one.address,
                f"It says to be {found[0]:04x}:{found[1]:04x}, but the kernel found {one.vendor_id:04x}:"
                f"{one.device_id:04x} here.",
                "Another bitstream was loaded, and the kernel still has the old one's addresses and interrupts.",
                RESCAN.format(folder=f"{DEVICES}/{one.address}"),
            )
        elif one.config.truncated:
            hidden.append(one.address)
        elif broken := one.config.capabilities.broken or one.config.extended.broken:
            yield Finding(
                "config",
                Severity.WARNING,
                one.address,
                f"Its list of capabilities is broken: {broken}.",
                "What stands behind that place can't be known or set, by the kernel neither.",
                "Look again; if it stays so, load the bitstream anew and restart the machine.",
            )
        elif one in machine.boards:
            yield Finding("config", Severity.OK, one.address, "Its configuration space is whole.")
    if hidden:
        yield Finding(
            "config",
            Severity.NOTE,
            "system",
            f"Only the first 64 bytes of configuration space can be read ({', '.join(hidden)}).",
            "The kernel shows the rest to root only, and most checks need it.",
            "Run cuelight doctor as root.",
        )
