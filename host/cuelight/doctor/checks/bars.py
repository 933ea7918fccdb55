"""Registers of a board: have they an address, and is it the one the board has?"""

from __future__ import annotations

from collections.abc import Iterator

from cuelight.doctor.checks.presence import RESCAN
from cuelight.doctor.finding import Finding, Severity
from cuelight.doctor.function import DEVICES, Function
from cuelight.doctor.machine import Machine

__all__ = ["check_bars"]

REGISTER_BYTES = 64 << 10


def check_bars(machine: Machine) -> Iterator[Finding]:
    """BAR0 of each board that answers."""
    for board in machine.boards:
        if not board.config.absent and board.bars:
            yield _check(board)


def _check(board: Function) -> Finding:
    region = board.bars[0]
    rescan = RESCAN.format(folder=f"{DEVICES}/{board.address}")
    if not region.assigned:
        return Finding(
            "bar",
            Severity.FAULT,
            board.address,
            "Its registers have no address: the kernel could not assign BAR0.",
            "The port above has no room for it, as after a bitstream with smaller BARs or none.",
            f"Remove the root port and rescan: echo 1 > {DEVICES}/{board.path[0]}/remove; echo 1 > "
            "/sys/bus/pci/rescan. If that does not help, start the kernel with pci=realloc=on and turn on decoding "
            "above 4 GiB in the firmware.",
        )
    if region.size != REGISTER_BYTES:
        return Finding(
            "bar",
            Severity.FAULT,
            board.address,
            f"Its BAR0 has {region.size >> 10} KiB, but a Cuelight device has {REGISTER_BYTES >> 10}.",
            "The design on it is another one, or of a version that this driver does not know.",
            f"Load the bitstream of this version, then: {rescan}",
        )
    bar = board.config.memory_bar(0)
    if bar is None or not bar.address:
        return Finding(
            "bar",
            Severity.FAULT,
            board.address,
            f"Its BAR0 is empty, but the kernel has put it at {region.start:#x}.",
            "It was reset or loaded anew and nobody restored its configuration; reads go nowhere.",
            rescan,
        )
    if bar.address - region.start not in _translations(board):
        return Finding(
            "bar",
            Severity.FAULT,
            board.address,
            f"Its BAR0 is at {bar.address:#x}, but the kernel has put it at {region.start:#x}.",
            "It was loaded anew, or somebody wrote to its configuration; reads go to something else or nowhere.",
            rescan,
        )
    return Finding("bar", Severity.OK, board.address, f"Its registers are at {region.start:#x}.")


def _translations(board: Function) -> set[int]:
    """Distances between bus and processor: one that another BAR has too is the host bridge's."""
    bars = ((board.config.memory_bar(index), region) for index, region in enumerate(board.bars) if index)
    return {0} | {bar.address - region.start for bar, region in bars if bar and bar.address and region.assigned}
