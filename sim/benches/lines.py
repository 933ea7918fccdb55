"""Line coverage as Verilator counts it: how often each branch of the generated Verilog was taken."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

__all__ = ["Branch", "count_lines"]

_ALWAYS_FALSE = "verilog_backend"
"""Part of the name of a constant that Yosys tests to make a block run once at the start."""


class Branch(NamedTuple):
    """A place in the Verilog."""

    module: str
    line: int
    text: str
    """What stands in the line."""
    kind: str


def count_lines(file: Path, source: Path) -> Counter[Branch]:
    """Reads what a simulation wrote when it ended.

    Parameters
    ----------
    file
        Each line is a C, fields in quotes, and a count; a field is the character 1, a key, the character 2, a value.
    source
        The Verilog.
    """
    texts = [text.strip() for text in source.read_text().splitlines()]
    counts: Counter[Branch] = Counter()
    for entry in file.read_text().splitlines():
        if not entry.startswith("C "):
            continue
        _, quoted, count = entry.split("'")
        fields = dict(field.split("\2", 1) for field in quoted.split("\1") if field)
        kind, module = fields["page"].split("/", 1)
        line = int(fields["l"])
        if kind.startswith("v_") and _ALWAYS_FALSE not in texts[line - 1]:
            counts[Branch(module, line, texts[line - 1], fields["o"])] += int(count)
    return counts
