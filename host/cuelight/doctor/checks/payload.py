"""Are packets no longer than whoever gets them takes?"""

from __future__ import annotations

from collections.abc import Iterator

from cuelight.doctor.finding import Finding, Severity
from cuelight.doctor.function import Function
from cuelight.doctor.machine import Machine
from cuelight.pci.express import Express

__all__ = ["check_payload"]


def check_payload(machine: Machine) -> Iterator[Finding]:
    """Max Payload Size along each path (PCIe Base Specification 5.0, 2.2.2 and 7.5.3.4)."""
    for function in machine.looked_at:
        known = [(one, one.express) for one in machine.on_paths(function) if not one.config.absent and one.express]
        if not known or known[0][0] is not function:
            continue
        found = list(_check(function, known))
        yield from found
        if not found and function in machine.boards:
            sizes = known[0][1]
            yield Finding(
                "payload",
                Severity.OK,
                function.address,
                f"It sends packets of up to {sizes.payload} bytes, which its path takes; reads ask for up to "
                f"{sizes.read_request}.",
            )


def _check(function: Function, known: list[tuple[Function, Express]]) -> Iterator[Finding]:
    for one, express in known:
        if express.payload > express.payload_most:
            yield Finding(
                "payload",
                Severity.FAULT,
                function.address,
                f"{one.address} is set to packets of {express.payload} bytes, but can do {express.payload_most}.",
                "It may send or accept packets that others, or it itself, take as malformed, which is a fatal error.",
                "Start the kernel with pci=pcie_bus_safe, and look for newer firmware.",
            )
            return
    own, ports = known[0][1], known[1:]
    shorter = [one.address for one, express in ports if express.payload < own.payload]
    if shorter:
        yield Finding(
            "payload",
            Severity.FAULT,
            function.address,
            f"It sends packets of up to {own.payload} bytes, but {', '.join(shorter)} takes fewer.",
            "A packet that is too long is malformed, which is a fatal error.",
            "Start the kernel with pci=pcie_bus_safe.",
        )
        return
    longer = [one.address for one, express in ports if express.payload > own.payload]
    if longer and own.read_request > own.payload:
        yield Finding(
            "payload",
            Severity.WARNING,
            function.address,
            f"It takes packets of up to {own.payload} bytes, but {', '.join(longer)} may send longer ones.",
            f"Answers to its reads of {own.read_request} bytes, and writes of its peers, may be malformed, which is a "
            "fatal error.",
            "Start the kernel with pci=pcie_bus_safe, or with pci=pcie_bus_peer2peer if peers write to it.",
        )
