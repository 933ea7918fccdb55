"""The RTL stepped from Python."""

from __future__ import annotations

import pytest

from cuelight_rtl import regmap
from cuelight_rtl.model import NS_PER_CYCLE, Commit, Model, Request
from cuelight_rtl.params import Params
from cuelight_rtl.regmap import CommitKind

COMMAND = regmap.PAGE + regmap.Page.SCHED_CMD
STAGE_DONE = regmap.PAGE + regmap.Page.STAGE_DONE
ROWS = regmap.GROUP + regmap.Group.ROWS


@pytest.fixture
def model() -> Model:
    model = Model(Params(slots=64, seats=16, lanes=2), nonce=0x0123_4567_89AB_CDEF)
    model.run_until_idle()
    model.commits.clear()
    return model


def kinds(model: Model) -> list[int]:
    return [commit.kind for commit in model.commits]


def test_registers_are_read_at_both_widths(model: Model) -> None:
    nonce = regmap.IDENTITY + regmap.Identity.BOOT_NONCE
    assert model.read(nonce, 8) == 0x0123_4567_89AB_CDEF
    assert (model.read(nonce), model.read(nonce + 4)) == (0x89AB_CDEF, 0x0123_4567)


def test_a_write_is_complete_when_it_returns(model: Model) -> None:
    model.write(ROWS, 100)
    assert kinds(model) == [CommitKind.CONFIG]
    assert model.read(ROWS) == 100


def test_bytes_of_a_write_can_be_left_out(model: Model) -> None:
    model.write(ROWS, 100, strobe=0x7)
    assert (kinds(model), model.read(ROWS)) == ([], 256)
    for byte in range(8):
        model.write(COMMAND - COMMAND % 8, 3 | 0x1_0000 << 32, width=8, strobe=1 << byte)
        assert [kind for kind in kinds(model) if kind != CommitKind.OFFER] == [CommitKind.ADMIT] * (byte == 7)


def test_commits_come_in_order_with_their_cycle(model: Model) -> None:
    accepted = []
    for request_id in (0xA_0000, 0xB_0000, 0xC_0000):
        model.write(STAGE_DONE, request_id)
        accepted.append(model.accepted_at)
    assert [(commit.kind, commit.id) for commit in model.commits] == [
        (CommitKind.STAGE_DONE_IGNORED, request_id) for request_id in (0xA_0000, 0xB_0000, 0xC_0000)
    ]
    for commit, at, following in zip(model.commits, accepted, [*accepted[1:], model.cycles], strict=True):
        assert isinstance(commit, Commit)
        assert at <= commit.cycle < following


def test_a_request_is_accepted_only_when_the_device_is_ready(model: Model) -> None:
    request = Request(STAGE_DONE, write=True, data=0x5_0000, strobe=0x0F)
    outcomes = []
    for _ in range(20):
        ready = model.ready
        assert model.cycle(request) == ready
        outcomes.append(ready)
    model.run_until_idle()
    assert {True, False} == set(outcomes)
    assert kinds(model) == [CommitKind.STAGE_DONE_IGNORED] * outcomes.count(True)


def test_cycles_and_time_move_only_when_stepped(model: Model) -> None:
    before = model.cycles
    assert model.idle
    assert model.cycles == before
    model.step(5)
    assert model.cycles == before + 5
    assert model.read(regmap.IDENTITY + regmap.Identity.TIME_NS, 8) % NS_PER_CYCLE == 0
    first = model.read(regmap.IDENTITY + regmap.Identity.CYCLES, 8)
    model.step(1000)
    assert model.read(regmap.IDENTITY + regmap.Identity.CYCLES, 8) - first >= 1000


def test_interrupts_show_what_waits(model: Model) -> None:
    assert model.interrupts == (False, False, False)
    model.write(COMMAND, 0, width=8)
    model.run_until_idle()
    assert model.interrupts == (False, True, False)


def test_a_model_that_is_never_idle_is_reported() -> None:
    with pytest.raises(TimeoutError, match="not done at cycle 10"):
        Model(Params(slots=64, seats=16, lanes=2)).run_until_idle(limit=10)


def test_models_are_independent_of_each_other(model: Model) -> None:
    other = Model(model.params, nonce=2)
    model.write(ROWS, 99)
    assert other.read(ROWS) == 256
    assert other.read(regmap.IDENTITY + regmap.Identity.BOOT_NONCE, 8) == 2
