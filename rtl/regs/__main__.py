"""`python -m regs`: write the generated files, say which of them are stale, or write the reference as HTML."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from peakrdl_html import HTMLExporter

from .c import write_header
from .markdown import write_reference
from .model import Map, compile_maps, read_map
from .python import write_host, write_rtl

ROOT = Path(__file__).resolve().parents[2]
WRITERS: dict[str, Callable[[Map], str]] = {
    "rtl/cuelight_rtl/regmap.py": write_rtl,
    "host/cuelight/regmap.py": write_host,
    "kernels/include/cuelight_regs.h": write_header,
    "docs/registers.md": write_reference,
}


def main() -> int:
    """Return the exit status: 1 if a file is stale under `--check`."""
    parser = argparse.ArgumentParser(prog="python -m regs", description="Generate what follows from rtl/cuelight.rdl.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a generated file is stale")
    parser.add_argument("--html", type=Path, metavar="FOLDER", help="write only the HTML reference, into FOLDER")
    arguments = parser.parse_args()
    source = ROOT / "rtl/cuelight.rdl"
    if arguments.html:
        HTMLExporter().export(list(compile_maps(source)), str(arguments.html))
        print(f"wrote {arguments.html / 'index.html'}")
        return 0
    check = arguments.check
    regs = read_map(source)
    stale = []
    for name, write in WRITERS.items():
        path, text = ROOT / name, write(regs)
        if not path.exists() or path.read_text() != text:
            stale.append(name)
            if not check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
    for name in stale:
        print(f"{name} is stale: run `make regs`" if check else f"wrote {name}")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
