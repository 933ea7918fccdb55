"""Where all that is known of a machine comes from: files of Linux, and probes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from cuelight.doctor.probes import run_probe

__all__ = ["Folder", "Live", "Source"]


class Source(Protocol):
    """Answers for one machine. What does not exist, or can't be read, is None."""

    def read(self, path: str) -> bytes | None:
        """Read a file of /sys or /proc."""

    def link(self, path: str) -> str | None:
        """Read where a symbolic link points to, as it is written there."""

    def entries(self, path: str) -> tuple[str, ...]:
        """Names in a folder, sorted; none if there is no such folder."""

    def probe(self, name: str, address: str = "") -> str | None:
        """What a probe of `cuelight.doctor.probes` printed, about the function at a PCI address if one is given."""


class Folder:
    """A copy of /sys and /proc in a folder, with what probes printed in its folder probe."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, path: str) -> bytes | None:
        """Read a file."""
        try:
            return self._at(path).read_bytes()
        except OSError:
            return None

    def link(self, path: str) -> str | None:
        """Read a symbolic link."""
        try:
            return os.readlink(self._at(path))
        except OSError:
            return None

    def entries(self, path: str) -> tuple[str, ...]:
        """List a folder."""
        try:
            return tuple(sorted(os.listdir(self._at(path))))
        except OSError:
            return ()

    def probe(self, name: str, address: str = "") -> str | None:
        """Read what the probe printed when the copy was taken."""
        said = self.read("/".join(("/probe", name, address)).rstrip("/"))
        return None if said is None else said.decode(errors="replace")

    def _at(self, path: str) -> Path:
        return self._root / path.lstrip("/")


class Live(Folder):
    """This machine."""

    def __init__(self) -> None:
        super().__init__(Path("/"))

    def probe(self, name: str, address: str = "") -> str | None:
        """Run the probe."""
        return run_probe(name, address)
