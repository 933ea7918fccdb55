"""How do a GPU and a board reach each other?"""

from __future__ import annotations

from collections.abc import Iterator

from cuelight.doctor.finding import Finding, Severity
from cuelight.doctor.function import Function
from cuelight.doctor.machine import Machine

__all__ = ["check_peers"]


def check_peers(machine: Machine) -> Iterator[Finding]:
    """Each pair: the last port they have in common, and whether ports send what passes between them up to the root."""
    for board in machine.boards:
        for gpu in machine.gpus:
            if not board.config.absent and not gpu.config.absent:
                yield _check(machine, board, gpu)


def _check(machine: Machine, board: Function, gpu: Function) -> Finding:
    shared = [address for address, other in zip(board.above, gpu.above, strict=False) if address == other]
    if len(shared) < 2:
        return _through_root(board, gpu)
    # The last port in common is the upstream port of a switch; below it each has a downstream port of its own.
    own = [address for one in (board, gpu) for address in one.above[len(shared) : len(shared) + 1]]
    ports = [machine.functions[address] for address in own if address in machine.functions]
    redirecting = [port.address for port in ports if port.access is not None and port.access.redirects]
    if redirecting:
        return Finding(
            "peer",
            Severity.WARNING,
            board.address,
            f"It shares a switch with the GPU {gpu.address}, but {', '.join(redirecting)} sends what passes between "
            "them up to the root (ACS redirect).",
            "That takes longer and more bandwidth, and with an IOMMU that translates, some machines lose or hang it.",
            "If no virtual machine has to be kept from another: "
            + "; ".join(f"setpci -s {address} ECAP_ACS+6.w=0:c" for address in redirecting)
            + ", or turn ACS off in the firmware.",
        )
    if any(port.config.truncated for port in ports):
        return Finding(
            "peer",
            Severity.NOTE,
            board.address,
            f"It shares a switch with the GPU {gpu.address}; whether its ports redirect (ACS) can't be read.",
            "If they do, what passes between the two goes up to the root.",
            "Run cuelight doctor as root.",
        )
    return Finding("peer", Severity.OK, board.address, f"It reaches the GPU {gpu.address} within a switch.")


def _through_root(board: Function, gpu: Function) -> Finding:
    nodes = {one.numa_node for one in (board, gpu)}
    remedy = "Put both below one switch, if the machine has one."
    if len(nodes) == 2 and None not in nodes:
        where = "on another processor"
        remedy = "Put both on one processor; its manual tells which slots are whose."
    elif board.root != gpu.root:
        where = "below another host bridge"
    else:
        where = "below another port of the same host bridge"
    return Finding(
        "peer",
        Severity.NOTE,
        board.address,
        f"The GPU {gpu.address} is {where}.",
        "What passes between the two crosses the root complex, which takes longer; some machines pass writes on but no "
        "reads.",
        remedy,
    )
