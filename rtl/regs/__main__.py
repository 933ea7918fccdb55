"""`python -m regs [--check]`: write the generated files, or say which of them are stale."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from .c import write_header
from .markdown import write_reference
from .model import Map, read_map
from .python import write_host, write_rtl

ROOT = Path(__file__).resolve().parents[2]
WRITERS: dict[str, Callable[[Map], str]] = {
    "rtl/cuelight_rtl/regmap.py": write_rtl,
    "host/cuelight/regmap.py": write_host,
    "kernels/include/cuelight_regs.h": write_header,
    "docs/registers.md": write_reference,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m regs", description="Generate what follows from rtl/cuelight.rdl.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a generated file is stale")
    check = parser.parse_args().check
    regs = read_map(ROOT / "rtl/cuelight.rdl")
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
