"""What went wrong on the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cuelight.doctor.finding import Finding, Severity
from cuelight.doctor.function import Function
from cuelight.doctor.machine import Machine
from cuelight.pci.errors import Uncorrectable

__all__ = ["MANY", "check_errors"]

MANY = 100
"""Corrected errors from which on a link is bad; a good one has none for days."""


def check_errors(machine: Machine) -> Iterator[Finding]:
    """Counters of the kernel, and registers, of boards, GPUs and the ports above them."""
    for one in machine.on_paths(*machine.looked_at):
        if one.config.absent:
            continue
        found = list(_check(one))
        yield from found
        if found or one not in machine.boards:
            continue
        counted = one.errors is not None or any(one.error_counts.values())
        if counted or one.config.truncated:
            yield Finding("errors", Severity.OK, one.address, "No errors were counted.")
        else:
            yield Finding(
                "errors",
                Severity.NOTE,
                one.address,
                "It has no Advanced Error Reporting.",
                "Errors on its link are corrected or lost unseen.",
                "Use a bitstream whose endpoint has it.",
            )


def _check(one: Function) -> Iterator[Finding]:
    correctable = one.error_counts["correctable"]
    if correctable:
        many = sum(correctable.values()) >= MANY
        yield Finding(
            "errors-corrected",
            Severity.WARNING if many else Severity.NOTE,
            one.address,
            f"{sum(correctable.values())} errors were corrected ({_list(correctable)}).",
            "Each is a packet that was sent again, microseconds later; many of them end in a link that is lost.",
            "Take the card out and put it in again, without a riser or cable between. If they come while the link is "
            "idle, turn ASPM off: start the kernel with pcie_aspm=off.",
        )
    for kind, severity in (("nonfatal", Severity.WARNING), ("fatal", Severity.FAULT)):
        if counts := one.error_counts[kind]:
            yield _lost(one, kind, severity, _list(counts), "CmpltTO" in counts)
    if one.errors is not None and not one.error_counts["nonfatal"] and not one.error_counts["fatal"]:
        # Looking for functions that are not there leaves an Unsupported Request behind.
        latched = one.errors.status & ~one.errors.mask & ~Uncorrectable.UNSUPPORTED_REQUEST
        if latched:
            kind = "fatal" if latched & one.errors.fatal else "nonfatal"
            severity = Severity.FAULT if kind == "fatal" else Severity.WARNING
            names = ", ".join(str(bit.name).lower().replace("_", " ") for bit in Uncorrectable if bit in latched)
            yield _lost(one, kind, severity, names, Uncorrectable.COMPLETION_TIMEOUT in latched)


def _lost(one: Function, kind: str, severity: Severity, names: str, timeout: bool) -> Finding:
    why = "What was under way is lost; after a fatal error the link is reset, and the device with it."
    remedy = "Look at what the kernel said (dmesg, lines with AER), then at the findings about this link."
    if timeout:
        why = "A read got no answer in time: what was to answer was busy, asleep, reset or gone. " + why
        remedy = "Look at power, ASPM and completion timeout here, and whether the other end was reset. " + remedy
    return Finding(f"errors-{kind}", severity, one.address, f"There were {kind} errors: {names}.", why, remedy)


def _list(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())
