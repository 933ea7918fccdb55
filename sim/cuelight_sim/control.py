"""Writes of control registers and how they are validated (docs/device.md §5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from cuelight import regmap
from cuelight.regmap import CommitKind

from .group import Group
from .lane import Lane
from .state import State
from .steps import Event, Step
from .tiers import Tier

__all__ = ["ControlWrites"]

_MAX_ROWS = 512
_ROWS_BESIDE_SEATS = 16
_HALF = 0xFFFF
_PIPELINES = (1, 2, 4, 8)

Setting = tuple[Callable[[int], Sequence[bool]], Callable[[int], None]]
"""Verdicts on a value, alternatives where one can't be told, and what it does once accepted."""


class ControlWrites:
    """Takes control writes.

    Parameters
    ----------
    state
        What they act on.
    owe
        Is told of the commit that a write owes, as alternatives.
    """

    def __init__(self, state: State, owe: Callable[[Callable[[], Sequence[Step]]], None]) -> None:
        self._state = state
        self._owe = owe

    def writers(self) -> dict[int, Callable[[int], None]]:
        """What a whole write of each control register does, by offset."""
        settings: dict[int, Setting] = {
            regmap.CONTROL + regmap.Control.PAGE_ENABLE: (lambda mask: [mask <= 0xFF], self._set_pages),
            regmap.CONTROL + regmap.Control.STAGE_COUNT: (self._judge_stage_count, self._set_stage_count),
        }
        for group in self._state.groups:
            settings.update(self._group_settings(group))
        for lane in self._state.lanes:
            settings.update(self._lane_settings(lane))
        for number, tier in enumerate(self._state.tiers):
            settings.update(self._tier_settings(tier, regmap.TIER + number * regmap.TIER_STRIDE))
        writers: dict[int, Callable[[int], None]] = {
            offset: partial(self._write, offset, *setting) for offset, setting in settings.items()
        }
        writers[regmap.CONTROL + regmap.Control.GROUP_RESET] = self._write_group_reset
        return writers

    def _group_settings(self, group: Group) -> dict[int, Setting]:
        seats = self._state.sizes.seats
        costs = group.costs

        def chunk_cost(value: int) -> None:
            _disturb([group])
            fields = regmap.GroupCostChunk.unpack(value)
            costs.c0, costs.c1 = fields.c0, fields.c1

        def kv_blocks(count: int) -> None:
            group.kv_blocks = group.kv_free = count

        base = regmap.GROUP + group.index * regmap.GROUP_STRIDE
        return {
            base + regmap.Group.SEATS: (
                lambda count: [1 <= count <= seats and count + _ROWS_BESIDE_SEATS <= group.rows and group.empty],
                partial(setattr, group, "seats"),
            ),
            base + regmap.Group.ROWS: (
                lambda count: [group.seats + _ROWS_BESIDE_SEATS <= count <= _MAX_ROWS and group.empty],
                partial(setattr, group, "rows"),
            ),
            base + regmap.Group.KV_BLOCKS: (lambda count: [count <= _HALF and group.empty], kv_blocks),
            base + regmap.Group.COST: (lambda cost: [True], partial(setattr, costs, "budget")),
            base + regmap.Group.COST_DECODE: (lambda cost: [cost <= _HALF], partial(setattr, costs, "decode")),
            base + regmap.Group.COST_CHUNK: (lambda cost: [True], chunk_cost),
        }

    def _lane_settings(self, lane: Lane) -> dict[int, Setting]:
        state, stages = self._state, self._state.sizes.stages
        base = regmap.LANE + lane.index * regmap.LANE_STRIDE

        def judge_calm(fair: bool) -> Sequence[bool]:
            return state.group_of(lane).calm_verdicts(lane, fair)

        def set_calm(name: str, value: int) -> None:
            state.group_of(lane).end_loop()
            setattr(lane, name, value)

        def set_pipeline(lanes: int) -> None:
            for group in self._rearranged(lane, lanes):
                group.end_loop()
            lane.pipeline = lanes
            state.arrange_lanes()

        return {
            base + regmap.Lane.SEQUENCE: (
                lambda value: judge_calm(value & _HALF not in (0, _HALF)),
                partial(set_calm, "sequence"),
            ),
            base + regmap.Lane.DEPTH: (lambda count: judge_calm(count in (1, 2)), partial(set_calm, "depth")),
            base + regmap.Lane.FIRST_STAGE: (
                lambda stage: [stage < stages and state.group_of(lane).empty],
                partial(setattr, lane, "first_stage"),
            ),
            base + regmap.Lane.PIPELINE: (lambda lanes: self._may_serve(lane, lanes), set_pipeline),
        }

    def _may_serve(self, lane: Lane, lanes: int) -> tuple[bool, ...]:
        """Whether PIPELINE of a lane may become ``lanes``."""
        groups, first = self._state.groups, lane.index
        if lanes not in _PIPELINES or first % lanes or first + lanes > len(groups) or groups[first].absorbed:
            return (False,)
        concerned = self._rearranged(lane, lanes)
        if not all(group.empty and not group.resetting for group in concerned):
            return (False,)
        verdicts = [group.without_passes for group in concerned]
        return next((each for each in ((False,), (False, True)) if each in verdicts), (True,))

    def _rearranged(self, lane: Lane, lanes: int) -> Sequence[Group]:
        """Groups that the old or the new value of PIPELINE takes in."""
        return self._state.groups[lane.index : lane.index + max(lanes, lane.pipeline)]

    def _tier_settings(self, tier: Tier, base: int) -> dict[int, Setting]:
        seats = self._state.sizes.seats

        def min_rows(count: int) -> None:
            _disturb(self._state.groups)
            tier.min_rows = count

        return {
            base + regmap.Tier.MIN_SEATS: (lambda count: [count <= seats], partial(setattr, tier, "min_seats")),
            base + regmap.Tier.MIN_ROWS: (lambda count: [count <= _MAX_ROWS], min_rows),
            base + regmap.Tier.KV_FLOOR: (lambda blocks: [blocks <= _HALF], partial(setattr, tier, "kv_floor")),
            base + regmap.Tier.SEAT_FLOOR: (lambda count: [count <= seats], partial(setattr, tier, "seat_floor")),
        }

    def _write(
        self, offset: int, verdicts: Callable[[int], Sequence[bool]], effect: Callable[[int], None], value: int
    ) -> None:
        def judge() -> list[Step]:
            return [
                Step(Event(CommitKind.CONFIG, id=offset, detail=value), partial(effect, value))
                if accepted
                else Step(Event(CommitKind.CONFIG_IGNORED, id=offset, detail=value), self._count_refusal)
                for accepted in verdicts(value)
            ]

        self._owe(judge)

    def _count_refusal(self) -> None:
        self._state.counters.config_ignored += 1

    def _set_pages(self, mask: int) -> None:
        for number, page in enumerate(self._state.pages):
            if mask & ~self._state.control.pages & 1 << number:
                page.bare_since = self._state.cycle
        self._state.control.pages = mask

    def _judge_stage_count(self, count: int) -> list[bool]:
        return [1 <= count <= self._state.sizes.stages and all(group.empty for group in self._state.groups)]

    def _set_stage_count(self, count: int) -> None:
        self._state.control.stage_count = count

    def _write_group_reset(self, index: int) -> None:
        if index >= self._state.sizes.lanes or self._state.groups[index].absorbed:
            offset = regmap.CONTROL + regmap.Control.GROUP_RESET
            self._write(offset, lambda _: [False], lambda _: None, index)
        else:
            self._owe(lambda: [Step(Event(CommitKind.GROUP_RESET, index), self._state.groups[index].reset)])


def _disturb(groups: Iterable[Group]) -> None:
    """Tells passes being formed that what they may take along changes."""
    for group in groups:
        if group.forming is not None:
            group.forming.about_to_change()
