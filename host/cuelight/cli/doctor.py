"""`cuelight doctor`: what keeps this machine, or a captured one, from running a board and its GPUs well."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cuelight import doctor
from cuelight.cli.progress import show_progress
from cuelight.doctor import Finding, Live, Machine, Recording, Severity
from cuelight.doctor.saved import dump
from cuelight.doctor.tree import load_tree
from cuelight.errors import CaptureError

__all__ = ["run_doctor"]

STYLES = {
    Severity.OK: ("ok", "green"),
    Severity.NOTE: ("note", "cyan"),
    Severity.WARNING: ("warning", "bold yellow"),
    Severity.FAULT: ("fault", "bold red"),
}


def run_doctor(arguments: argparse.Namespace) -> int:
    """Examine, and print what was found or keep what was read.

    Returns
    -------
    int
        Exit status: 1 if anything was found above a note, else 0.

    Raises
    ------
    CaptureError
        The tree can't be read, or the capture can't be written.
    """
    if arguments.tree is not None:
        machine = doctor.read_machine(load_tree(arguments.tree))
    else:
        with show_progress() as progress:
            progress("looking at this machine", 0)
            recording = Recording(Live())
            machine = doctor.read_machine(recording)
        if arguments.capture is not None:
            _write(arguments.capture, dump(recording.saved))
            return 0
    findings = doctor.examine(machine)
    if arguments.json:
        for finding in findings:
            print(json.dumps(finding.to_dict()))
    else:
        _print(Console(highlight=False), machine, findings)
    return 1 if max(finding.severity for finding in findings) > Severity.NOTE else 0


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:
        raise CaptureError(f"{path} can't be written: {error.strerror}; name another file.") from error
    print(
        f"{path} has what the doctor reads of this machine, without serial numbers and names of it; "
        f"cuelight doctor --tree {path} shows the findings."
    )


def _print(console: Console, machine: Machine, findings: Sequence[Finding]) -> None:
    # Boards, GPUs, ports in order, then what is about the whole machine.
    subjects = {one.address: place for place, one in enumerate(machine.looked_at)}
    ordered = sorted(findings, key=lambda one: (subjects.get(one.subject, len(subjects)), one.subject))
    for subject, group in groupby(ordered, lambda one: one.subject):
        console.print(Text.assemble((subject, "bold"), (f"  {_title(machine, subject)}", "dim")))
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True, width=max(len(word) for word, _ in STYLES.values()))
        table.add_column(overflow="fold")
        for finding in sorted(group, key=lambda one: -one.severity):
            word, style = STYLES[finding.severity]
            said = Text.assemble((finding.what, style if finding.severity > Severity.NOTE else ""))
            if finding.why:
                said.append(f"\n{finding.why}", "dim").append(f"\n→ {finding.remedy}")
            table.add_row(Text(word, style), said)
        console.print(Padding(table, (0, 0, 1, 2)))
    console.print(Text(", ").join(_count(severity, findings) for severity in reversed(Severity)))


def _count(severity: Severity, findings: Sequence[Finding]) -> Text:
    count = sum(one.severity == severity for one in findings)
    word, style = STYLES[severity]
    return Text(f"{count} {word}{'s' if count != 1 and severity else ''}", style if count else "dim")


def _title(machine: Machine, subject: str) -> str:
    one = machine.functions.get(subject)
    if one is None:
        return "the whole machine"
    state = machine.gpu_states.get(subject)
    if one in machine.boards:
        return "Cuelight board"
    if one in machine.gpus:
        return state.name if state else "GPU"
    return "port" if one.bridge else f"{one.vendor_id:04x}:{one.device_id:04x}"
