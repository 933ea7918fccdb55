"""What the benches simulate: the devices' tops in sockets, as Verilog."""

from __future__ import annotations

import re

from amaranth.back.verilog import convert

from cuelight_rtl.params import Params

from .pcie.top import PcieBenchTop
from .top import BenchTop

__all__ = ["SOCKETS", "verilog"]

SOCKETS: dict[str, type[BenchTop] | type[PcieBenchTop]] = {"bench": BenchTop, "pcie": PcieBenchTop}
"""By the names of their Verilog modules."""


def verilog(socket: str, params: Params) -> str:
    """A socket with a scheduler of this size in it."""
    top = SOCKETS[socket](params)
    text: str = convert(top, name=socket, ports=top.ports, emit_src=False, strip_internal_attrs=True)
    # Icarus runs a block only when an input of it changes, and Amaranth wants a run at the start: there is no change
    # where a declaration gives the value, nor where a block reads nothing, nor always where it is one assignment.
    text = re.sub(r"reg (\\\$auto\$verilog_backend\S+ ) = 0;", r"reg \1; initial \1 = 0;", text)
    text = re.sub(r"always @\*(\n +\S+ (?:\[[\d:]+\] )?= \d+'h[0-9a-f]+;)", r"initial\1", text)
    return re.sub(r"always @\*(\n +\S+ (?:\[[\d:]+\] )?= .*;)", r"always_comb\1", text)
