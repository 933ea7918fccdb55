"""Runs of the whole device from its scenes on, in which its claims say something."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from amaranth.sim import SimulatorContext

from cuelight import regmap
from cuelight.regmap import PageSchedCmd
from cuelight_rtl.judge import CANCEL
from cuelight_rtl.params import Params

from .device import ADDRESSES, DATA, device
from .scenes import AFTER_RETIREMENT, AT_LOOP_POINT, SCENES, WITH_SECOND_PASS, Scene, Write, admit, done
from .witness import Witness

__all__ = ["tell_device"]


def _page(offset: int, slot: int, stage: int = 0) -> Write:
    """A write that names a slot's first request."""
    command = PageSchedCmd(stage=stage, id=1 << 16 | slot).pack()
    return regmap.PAGE + offset, command if offset == regmap.Page.SCHED_CMD else command >> 32


_STORIES: list[tuple[Scene, Sequence[Write]]] = [
    # Who has finished retires, the other goes on, and another comes.
    (AT_LOOP_POINT, admit(3, tier=3, rows=8)),
    # A slot is free again, and offered once the one before is not.
    (AFTER_RETIREMENT, admit(3, tier=3, rows=8)),
    # Who waits is cancelled, and retires without a seat.
    (AT_LOOP_POINT, [_page(regmap.Page.SCHED_CMD, 2, CANCEL)]),
    # Both passes go on, and what they do is taken, offered again, and complete.
    (WITH_SECOND_PASS, done(2)),
    (WITH_SECOND_PASS, [(regmap.POLL + regmap.Poll.POP, 2), (regmap.POLL + regmap.Poll.REOFFER, 2)]),
]


def tell_device(params: Params, cycles: int) -> list[int]:
    """Plays all stories; for each claim the first of ``cycles`` in which it says something, or -1."""
    reached: list[list[int]] = []
    for scene in SCENES:
        spec = device(params, scene, played=True)
        reached.append(spec.play([_script(spec.room, writes, cycles) for each, writes in _STORIES if each is scene]))
    return [min((cycle for cycle in firsts if cycle >= 0), default=-1) for firsts in zip(*reached, strict=True)]


def _script(room: Witness, writes: Sequence[Write], cycles: int) -> Callable[[SimulatorContext], bool]:
    """Makes the writes, one as soon as the one before is taken."""
    left = list(writes)
    bus, taken, cycle = room.bus, False, 0

    def script(context: SimulatorContext) -> bool:
        nonlocal taken, cycle
        if taken:
            left.pop(0)
        context.set(bus.valid, bool(left))
        if left:
            offset, data = left[0]
            assert (offset & ADDRESSES, data & DATA) == (offset, data), "the proof allows no such write"
            context.set(bus.address, offset)
            context.set(bus.data, data)
        taken = bool(left) and bool(context.get(bus.ready))
        cycle += 1
        return cycle > cycles

    return script
