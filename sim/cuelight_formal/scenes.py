"""Scenes: what was written to a device before a proof looks at whatever is written next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.sim import SimulatorContext

from cuelight import regmap
from cuelight.regmap import PageSchedAttr, PageSchedCmd
from cuelight_rtl.regmap import CommitKind

from .spec import Spec
from .witness import Witness

__all__ = ["SCENES", "Scene", "play"]

_QUIET = 40
"""Cycles after which nothing more happens without a write."""


@dataclass(frozen=True)
class Scene:
    """Writes, each 8 bytes at an offset, and how many cycles pass after the last one.

    Attributes
    ----------
    writes
        Offset and data; after each the device comes to rest.
    then
        Cycles from the last write's acceptance to where the proof begins.
    reached
        Situations that a proof must reach from there: a sentence, and what the core must have committed.
    """

    writes: Sequence[tuple[int, int]]
    then: int
    reached: Sequence[tuple[str, Sequence[CommitKind]]]


def play(spec: Spec, room: Witness, scene: Scene) -> None:
    """Lets the proof begin where the scene ends."""

    async def run(context: SimulatorContext) -> None:
        bus = room.bus
        context.set(bus.write, 1)
        context.set(bus.strobe, 0xFF)
        await context.tick().repeat(_QUIET)
        for offset, data in scene.writes:
            context.set(bus.address, offset)
            context.set(bus.data, data)
            context.set(bus.valid, 1)
            await context.tick().until(bus.ready)
            context.set(bus.valid, 0)
            last = (offset, data) == scene.writes[-1]
            await context.tick().repeat(scene.then if last else _QUIET)

    spec.begin_after(run)


def _control(offset: int, value: int) -> tuple[int, int]:
    return regmap.CONTROL + offset, value


def _admit(slot: int, **attributes: int) -> list[tuple[int, int]]:
    """An automatic request of epoch 1."""
    return [
        (regmap.PAGE + regmap.Page.SCHED_ATTR, PageSchedAttr(automatic=1, kv_blocks=3, **attributes).pack()),
        (regmap.PAGE + regmap.Page.SCHED_CMD, PageSchedCmd(stage=0, id=1 << 16 | slot).pack()),
    ]


def _done(sequence: int, finished: int = 0) -> list[tuple[int, int]]:
    entry = regmap.COMPLETION + regmap.Completion.SIZE * (sequence % 16)
    return [(entry, finished), (entry + regmap.Completion.BATCH_DONE, sequence)]


_CONFIGURED = [
    _control(regmap.Control.STAGE_COUNT, 4),
    (regmap.GROUP + regmap.Group.KV_BLOCKS, 9),
    (regmap.GROUP + regmap.Group.ROWS, 18),
]

_BOTH_SIT = [*_CONFIGURED, *_admit(0, tier=3, rows=20), *_admit(1, tier=3, rows=8)]
_BOTH_RUN = [*_BOTH_SIT, *_admit(2, tier=3, rows=8), *_done(1), *_done(2)]

SCENES = {
    "loop": Scene(
        [*_BOTH_RUN, *_done(3), *_done(4), *_done(5, finished=1)],
        1,
        [("One retires, one goes on.", (CommitKind.LOOP_POINT, CommitKind.RETIRE, CommitKind.ADVANCE))],
    ),
}
