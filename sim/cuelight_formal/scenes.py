"""Scenes: what was written to a device before a proof looks at whatever is written next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.sim import SimulatorContext

from cuelight import regmap
from cuelight.regmap import PageSchedAttr, PageSchedCmd

from .spec import Spec
from .witness import Witness

__all__ = ["AFTER_RETIREMENT", "AT_LOOP_POINT", "SCENES", "WITH_SECOND_PASS", "Scene", "Write", "admit", "done", "play"]

_QUIET = 40
"""Cycles after which nothing more happens without a write."""

Write = tuple[int, int]
"""Of 8 bytes: offset and data."""


@dataclass(frozen=True)
class Scene:
    """After each write the device comes to rest; the proof begins one cycle after the acceptance of the last one."""

    writes: Sequence[Write]


def play(spec: Spec, room: Witness, scene: Scene) -> None:
    """Lets the proof begin where the scene ends."""

    async def run(context: SimulatorContext) -> None:
        bus = room.bus
        context.set(bus.write, 1)
        context.set(bus.strobe, 0xFF)
        for offset, data in scene.writes:
            await context.tick().repeat(_QUIET)
            context.set(bus.address, offset)
            context.set(bus.data, data)
            context.set(bus.valid, 1)
            await context.tick().until(bus.ready)
            context.set(bus.valid, 0)
        await context.tick()

    spec.begin_after(run)


def admit(slot: int, **attributes: int) -> list[Write]:
    """An automatic request of epoch 1."""
    return [
        (regmap.PAGE + regmap.Page.SCHED_ATTR, PageSchedAttr(automatic=1, kv_blocks=3, **attributes).pack()),
        (regmap.PAGE + regmap.Page.SCHED_CMD, PageSchedCmd(stage=0, id=1 << 16 | slot).pack()),
    ]


def done(sequence: int, finished: int = 0) -> list[Write]:
    """BATCH_DONE, and the seats that have finished."""
    entry = regmap.COMPLETION + regmap.Completion.SIZE * (sequence % 16)
    return [(entry, finished), (entry + regmap.Completion.BATCH_DONE, sequence)]


def pop_retirement(index: int) -> Write:
    return regmap.FIFO + regmap.Fifo.RETIRE_POP, index


_CONFIGURED = [
    (regmap.CONTROL + regmap.Control.STAGE_COUNT, 4),
    (regmap.GROUP + regmap.Group.KV_BLOCKS, 9),
    (regmap.GROUP + regmap.Group.ROWS, 18),
]
_BOTH_RUN = [
    *_CONFIGURED,
    *admit(0, tier=3, rows=20),
    *admit(1, tier=3, rows=8),
    *admit(2, tier=3, rows=8),
    *done(1),
    *done(2),
]

_AT_LOOP_POINT = [*_BOTH_RUN, *done(3), *done(4), *done(5, finished=1)]

AT_LOOP_POINT = Scene(_AT_LOOP_POINT)
"""A pass of two requests is at its loop point, one of them has finished, and a third waits."""
AFTER_RETIREMENT = Scene([*_AT_LOOP_POINT, pop_retirement(0)])
"""Then a pass of the two that are left has begun, and the host takes what retired."""
WITH_SECOND_PASS = Scene([*_CONFIGURED, *admit(0, tier=3, rows=20), *admit(1, tier=0, rows=8), *done(1)])
"""The first stage of a pass is complete, and a second pass is formed beside it, with a higher tier's prompt."""
SCENES = [AT_LOOP_POINT, AFTER_RETIREMENT, WITH_SECOND_PASS]
