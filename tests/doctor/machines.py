"""The machines in trees/, each as `cuelight doctor --capture` would have written it.

A file that begins with `like NAME` has only what differs from machine NAME: values and links as in any capture, and

    - NAME            no such file, link or folder
    config cut N      only the first N bytes can be read
    config +=         rows of bytes that are others

What went wrong is after the public report that the file names; identities and addresses are made up.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from cuelight.doctor.saved import HEADING, Saved, parse

__all__ = ["NAMES", "machine"]

FOLDER = Path(__file__).parent / "trees"
NAMES = sorted(path.stem for path in FOLDER.glob("*.tree"))


def machine(name: str) -> Saved:
    """Read one; it may be changed."""
    saved = _read(name)
    return Saved(saved.files, saved.links)


@cache
def _read(name: str) -> Saved:
    text = (FOLDER / f"{name}.tree").read_text()
    first, _, rest = text.partition("\n")
    if not first.startswith("like "):
        return parse(text, name)
    saved = machine(first.removeprefix("like "))
    plain = [HEADING]
    folder = ""
    patch = False
    for line in rest.splitlines():
        patch = line == "config +=" or (patch and line.startswith("  "))
        if heading := re.fullmatch(r"\[(.*)\]", line):
            folder = heading[1]
        if line.startswith("- "):
            remove(saved, f"{folder}/{line[2:]}")
        elif line.startswith("config cut "):
            saved.files[f"{folder}/config"] = saved.files[f"{folder}/config"][: int(line.split()[2])]
        elif patch and line.startswith("  "):
            saved.files[f"{folder}/config"] = patched(saved.files[f"{folder}/config"], line)
        elif not patch:
            plain.append(line)
    changes = parse("\n".join(plain), name)
    return Saved(saved.files | changes.files, saved.links | changes.links)


def remove(saved: Saved, path: str) -> None:
    gone = [other for other in (*saved.files, *saved.links) if other == path or other.startswith(f"{path}/")]
    assert gone, f"there is no {path}"
    for other in gone:
        saved.files.pop(other, None)
        saved.links.pop(other, None)


def patched(config: bytes, line: str) -> bytes:
    offset, values = line.partition("#")[0].split(":")
    at, row = int(offset, 16), bytes.fromhex(values)
    assert config[at : at + len(row)] != row, f"no other bytes than before: {line}"
    return config[:at] + row + config[at + len(row) :]
