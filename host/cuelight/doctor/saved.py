"""A machine in one text file: what `cuelight doctor --capture` writes and `--tree` reads.

    cuelight tree 1

    [/sys/bus/pci/devices/0000:65:00.0]
    -> ../../../devices/pci0000:64/0000:64:00.0/0000:65:00.0
    vendor = 0x10ee
    driver -> ../../../../bus/pci/drivers/vfio-pci
    config = 4096 bytes
      000: ee 10 e1 c0 06 04 10 00 01 00 80 12 00 00 00 00
    resource =
      | 0x00000000d0000000 0x00000000d000ffff 0x0000000000040200

A heading is a folder, or a symbolic link of its own if an arrow follows it. Rows of configuration space that are not
there are zeros, or what `4096 bytes of ff` says. Lines that begin with # are remarks, as is what follows a # in a row
of bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from cuelight.errors import CaptureError
from cuelight.pci.config import EXTENDED_SIZE

__all__ = ["HEADING", "Saved", "dump", "parse", "read_capture"]

HEADING = "cuelight tree 1"
MOST_BYTES = 16 << 20
ROW_BYTES = 16


class Saved:
    """A `Source` of files, links and probes that were saved.

    Parameters
    ----------
    files
        Contents by path; what a probe printed is at /probe/NAME or /probe/NAME/ADDRESS.
    links
        Targets of symbolic links by path.
    """

    def __init__(self, files: Mapping[str, bytes], links: Mapping[str, str]) -> None:
        self.files = dict(files)
        self.links = dict(links)

    def read(self, path: str) -> bytes | None:
        """Read a file."""
        return self.files.get(path)

    def link(self, path: str) -> str | None:
        """Read a symbolic link."""
        return self.links.get(path)

    def entries(self, path: str) -> tuple[str, ...]:
        """List a folder: whatever is below it."""
        below = (other[len(path) + 1 :] for other in {**self.files, **self.links} if other.startswith(path + "/"))
        return tuple(sorted({name.partition("/")[0] for name in below}))

    def probe(self, name: str, address: str = "") -> str | None:
        """Read what the probe printed when this was saved."""
        said = self.files.get("/".join(("/probe", name, address)).rstrip("/"))
        return None if said is None else said.decode(errors="replace")


def read_capture(path: Path) -> str:
    """Read a file that may be a captured machine.

    Raises
    ------
    CaptureError
        It can't be read, or is too large for one.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise CaptureError(f"{path} can't be read: {error.strerror}; name a file or folder of this machine.") from error
    if len(data) > MOST_BYTES:
        raise CaptureError(f"{path} is larger than {MOST_BYTES >> 20} MiB; name what cuelight doctor --capture wrote.")
    return data.decode(errors="replace")


def parse(text: str, name: str) -> Saved:
    """Read the text of a file called `name`.

    Raises
    ------
    CaptureError
        It is none; the message names the line.
    """
    lines = text.splitlines()
    if not lines or lines[0].strip() != HEADING:
        raise CaptureError(f"{name} is no captured tree; name what cuelight doctor --capture wrote.")
    saved = Saved({}, {})
    folder, block = "", ""
    for number, line in enumerate(lines[1:], 2):
        if not line.strip() or line.startswith("#"):
            continue
        if heading := re.fullmatch(r"\[(/[^\]]*)\]", line.strip()):
            folder, block = heading[1], ""
        elif line.startswith("  ") and block:
            _continue(saved, block, line.strip(), name, number)
        elif folder and (arrow := re.fullmatch(r"(\S*) ?-> (.*)", line)):
            saved.links[f"{folder}/{arrow[1]}".rstrip("/")] = arrow[2]
            block = ""
        elif folder and (pair := re.fullmatch(r"(\S+) =(.*)", line)):
            block = f"{folder}/{pair[1]}"
            saved.files[block] = _begin(block, pair[2].strip(), name, number)
        else:
            raise _bad(name, number, "it is neither heading, value nor link")
    return saved


def dump(saved: Saved) -> str:
    """Write it down."""
    folders: dict[str, list[str]] = {}
    for path in sorted([*saved.files, *saved.links]):
        folders.setdefault(path.rpartition("/")[0], []).append(path)
    lines = [HEADING]
    for folder in sorted(folders):
        own = [f"-> {saved.links[folder]}"] if folder in saved.links else []
        inner = [line for path in folders[folder] if path not in folders for line in _lines(saved, path)]
        if own or inner:
            lines += ["", f"[{folder}]", *own, *inner]
    return "\n".join(lines) + "\n"


def _lines(saved: Saved, path: str) -> Iterator[str]:
    name = path.rpartition("/")[2]
    if path in saved.links:
        yield f"{name} -> {saved.links[path]}"
        return
    data = saved.files[path]
    if name == "config":
        filled = bool(data) and data == data[:1] * len(data)
        yield f"{name} = {len(data)} bytes" + (f" of {data[:1].hex()}" if filled else "")
        for offset in range(0, 0 if filled else len(data), ROW_BYTES):
            if any(row := data[offset : offset + ROW_BYTES]):
                yield f"  {offset:03x}: {row.hex(' ')}"
        return
    rows = data.decode(errors="replace").splitlines()
    if len(rows) == 1 and rows[0].strip():
        yield f"{name} = {rows[0].strip()}"
        return
    yield f"{name} ="
    yield from (f"  | {row.rstrip()}".rstrip() for row in rows)


def _begin(path: str, value: str, name: str, number: int) -> bytes:
    if not path.endswith("/config"):
        return value.encode()
    size = re.fullmatch(r"(\d{1,4}) bytes(?: of ([0-9a-f]{2}))?", value)
    if size is None or int(size[1]) > EXTENDED_SIZE:
        raise _bad(name, number, f"config has up to {EXTENDED_SIZE} bytes")
    return bytes.fromhex(size[2] or "00") * int(size[1])


def _continue(saved: Saved, path: str, line: str, name: str, number: int) -> None:
    if not path.endswith("/config"):
        if not line.startswith("|"):
            raise _bad(name, number, "a line of text begins with |")
        saved.files[path] += line[1:].strip().encode() + b"\n"
        return
    row = re.fullmatch(r"([0-9a-f]{2,3}):((?: [0-9a-f]{2})+)", line.partition("#")[0].strip())
    data = bytearray(saved.files[path])
    offset, values = (int(row[1], 16), bytes.fromhex(row[2])) if row else (len(data), b"\0")
    if offset + len(values) > len(data):
        raise _bad(name, number, "a row of bytes is an offset and values within the size")
    data[offset : offset + len(values)] = values
    saved.files[path] = bytes(data)


def _bad(name: str, number: int, reason: str) -> CaptureError:
    return CaptureError(f"{name}, line {number}: {reason}; capture the tree anew with cuelight doctor --capture.")
