"""What counts as reached, and what can't be."""

from __future__ import annotations

import pytest

from cuelight import regmap
from cuelight.regmap import CommitKind, PageSchedAttr, PageSchedCmd
from cuelight_formal.proofs import PROOFS
from cuelight_rtl.params import Params
from cuelight_sim.commands import CANCEL
from cuelight_sim.coverage.family import Family
from cuelight_sim.coverage.model import FAMILIES, Coverage
from cuelight_sim.lockstep import Lockstep, Rest, Run, Write, play
from cuelight_sim.runs import fresh_lockstep
from cuelight_sim.steps import Event

SMALL = Params(slots=64, seats=16, lanes=2, stages=8)
REQUEST = 0x1_0000
ATTRIBUTES = Write(regmap.PAGE + regmap.Page.SCHED_ATTR, PageSchedAttr(automatic=1, rows=20).pack())


def command(stage: int, strobe: int = 0xFF, page: int = 0) -> Write:
    offset = regmap.PAGE + page * regmap.PAGE_STRIDE + regmap.Page.SCHED_CMD
    return Write(offset, PageSchedCmd(id=REQUEST, stage=stage).pack(), strobe)


def watched() -> tuple[Lockstep, Coverage]:
    lockstep, coverage = fresh_lockstep(SMALL), Coverage()
    coverage.watch(lockstep)
    play([Run(100)], lockstep)
    return lockstep, coverage


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.title)
def test_bins_have_names_of_their_own_and_proofs_that_there_are(family: type[Family]) -> None:
    assert len(set(family.bins)) == len(family.bins)
    assert set(family.unreachable) <= set(family.bins)
    assert set(family.unreachable.values()) <= {proof.name for proof in PROOFS}


def test_a_life_is_counted_from_what_the_device_did() -> None:
    lockstep, coverage = watched()
    play([ATTRIBUTES, command(0, 0xF0), command(0, 0x0F), Rest()], lockstep)
    play([command(CANCEL), Rest()], lockstep)
    for name in (
        "arrival of bytes: command high half first",
        "admissions and offers: automatic, tier 0",
        "a host's acts in each state of a request: cancel: prefilling, in a pass, plain",
        "acts from outside in each situation of a group: cancel: dispatch out",
        "the device's steps in each state of a request: SEAT: at its start, plain",
        "chunks: the branches of the policy: the rest of a prompt",
        "dispatches: of stage 1, depth 2",
    ):
        assert coverage.counts[name] == 1, name


def test_what_a_disabled_page_asks_is_no_act_on_a_request() -> None:
    lockstep, coverage = watched()
    play([ATTRIBUTES, command(0), Rest(), command(CANCEL, page=3), Rest()], lockstep)
    assert coverage.counts["refused commands: PAGE_DISABLED cancel"] == 1
    assert not any(": cancel:" in name for name in coverage.counts)


def test_half_a_command_counts_for_nothing_until_it_is_whole() -> None:
    lockstep, coverage = watched()
    play([command(0, 0xF0), Rest()], lockstep)
    assert not any("command" in name for name in coverage.counts)


def test_a_run_that_comes_to_what_is_proven_unreachable_is_an_error() -> None:
    _, coverage = watched()
    with pytest.raises(ValueError, match="see why the proof order says it can't be"):
        coverage.before(Event(CommitKind.GROUP_READY, lane=0))
