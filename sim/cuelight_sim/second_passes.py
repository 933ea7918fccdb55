"""Exact cycles of second passes of the RTL, with every slot in use."""

from __future__ import annotations

from dataclasses import dataclass

from cuelight import regmap
from cuelight.regmap import CommitKind, FifoRetireHead, PageSchedAttr, PageSchedCmd
from cuelight_rtl.model import Commit, Model
from cuelight_rtl.params import Params

__all__ = ["SecondPass", "measure_second_pass"]

_STAGES = 9
_ROWS = 8
_VIP, _LOW = 0, 3
_PLACES = 2 * _STAGES
"""Places in a pass at which a VIP comes, one dispatch after the other."""


@dataclass(frozen=True, slots=True)
class SecondPass:
    """Cycles, the worst of many places in a pass."""

    command_to_form: int
    """From the acceptance of a VIP's SCHED_CMD, a seat being free, to the FORM of its second pass."""
    command_to_form_in_full_house: int
    """The same where a parked request of a lower tier has to be paused for it."""
    done_to_dispatch: int
    """From the acceptance of the BATCH_DONE that the second pass waits for to its first dispatch in the poll head."""


class _House:
    """Lane 0 with a pass of a low tier on its way, all seats but one decoding in it."""

    def __init__(self, params: Params, depth: int, *, full: bool) -> None:
        self._model = model = Model(params)
        self._oldest = regmap.Lane.SEQUENCE_RESET
        model.write(regmap.CONTROL + regmap.Control.STAGE_COUNT, _STAGES)
        model.write(regmap.LANE + regmap.Lane.DEPTH, depth)
        model.run_until_idle()
        low = [self._admit(_LOW) for _ in range(params.seats - (not full))]
        for _ in range(params.slots - len(low) - 1):
            model.write(regmap.PAGE + regmap.Page.SCHED_CMD, PageSchedCmd(stage=1, id=self._offer()).pack(), width=8)
            model.run_until_idle()
        for _ in range(_STAGES * (len(low) // regmap.Record.ENTRY_COUNT + 2)):
            self._complete(0)
        self._parked = low[-1] if full else 0
        self._park()

    def _park(self) -> None:
        """Parks one request of the low tier, where the house is to be full."""
        if self._parked:
            self._model.write(regmap.PAGE + regmap.Page.PARK, self._parked)
            for _ in range(2 * _STAGES):
                self._complete(0)

    def _offer(self) -> int:
        return self._model.read(regmap.PAGE + regmap.Page.OFFER_ID)

    def _admit(self, tier: int) -> int:
        request = self._offer()
        attributes = PageSchedAttr(automatic=1, tier=tier, rows=_ROWS)
        self._model.write(regmap.PAGE + regmap.Page.SCHED_ATTR, attributes.pack(), width=8)
        self._model.write(regmap.PAGE + regmap.Page.SCHED_CMD, PageSchedCmd(id=request).pack(), width=8)
        self._accepted = self._model.accepted_at
        self._model.run_until_idle()
        return request

    def _complete(self, finished: int) -> list[Commit]:
        """Completes the oldest dispatch; what the device does then."""
        model = self._model
        entry = regmap.COMPLETION + self._oldest % 16 * regmap.COMPLETION_ENTRY_STRIDE
        for word in range(regmap.Completion.FINISHED_COUNT):
            if bits := finished >> 32 * word & 0xFFFF_FFFF:
                model.write(entry + regmap.Completion.FINISHED + word * regmap.Completion.FINISHED_STRIDE, bits)
        model.write(regmap.POLL + regmap.Poll.POP, self._oldest)
        model.commits.clear()
        model.write(entry + regmap.Completion.BATCH_DONE, self._oldest)
        self._accepted = model.accepted_at
        self._oldest += 1
        model.run_until_idle()
        return model.commits

    def overtake(self) -> tuple[int, int]:
        """A VIP comes, runs and leaves: cycles from its command to FORM, and from BATCH_DONE to its first dispatch."""
        model = self._model
        model.commits.clear()
        self._admit(_VIP)
        formed = _cycle(model.commits, CommitKind.FORM) - self._accepted
        seat = next(commit.stage for commit in model.commits if commit.kind == CommitKind.CHUNK)
        commits = self._complete(0)
        # A dispatch stands in the poll head from the cycle after its commit on.
        sent = _cycle(commits, CommitKind.DISPATCH) - self._accepted + 1
        while not any(commit.kind == CommitKind.RETIRE for commit in model.commits):
            self._complete(1 << seat)
        head = FifoRetireHead.unpack(model.read(regmap.FIFO + regmap.Fifo.RETIRE_HEAD, width=8))
        model.write(regmap.FIFO + regmap.Fifo.RETIRE_POP, head.index)
        if self._parked:
            model.write(regmap.PAGE + regmap.Page.CREDIT, self._parked)
        model.run_until_idle()
        self._park()
        self._complete(0)
        return formed, sent


def measure_second_pass(params: Params, depth: int) -> SecondPass:
    """Measure a scheduler of this size, LANE.DEPTH being ``depth``."""
    free, full = (
        [house.overtake() for _ in range(_PLACES)]
        for house in (_House(params, depth, full=False), _House(params, depth, full=True))
    )
    return SecondPass(
        command_to_form=max(formed for formed, _ in free),
        command_to_form_in_full_house=max(formed for formed, _ in full),
        done_to_dispatch=max(sent for _, sent in (*free, *full)),
    )


def _cycle(commits: list[Commit], kind: CommitKind) -> int:
    return next(commit.cycle for commit in commits if commit.kind == kind)
