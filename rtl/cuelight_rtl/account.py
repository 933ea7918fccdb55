"""How much state a scheduler holds."""

from __future__ import annotations

from collections import Counter

from amaranth.hdl import Fragment
from amaranth.hdl._ir import build_netlist
from amaranth.hdl._nir import FlipFlop, Memory

from .params import Params
from .top.twin import TwinTop

__all__ = ["state_bits"]


def state_bits(params: Params) -> dict[str, int]:
    """Bits of state in each room of a scheduler, memories and flip-flops, counted in its netlist.

    Returns
    -------
    dict
        From ``room, memory`` (one entry a RAM) and ``room, registers`` to bits, largest first.
    """
    top = TwinTop(params)
    netlist = build_netlist(Fragment.get(top, None), ports=top.ports)
    bits: Counter[str] = Counter()
    for cell in netlist.cells:
        module = netlist.modules[getattr(cell, "module_idx", 0)]
        room = ".".join(module.name[2:]) or "scheduler"
        if isinstance(cell, Memory):
            bits[f"{room}, memory"] += cell.width * cell.depth
        elif isinstance(cell, FlipFlop):
            bits[f"{room}, registers"] += len(cell.data)
    return dict(bits.most_common())
