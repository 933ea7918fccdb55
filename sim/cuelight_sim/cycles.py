"""Exact cycle counts of the RTL with every slot in use."""

from __future__ import annotations

from dataclasses import dataclass

from cuelight import regmap
from cuelight.regmap import PageReqStatus, PageSchedAttr, PageSchedCmd
from cuelight_rtl.model import Model
from cuelight_rtl.params import Params

from .loop_points import Lane, LoopPoint
from .second_passes import SecondPass, measure_second_pass

__all__ = ["Cycles", "measure"]

_STAGES = 9


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
    """From the acceptance of BATCH_DONE inside a pass to the next dispatch in the poll head, at depth 1."""
    done_to_dispatch_ahead: int
    """The same at depth 2: to the dispatch that joins the one that is still outstanding."""
    done_beside_loop_point: int
    """The same at depth 1, while a loop point of another group with 16 changes is under way."""
    second_passes: tuple[SecondPass, SecondPass]
    """Second passes at depth 1 and 2."""
    loop_points: tuple[LoopPoint, ...]
    """Loop points of full houses of all seats and of a quarter of them, with few and many changes."""
    beside_parked: tuple[LoopPoint, ...]
    """The same of a full house in which a quarter of the seats are parked in the midst of their prompts."""


def measure(params: Params) -> Cycles:
    """Measure a scheduler of this size.

    Raises
    ------
    RuntimeError
        The scheduler refused an admission.
    """
    manual = _admit_all(params, automatic=False)
    automatic = _admit_all(params, automatic=True)
    points = [
        point
        for seats in (params.seats // 4, params.seats)
        for long in (0, 3)
        for point in Lane(params, seats, depth=2, long=long).loop_points()
    ]
    return Cycles(
        command_to_status=_command_to_status(params),
        manual_admission=_mean_step(manual[params.slots // 2 :]),
        automatic_admission=_mean_step(automatic[params.slots // 2 :]),
        automatic_admission_beside_seating=_mean_step(automatic[: params.slots // 2]),
        done_to_dispatch=Lane(params, params.seats, depth=1).inside(),
        done_to_dispatch_ahead=Lane(params, params.seats, depth=2).inside(),
        done_beside_loop_point=Lane(params, params.seats, depth=1).inside_beside_loop_point(),
        second_passes=(measure_second_pass(params, depth=1), measure_second_pass(params, depth=2)),
        loop_points=tuple(points),
        beside_parked=tuple(Lane(params, params.seats, depth=2, parked=params.seats // 4).loop_points()),
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


def _admit_all(params: Params, *, automatic: bool) -> list[int]:
    """Cycles in which the admissions were accepted that take all slots in use."""
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
    return accepted


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
