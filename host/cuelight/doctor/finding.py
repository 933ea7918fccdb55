"""What a check says."""

from __future__ import annotations

import enum
from dataclasses import dataclass

__all__ = ["Finding", "Severity"]


class Severity(enum.IntEnum):
    """How much a finding matters."""

    OK = 0
    NOTE = 1
    """Good to know; nothing has to be done."""
    WARNING = 2
    """It runs, but slower, with less, or not for long."""
    FAULT = 3
    """It can't run so."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Parameters
    ----------
    check
        Name of the check, the same in every version.
    subject
        PCI address, or `system`.
    what, why, remedy
        Sentences: what is so, why it matters, what to do. `OK` has the first only.
    """

    check: str
    severity: Severity
    subject: str
    what: str
    why: str = ""
    remedy: str = ""

    def to_dict(self) -> dict[str, str]:
        """Make it JSON-ready."""
        return {
            "check": self.check,
            "severity": self.severity.name.lower(),
            "subject": self.subject,
            "what": self.what,
            "why": self.why,
            "remedy": self.remedy,
        }
