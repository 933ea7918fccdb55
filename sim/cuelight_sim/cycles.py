"""Exact cycle counts of the RTL with every slot in use."""

from __future__ import annotations

from dataclasses import dataclass

from cuelight import regmap
from cuelight.regmap import CommitKind, PageReqStatus, PageSchedAttr, PageSchedCmd
from cuelight_rtl.model import Model
from cuelight_rtl.params import Params

__all__ = ["Cycles", "measure"]

_STAGES = 9
_PASSES = 16
_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class Cycles:
    """Cycles, the worst of what was measured."""

    command_to_status: int
    """From the acceptance of SCHED_CMD to that of a read of REQ_STATUS that shows the admission."""
    manual_admission: float
    """Mean over the later half of as many admissions as there are slots, one SCHED_CMD after the other."""
    automatic_admission: float
    """The same, with a SCHED_ATTR before each SCHED_CMD; all seats are taken by then."""
    automatic_admission_beside_seating: float
    """The same over the first half, in which seats are taken and the first pass is formed between the commands."""
    done_to_dispatch: int
    """From the acceptance of BATCH_DONE inside a pass to the next dispatch in the poll head."""
    loop_to_dispatch: int
    """From the acceptance of a pass's last BATCH_DONE to the next pass's first dispatch, every seat decoding."""
    turnover_to_dispatch: int
    """The same, where one request finishes and another takes its seat."""


def measure(params: Params) -> Cycles:
    """Measure a scheduler of this size.

    Raises
    ------
    RuntimeError
        The scheduler refused an admission, or made no dispatch in a thousand cycles.
    """
    manual, _ = _admit_all(params, automatic=False)
    automatic, model = _admit_all(params, automatic=True)
    inside, loop, turnover = _serve(model)
    return Cycles(
        command_to_status=_command_to_status(params),
        manual_admission=_mean_step(manual[params.slots // 2 :]),
        automatic_admission=_mean_step(automatic[params.slots // 2 :]),
        automatic_admission_beside_seating=_mean_step(automatic[: params.slots // 2]),
        done_to_dispatch=inside,
        loop_to_dispatch=loop,
        turnover_to_dispatch=turnover,
    )


def _mean_step(cycles: list[int]) -> float:
    return (cycles[-1] - cycles[0]) / (len(cycles) - 1)


def _ready(params: Params) -> Model:
    model = Model(params)
    model.write(regmap.CONTROL + regmap.Control.STAGE_COUNT, _STAGES)
    model.run_until_idle()
    return model


def _command(slot: int) -> int:
    return PageSchedCmd(stage=0, id=1 << 16 | slot).pack()


def _admit_all(params: Params, *, automatic: bool) -> tuple[list[int], Model]:
    """Cycles in which the admissions were accepted, and the model with all slots in use."""
    model = _ready(params)
    accepted = []
    for slot in range(params.slots):
        if automatic:
            attributes = PageSchedAttr(automatic=1, rows=8, group=slot % params.lanes)
            model.write(regmap.PAGE + regmap.Page.SCHED_ATTR, attributes.pack(), width=8)
        model.write(regmap.PAGE + regmap.Page.SCHED_CMD, _command(slot), width=8)
        accepted.append(model.accepted_at)
    active = PageReqStatus.unpack(model.read(regmap.PAGE + regmap.Page.REQ_STATUS)).active
    if active != params.slots:
        raise RuntimeError(f"{active} of {params.slots} slots are in use after as many admissions")
    return accepted, model


def _command_to_status(params: Params) -> int:
    model = _ready(params)
    worst = 0
    for slot in range(params.slots):
        model.write(regmap.PAGE + regmap.Page.SCHED_CMD, _command(slot), width=8)
        accepted = model.accepted_at
        status = PageReqStatus.unpack(model.read(regmap.PAGE + regmap.Page.REQ_STATUS))
        if status.active != slot + 1:
            raise RuntimeError(f"REQ_STATUS shows {status.active} requests after {slot + 1} admissions")
        worst = max(worst, model.accepted_at - accepted)
    return worst


def _serve(model: Model) -> tuple[int, int, int]:
    """Worst cycles inside a pass, at a loop point without and with turnover, on lane 0 with a full house."""
    inside = loop = turnover = 0
    model.run_until_idle()
    for number in range(_PASSES):
        # 16 requests a pass turn to decoding until the whole house does; then every other pass one finishes.
        finishing = number > _PASSES // 2 and number % 2 == 1
        model.commits.clear()
        while True:
            cycles, last = _complete(model, finished=1 if finishing else 0)
            if last:
                break
            inside = max(inside, cycles)
        if finishing:
            turnover = max(turnover, cycles)
        elif not any(commit.kind in (CommitKind.ADVANCE, CommitKind.CHUNK) for commit in model.commits):
            loop = max(loop, cycles)
    return inside, loop, turnover


def _complete(model: Model, finished: int) -> tuple[int, bool]:
    """Cycles from the completion of lane 0's dispatch to its next one, and whether a loop point lay between."""
    dispatch = model.read(regmap.POLL + regmap.Poll.DISPATCH + regmap.Dispatch.HEAD, width=8)
    head = regmap.DispatchHead.unpack(dispatch)
    entry = regmap.COMPLETION + head.sequence % 16 * regmap.COMPLETION_ENTRY_STRIDE
    model.write(regmap.POLL + regmap.Poll.POP, head.sequence)
    if finished:
        model.write(entry + regmap.Completion.FINISHED, finished)
    model.write(entry + regmap.Completion.BATCH_DONE, head.sequence)
    accepted = model.accepted_at
    for _ in range(_LIMIT):
        if model.poll_valid & 1:
            return model.cycles - accepted, bool(head.last)
        model.step(1)
    raise RuntimeError(f"no dispatch in {_LIMIT} cycles after the completion of {head.sequence}")
