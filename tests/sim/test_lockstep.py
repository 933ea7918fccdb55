"""RTL and golden model in lockstep on random writes; and that lockstep would notice."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cuelight import regmap
from cuelight.regmap import CommitKind
from cuelight_rtl.model import Commit
from cuelight_rtl.params import Params
from cuelight_sim.coverage.model import Coverage
from cuelight_sim.driver import Driver
from cuelight_sim.golden import Golden
from cuelight_sim.lockstep import Lockstep, Operation, Rest, Run, Write, play, shrink
from cuelight_sim.runs import fresh_lockstep, run_random
from cuelight_sim.steps import Divergence

SMALL = Params(slots=64, seats=16, lanes=2, stages=8)
ADMIT: list[Operation] = [
    Write(regmap.PAGE + regmap.Page.SCHED_ATTR, regmap.PageSchedAttr(automatic=1, rows=20).pack()),
    Write(regmap.PAGE + regmap.Page.SCHED_CMD, regmap.PageSchedCmd(id=0x1_0000).pack()),
]
PARK: list[Operation] = [
    Write(regmap.PAGE + regmap.Page.PARK, 0x1_0000, 0x0F),
    Write(regmap.PAGE + regmap.Page.CREDIT, 0x1_0000, 0x0F),
]
Twist = Callable[[Commit], Commit]


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(choices=st.randoms(use_true_random=False), steps=st.integers(1, 60))
def test_models_agree_on_whatever_is_written(choices: random.Random, steps: int) -> None:
    lockstep = fresh_lockstep(SMALL)
    driver = Driver(choices, lockstep)
    driver.settle()
    driver.steps(steps)
    driver.drain()


@pytest.mark.parametrize("sizes", [SMALL, Params()], ids=lambda sizes: sizes.tag)
def test_models_agree_for_long_and_much_was_reached(sizes: Params) -> None:
    """Benches reach every bin of coverage; chance must get to most of them, or it has lost its bite."""
    coverage = Coverage()
    for seed in range(2):
        run_random(seed, 2500, sizes, coverage)
    assert len(coverage.counts) > 450, coverage.missing


def test_all_of_the_window_is_compared() -> None:
    lockstep = fresh_lockstep(Params())
    play(ADMIT, lockstep)
    lockstep.compare_window()
    assert lockstep.golden.lanes[0].outstanding is not None


def change(kind: CommitKind, **fields: int) -> Twist:
    """Shows commits of ``kind`` with other fields."""
    return lambda commit: commit._replace(**fields) if commit.kind == kind else commit


@pytest.mark.parametrize(
    ("twist", "complaint"),
    [
        (change(CommitKind.ADMIT, detail=1), "ADMIT.*is not legal; legal now: ADMIT"),
        (change(CommitKind.SEAT, stage=1), "SEAT.*is not legal; legal now: SEAT"),
        (change(CommitKind.CHUNK, detail=0xC080_0000), "CHUNK.*is not legal; legal now: CHUNK"),
        (change(CommitKind.FORM, port=1), "FORM.*came on commit port 1, not 0"),
        (change(CommitKind.PLAN, stage=1), "PLAN.*is not legal; legal now: PLAN"),
        (change(CommitKind.DISPATCH, id=2), "DISPATCH.*is not legal; legal now: DISPATCH"),
        (change(CommitKind.DISPATCH, cycle=3), "came after one of cycle"),
        (change(CommitKind.PARK, stage=0), "PARK.*is not legal; legal now: PARK"),
        (change(CommitKind.CREDIT, stage=0), "CREDIT.*is not legal; legal now: CREDIT"),
    ],
)
def test_a_wrong_commit_is_noticed(player: Callable[..., Any], twist: Twist, complaint: str) -> None:
    device = player(SMALL)
    device.twist = twist
    with pytest.raises(Divergence, match=complaint):
        play([Run(100), *ADMIT, *PARK, Rest()], Lockstep(device, Golden(SMALL)))


def test_a_missing_commit_is_noticed(player: Callable[..., Any]) -> None:
    device = player(SMALL)
    lockstep = Lockstep(device, Golden(SMALL))
    play([Run(100), *ADMIT, Rest()], lockstep)
    device.write(0xA040, 1, 8, 0xF)
    device.write(0xA060, 1, 8, 0xF)
    device.commits.clear()
    with pytest.raises(Divergence):
        lockstep.rest()


def test_a_wrong_register_is_noticed(player: Callable[..., Any]) -> None:
    lockstep = Lockstep(player(SMALL), Golden(SMALL))
    lockstep.rest()
    lockstep.golden.counters.rows += 1
    with pytest.raises(Divergence, match="at rest 0x8a28 reads 0x00000000, not 0x00000001"):
        lockstep.rest()


def test_a_script_is_shrunk_to_what_matters(player: Callable[..., Any]) -> None:
    def fresh() -> Lockstep:
        device = player(SMALL)
        device.twist = change(CommitKind.CONFIG_IGNORED, detail=0)
        return Lockstep(device, Golden(SMALL))

    page_enable = regmap.CONTROL + regmap.Control.PAGE_ENABLE
    script: list[Operation] = [Run(5), Write(page_enable, 0xFF, 0xF), Write(page_enable, 0x100, 0xF), Run(7)]
    assert shrink(script, fresh)[0] == Write(page_enable, 0x100, 0xF)
    assert len(shrink(script, fresh)) <= 2
