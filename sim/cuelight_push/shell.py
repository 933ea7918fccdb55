"""A scheduler with its push, as it stands between the completer and the hard block."""

from __future__ import annotations

from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from cuelight_rtl.bus.arbiter import Arbiter
from cuelight_rtl.bus.pcie_usp.push import Push
from cuelight_rtl.bus.pcie_usp.streams import RC, RQ
from cuelight_rtl.params import Params
from cuelight_rtl.registers import Bus
from cuelight_rtl.regmap import CommitKind, PushMode
from cuelight_rtl.scheduler import Scheduler

__all__ = ["TICK_CYCLES", "Shell"]

TICK_CYCLES = 2
"""Cycles of a microsecond: time passes quickly here."""


class Shell(wiring.Component):
    """``host`` is a master of BAR0's first part, ``registers`` one of its last 8 KiB, ``table`` one of BAR2.

    Parameters
    ----------
    params
        Sizes of the scheduler.
    """

    def __init__(self, params: Params) -> None:
        self._params = params
        lanes = params.lanes
        super().__init__(
            {
                "host": In(Bus()),
                "registers": In(Bus()),
                "table": In(Bus()),
                "rq": Out(RQ),
                "rc": In(RC),
                "mastering": In(1),
                "max_payload": In(2),
                "msix_enable": In(1),
                "msix_mask": In(1),
                "modes": Out(PushMode).array(lanes),
                "valid": Out(lanes),
                "kind": Out(5).array(lanes),
                "id": Out(32).array(lanes),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.scheduler = scheduler = Scheduler(self._params)
        m.submodules.push = push = Push(self._params, tick_cycles=TICK_CYCLES)
        m.submodules.arbiter = arbiter = Arbiter()
        connect(m, flipped(self.host), arbiter.masters[0])
        connect(m, push.bus, arbiter.masters[1])
        connect(m, arbiter.bus, scheduler.bus)
        for name in ("registers", "table", "rq", "rc"):
            connect(m, flipped(getattr(self, name)), getattr(push, name))
        steps = scheduler.commits[1:-1]
        m.d.comb += [
            push.poll_valid.eq(scheduler.poll_valid),
            push.hit.eq(Cat(step.valid & (step.kind == CommitKind.REOFFERED) for step in steps)),
            push.irq_reject.eq(scheduler.irq_reject),
            push.irq_retire.eq(scheduler.irq_retire),
            *(getattr(push, n).eq(getattr(self, n)) for n in ("mastering", "max_payload", "msix_enable", "msix_mask")),
            self.valid.eq(Cat(step.valid for step in steps)),
        ]
        for lane, (step, mode) in enumerate(zip(steps, push.modes, strict=True)):
            m.d.comb += [self.kind[lane].eq(step.kind), self.id[lane].eq(step.id), self.modes[lane].eq(mode.mode)]
        return m
