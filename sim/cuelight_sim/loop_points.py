"""Exact cycles of dispatches and loop points of the RTL, with every slot in use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cuelight import regmap
from cuelight.regmap import CommitKind, PageSchedAttr, PageSchedCmd
from cuelight_rtl.model import Model
from cuelight_rtl.params import Params

__all__ = ["Lane", "LoopPoint"]

_STAGES = 9
_LONG = 5000
_SHORT = 8
_DELAY = 9
_DELAYS = 24
"""Places in a loop point at which a completion of another lane is tried, so many cycles apart."""
_FINISHING = (0, 1, 0, 1, 0, 2, 0, 4, 0, 8, 0, 16, 0, 0)
"""Requests that finish in each pass once the house is full."""


@dataclass(frozen=True, slots=True)
class LoopPoint:
    """What changed at a loop point, and how long it took."""

    seats: int
    """Seats of the group, all taken."""
    left: int
    joined: int
    chunks: int
    """Seats that did not join just now and brought a chunk to the pass before or bring one to the next."""
    cycles: int
    """From the acceptance of the pass's last BATCH_DONE to the next pass's first dispatch in the poll head."""

    @property
    def changed(self) -> int:
        """Seats that joined, left or brought a chunk."""
        return self.left + self.joined + self.chunks


class Lane:
    """Lane 0 of a device whose slots are all in use, and lane 1 beside it.

    Parameters
    ----------
    params
        Sizes of the device.
    seats
        GROUP.SEATS of every group.
    depth
        LANE.DEPTH of every lane.
    long
        One of so many requests that come after the first houseful has a long prompt; 0: none.
    parked
        Requests of group 0 that are parked while their long prompts are read.
    """

    def __init__(self, params: Params, seats: int, depth: int, long: int = 0, parked: int = 0) -> None:
        self._seats = seats
        self._model = model = Model(params)
        model.write(regmap.CONTROL + regmap.Control.STAGE_COUNT, _STAGES)
        for group in range(params.lanes):
            model.write(regmap.GROUP + group * regmap.GROUP_STRIDE + regmap.Group.SEATS, seats)
            model.write(regmap.LANE + group * regmap.LANE_STRIDE + regmap.Lane.DEPTH, depth)
        model.run_until_idle()
        for slot in range(params.slots):
            number, group = divmod(slot, params.lanes)
            parks = group == 0 and number < parked
            rows = _LONG if parks or (long and number >= seats and number % long == 0) else _SHORT
            attributes = PageSchedAttr(automatic=1, rows=rows, group=group)
            model.write(regmap.PAGE + regmap.Page.SCHED_ATTR, attributes.pack(), width=8)
            model.write(regmap.PAGE + regmap.Page.SCHED_CMD, PageSchedCmd(id=1 << 16 | slot).pack(), width=8)
        model.run_until_idle()
        for number in range(parked):
            model.write(regmap.PAGE + regmap.Page.PARK, 1 << 16 | number * params.lanes)
        self._oldest = [regmap.Lane.SEQUENCE_RESET] * params.lanes
        self._filling = seats // regmap.Record.ENTRY_COUNT + 2
        """Passes after which all the house decodes."""

    def inside(self) -> int:
        """Worst cycles from the acceptance of BATCH_DONE inside a pass to the next dispatch in the poll head."""
        worst = 0
        for _ in range(2 * _STAGES):
            span, crossed = self._measure(0)
            if span is not None and crossed is None:
                worst = max(worst, span)
        return worst

    def inside_beside_loop_point(self) -> int:
        """The same at depth 1, wherever the completion falls in a loop point of lane 1 at which 16 requests change."""
        worst = 0
        for number in range(self._filling + _DELAYS):
            finished = self._decoding(1, 16) if number >= self._filling else 0
            while not self._is_last(1):
                self._complete(1, 0)
                self._model.run_until_idle()
            if self._is_last(0):
                self._complete(0, 0)
                self._model.run_until_idle()
            self._complete(1, finished)
            self._model.step(number * _DELAY)
            span, _ = self._measure(0)
            assert span is not None
            worst = max(worst, span)
        return worst

    def loop_points(self) -> Iterator[LoopPoint]:
        """Loop points of a full house, with few and many changes."""
        for number, finishing in enumerate((*[0] * self._filling, *_FINISHING)):
            seats = self._decoding(0, finishing)
            crossed = None
            while crossed is None:
                _, crossed = self._measure(seats)
            if number >= self._filling:
                yield crossed

    def _decoding(self, lane: int, count: int) -> int:
        """The lowest seats that decode in a lane's pass, as a bitmap."""
        record = regmap.POLL + lane * regmap.POLL_STRIDE + regmap.Poll.RECORD
        base = record + regmap.Record.BITMAP + regmap.BitmapUnit.WORD
        bitmap = self._model.read(base) | self._model.read(base + regmap.BitmapUnit.WORD_STRIDE) << 32
        chosen = 0
        for _ in range(count):
            chosen |= bitmap & -bitmap
            bitmap &= bitmap - 1
        return chosen

    def _is_last(self, lane: int) -> bool:
        """Whether the dispatch in a lane's poll head is the last of its pass."""
        base = regmap.POLL + lane * regmap.POLL_STRIDE + regmap.Poll.DISPATCH
        return bool(regmap.DispatchHead.unpack(self._model.read(base + regmap.Dispatch.HEAD, width=8)).last)

    def _complete(self, lane: int, finished: int) -> None:
        """Completes a lane's oldest dispatch."""
        sequence = self._oldest[lane]
        self._oldest[lane] += 1
        entry = regmap.COMPLETION + lane * regmap.COMPLETION_STRIDE + sequence % 16 * regmap.COMPLETION_ENTRY_STRIDE
        for word in range(2):
            if finished >> 32 * word & 0xFFFF_FFFF:
                offset = regmap.Completion.FINISHED + word * regmap.Completion.FINISHED_STRIDE
                self._model.write(entry + offset, finished >> 32 * word & 0xFFFF_FFFF)
        self._model.write(entry + regmap.Completion.BATCH_DONE, sequence)

    def _measure(self, finished: int) -> tuple[int | None, LoopPoint | None]:
        """Completes lane 0's oldest dispatch: cycles to the next one, if one was due, and a loop point between them."""
        model = self._model
        model.commits.clear()
        self._complete(0, finished)
        accepted = model.accepted_at
        model.run_until_idle()
        commits = [commit for commit in model.commits if commit.lane == 0 and commit.cycle >= accepted]
        dispatch = next((commit for commit in commits if commit.kind == CommitKind.DISPATCH), None)
        if dispatch is None:
            return None, None
        # A dispatch stands in the poll head from the cycle after its commit on.
        span = dispatch.cycle - accepted + 1
        if not any(commit.kind == CommitKind.LOOP_POINT for commit in commits):
            return span, None
        named = {kind: {commit.stage for commit in commits if commit.kind == kind} for kind in CommitKind}
        joined = named[CommitKind.SEAT]
        chunks = (named[CommitKind.ADVANCE] | named[CommitKind.CHUNK]) - joined
        left = sum(commit.kind == CommitKind.RETIRE for commit in commits)
        return span, LoopPoint(self._seats, left, len(joined), len(chunks), span)
