"""`python -m cuelight_mutation [WORD …]`: plants each fault whose name has one of the words, and tells what noticed."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from .faults import FAULTS, Fault

ROOT = Path(__file__).parents[2]
_TIMEOUT_S = 1800.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m cuelight_mutation", description="Plants faults in the RTL.")
    parser.add_argument("words", nargs="*", metavar="WORD", help="only faults with one of these in file or sentence")
    words = parser.parse_args().words
    chosen = [fault for fault in FAULTS if not words or any(word in fault.name for word in words)]
    console = Console(width=None if sys.stdout.isatty() else 150, highlight=False)
    missed = 0
    for fault in chosen:
        noticed = list(_notice(fault))
        missed += not noticed
        verdict = f"[green]{', '.join(noticed)}[/]" if noticed else "[red]NOBODY[/]"
        console.print(f"{fault.name} Noticed by: {verdict}")
    console.print(f"{len(chosen)} faults planted, {len(chosen) - missed} noticed.")
    return 1 if missed else 0


def _notice(fault: Fault) -> Iterator[str]:
    """Which of its proofs and benches notice ``fault``."""
    with tempfile.TemporaryDirectory(prefix="cuelight-fault-") as scratch:
        copy = Path(scratch)
        for folder in ("host", "rtl", "sim"):
            shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
        plant(fault, copy / "rtl" / "cuelight_rtl")
        for proof in fault.proofs:
            if not _passes(copy, "cuelight_formal", proof):
                yield f"proof {proof}"
        for bench in fault.benches:
            if not _passes(copy, "benches", "--sim", "icarus", "--bench", bench):
                yield f"bench {bench}"
        if fault.schedules >= 0 and not _passes(copy, "cuelight_push", "--schedules", str(fault.schedules)):
            yield f"{fault.schedules} schedules of push" if fault.schedules else "scripts of push"


def plant(fault: Fault, folder: Path) -> None:
    """Put ``fault`` into the RTL in ``folder``.

    Raises
    ------
    LookupError
        The text to be replaced is not there, or not once.
    """
    file = folder / fault.file
    text = file.read_text()
    if text.count(fault.old) != 1:
        raise LookupError(
            f"{fault.name} The text it replaces stands in the file {text.count(fault.old)} times, not once."
        )
    file.write_text(text.replace(fault.old, fault.new))


def _passes(copy: Path, module: str, *arguments: str) -> bool:
    paths = os.pathsep.join(str(copy / folder) for folder in ("host", "rtl", "sim", "docs"))
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_TIMEOUT_S,
    )
    if done.returncode > 1:
        raise RuntimeError(f"{module} {' '.join(arguments)} could not run on the RTL with a fault: {done.stdout}")
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
