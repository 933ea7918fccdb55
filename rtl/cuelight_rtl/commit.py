"""The commit port: every atomic step of the scheduler, in order (docs/device.md §8)."""

from amaranth.hdl import Module, ValueLike
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out

from .regmap import CommitKind

__all__ = ["Commit", "CommitPort", "report"]


class Commit(data.Struct):
    """What an atomic step did; the meaning of each field depends on ``kind``."""

    kind: 5
    lane: 3
    stage: 8
    id: 32
    detail: 32


class CommitPort(wiring.Signature):
    """One commit, valid for a cycle."""

    def __init__(self) -> None:
        super().__init__({"valid": Out(1), "step": Out(Commit)})


def report(m: Module, port: wiring.PureInterface, kind: CommitKind, **fields: ValueLike) -> None:
    """Shows a step of ``kind`` on ``port``, where the current condition holds; fields left out are zero."""
    m.d.comb += [port.valid.eq(1), port.step.kind.eq(kind)]
    m.d.comb += [port.step[name].eq(value) for name, value in fields.items()]
