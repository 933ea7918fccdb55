"""The commit port: every atomic step of the scheduler, in order (docs/device.md §8)."""

from __future__ import annotations

from amaranth.hdl import Module, ValueLike
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from .regmap import CommitKind

__all__ = ["CommitPort", "connect_step", "report"]

FIELDS = {"kind": 5, "lane": 3, "stage": 8, "id": 32, "detail": 32}


class CommitPort(wiring.Signature):
    """What an atomic step did, valid for a cycle; the meaning of each field depends on ``kind``."""

    def __init__(self) -> None:
        super().__init__({"valid": Out(1), **{name: Out(width) for name, width in FIELDS.items()}})


def report(m: Module, port: wiring.PureInterface, kind: CommitKind, **fields: ValueLike) -> None:
    """Shows a step of ``kind`` on ``port``, where the current condition holds; fields left out are zero."""
    m.d.comb += [port.valid.eq(1), port.kind.eq(kind)]
    m.d.comb += [getattr(port, name).eq(value) for name, value in fields.items()]


def connect_step(m: Module, source: wiring.PureInterface, *sinks: wiring.PureInterface) -> None:
    """Shows ``source``'s steps on each of ``sinks``."""
    for sink in sinks:
        m.d.comb += [getattr(sink, name).eq(getattr(source, name)) for name in ("valid", *FIELDS)]
