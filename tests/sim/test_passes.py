"""The golden model alone: second passes, pipelines, and whose dispatch comes next."""

from __future__ import annotations

import pytest

from cuelight import regmap
from cuelight.regmap import CommitKind, DispatchHead, PageSchedAttr, PageSchedCmd, RejectReason
from cuelight_sim.steps import Divergence

from .script import CORE, Script

FIRST, LAST, SAMPLES = 1, 2, 4
RECORD = regmap.POLL + regmap.Poll.RECORD
RESET = regmap.CONTROL + regmap.Control.GROUP_RESET
VIP, LOW = 0, 2


def lane_register(lane: int, register: int) -> int:
    return regmap.LANE + lane * regmap.LANE_STRIDE + register


def head(script: Script, lane: int = 0) -> DispatchHead:
    offset = regmap.POLL + lane * regmap.POLL_STRIDE + regmap.Poll.DISPATCH + regmap.Dispatch.HEAD
    return DispatchHead.unpack(script.reads(offset) | script.reads(offset + 4) << 32)


def script_of(lanes: int, stages: int = 4, depth: int = 1) -> Script:
    script = Script(lanes)
    script.configure(regmap.CONTROL + regmap.Control.STAGE_COUNT, stages)
    for lane in range(lanes):
        script.configure(lane_register(lane, regmap.Lane.DEPTH), depth)
    return script


# ------------------------------------------------------------------------------------------- second passes


def overtaken(tier: int = VIP) -> Script:
    """A request of a low tier in pass 0, its first dispatch outstanding, and one of another tier seated beside it."""
    script = script_of(1)
    script.admit(rows=5, tier=LOW)
    script.seat(tier=LOW)
    script.form(rows=5)
    script.dispatch(sequence=1, stage=1, rows=5, flags=FIRST | SAMPLES, cycles=30)
    script.admit(rows=7, slot=1, tier=tier)
    script.seat(1, tier=tier)
    return script


def test_a_prompt_of_a_higher_tier_gets_a_second_pass_which_goes_first() -> None:
    script = overtaken()
    script.form(rows=7, k=1, number=2, seat=1)
    script.complete(1, stage=1)
    with pytest.raises(Divergence, match=r"legal now: DISPATCH\(lane=0, stage=1"):
        script.dispatch(sequence=2, stage=2, rows=5, flags=SAMPLES, cycles=10)
    script.dispatch(sequence=2, stage=1, rows=7, flags=FIRST | SAMPLES, cycles=10, k=1)
    assert head(script).buffer == 2
    assert script.reads(RECORD + regmap.Record.ENTRY) == 0x1_0001
    assert script.reads(RECORD + regmap.Record.ENTRY + regmap.Entry.TAIL) == 2 << 16


def test_an_equal_tier_gets_no_second_pass() -> None:
    script = overtaken(tier=LOW)
    with pytest.raises(Divergence, match=r"PLAN.*is not legal; legal now: nothing of the kind"):
        script.form(rows=7, k=1, number=2, seat=1)


def run_second_pass(script: Script) -> None:
    """All dispatches of the second pass, up to its loop point."""
    script.form(rows=7, k=1, number=2, seat=1)
    script.complete(1, stage=1)
    for sequence, stage, place in ((2, 1, FIRST), (3, 2, 0), (4, 3, LAST)):
        script.dispatch(sequence, stage, rows=7, flags=SAMPLES | place, cycles=10, k=1)
        script.complete(sequence, stage)
    script.commit(CORE, CommitKind.LOOP_POINT, stage=1, id=2)
    script.commit(CORE, CommitKind.ADVANCE, stage=1, id=0x1_0001, detail=7 | 1 << 31)


def test_a_seat_of_the_second_pass_decodes_in_the_next_pass_0() -> None:
    script = overtaken()
    run_second_pass(script)
    with pytest.raises(Divergence, match=r"PLAN.*is not legal; legal now: nothing"):
        script.plan(k=1, number=3, decode_rows=1)
    script.dispatch(5, stage=2, rows=5, flags=SAMPLES, cycles=30)
    script.complete(5, stage=2)
    script.dispatch(6, stage=3, rows=5, flags=SAMPLES | LAST, cycles=10)
    script.complete(6, stage=3)
    script.commit(CORE, CommitKind.LOOP_POINT, stage=0, id=1)
    script.commit(CORE, CommitKind.ADVANCE, stage=0, id=0x1_0000, detail=5 | 1 << 31)
    script.plan(k=0, number=3, decode_rows=2)
    script.commit(CORE, CommitKind.FORM, stage=0, id=3, detail=2)
    script.dispatch(7, stage=2, rows=2, flags=FIRST | SAMPLES, cycles=50)
    assert script.reads(RECORD + regmap.Record.BITMAP) == 0b11


# ------------------------------------------------------------------------------------------- pipelines


def pipeline(lanes: int, depth: int = 1, stages: int = 5) -> Script:
    """All lanes in one pipeline, a layer stage for each of the first ones."""
    script = script_of(lanes, stages, depth)
    script.configure(lane_register(0, regmap.Lane.PIPELINE), lanes)
    for lane in range(1, lanes):
        script.configure(lane_register(lane, regmap.Lane.FIRST_STAGE), 2 + lane)
    return script


def test_a_pass_goes_on_to_the_next_lane_when_its_dispatches_are_complete() -> None:
    script = pipeline(2, depth=2)
    script.configure(lane_register(1, regmap.Lane.SEQUENCE), 0x105)
    script.admit(rows=5)
    script.seat()
    script.form(rows=5)
    script.dispatch(1, stage=1, rows=5, flags=FIRST | SAMPLES, cycles=30)
    script.dispatch(2, stage=2, rows=5, flags=LAST | SAMPLES, cycles=1)
    script.complete(1, stage=1)
    with pytest.raises(Divergence, match="nothing of the kind"):
        script.dispatch(0x105, stage=1, rows=5, flags=FIRST | SAMPLES, cycles=10, lane=1)
    script.complete(2, stage=2)
    script.dispatch(0x105, stage=1, rows=5, flags=FIRST | SAMPLES, cycles=10, lane=1)
    script.dispatch(0x106, stage=3, rows=5, flags=SAMPLES, cycles=1, lane=1)
    assert not head(script).sequence
    assert script.reads(RECORD) == 0
    assert head(script, 1).sequence == 0x105
    assert script.reads(RECORD + regmap.POLL_STRIDE + regmap.Record.BITMAP + regmap.BitmapUnit.TAIL) == 0x105 << 16
    script.complete(0x105, stage=1, lane=1)
    script.dispatch(0x107, stage=4, rows=5, flags=LAST | SAMPLES, cycles=10, lane=1)


def test_passes_of_a_pipeline_are_formed_in_turn_and_decode_seats_by_their_number() -> None:
    script = pipeline(2)
    for slot, k in ((0, 0), (1, 1)):
        script.admit(rows=5, slot=slot)
        script.seat(slot)
        script.form(rows=5, k=k, number=slot + 1, seat=slot)
    for slot in (2, 3):
        script.admit(rows=5, slot=slot)
        script.seat(slot)
    with pytest.raises(Divergence, match=r"PLAN.*is not legal; legal now: nothing"):
        script.plan(k=0, number=3)
    group = script.golden.groups[0]
    assert [run.members for run in group.alive.values()] == [0b01, 0b10]
    for request in group.seated.values():
        request.rows_left, request.bound = 0, True
    group.prefilling[0].clear()
    group.alive.clear()
    for k, seats in ((0, 0b0101), (1, 0b1010)):
        script.plan(k=k, number=3 + k, decode_rows=2)
        script.commit(CORE, CommitKind.FORM, id=3 + k, detail=2)
        assert group.alive[k].decode == seats


def test_a_lane_stays_with_a_pass_and_then_turns_to_the_next() -> None:
    script = pipeline(2, stages=6)
    for slot in (0, 1):
        script.admit(rows=5, slot=slot)
        script.seat(slot)
        script.form(rows=5, k=slot, number=slot + 1, seat=slot)
        if not slot:
            script.dispatch(1, stage=1, rows=5, flags=FIRST | SAMPLES, cycles=30)
    script.complete(1, stage=1)
    with pytest.raises(Divergence, match=r"legal now: DISPATCH\(lane=0, stage=2"):
        script.dispatch(2, stage=1, rows=5, flags=FIRST | SAMPLES, cycles=10)
    script.dispatch(2, stage=2, rows=5, flags=LAST | SAMPLES, cycles=10)
    script.complete(2, stage=2)
    script.dispatch(3, stage=1, rows=5, flags=FIRST | SAMPLES, cycles=10, k=1)
    script.dispatch(1, stage=1, rows=5, flags=FIRST | SAMPLES, cycles=20, lane=1)


def test_absorbed_groups_take_no_requests_and_no_resets() -> None:
    script = pipeline(2)
    script.write(regmap.PAGE + regmap.Page.SCHED_ATTR, PageSchedAttr(automatic=1, rows=5, group=1).pack())
    script.write(regmap.PAGE + regmap.Page.SCHED_CMD, PageSchedCmd(id=0x1_0000).pack())
    script.commit(CORE, CommitKind.REJECT, stage=RejectReason.BAD_ATTRIBUTE, id=0x1_0000)
    script.write32(RESET, 1)
    script.commit(CORE, CommitKind.CONFIG_IGNORED, id=RESET, detail=1)


@pytest.mark.parametrize(
    ("lane", "value", "accepted"),
    [
        (0, 2, True),
        (0, 4, True),
        (0, 8, False),
        (0, 3, False),
        (0, 0, False),
        (1, 2, False),
        (2, 2, True),
        (2, 1, True),
    ],
)
def test_a_pipeline_begins_at_a_multiple_of_its_lanes(lane: int, value: int, accepted: bool) -> None:
    script = Script(4)
    script.configure(lane_register(lane, regmap.Lane.PIPELINE), value, accepted=accepted)
    assert script.reads(lane_register(lane, regmap.Lane.PIPELINE)) == (value if accepted else 1)


def test_the_larger_of_two_pipelines_has_the_lane_and_the_other_one_comes_back() -> None:
    script = Script(4)
    groups = script.golden.groups
    script.configure(lane_register(2, regmap.Lane.PIPELINE), 2)
    assert [len(group.lanes) for group in groups] == [1, 1, 2, 0]
    script.configure(lane_register(0, regmap.Lane.PIPELINE), 4)
    assert [len(group.lanes) for group in groups] == [4, 0, 0, 0]
    script.configure(lane_register(2, regmap.Lane.PIPELINE), 1, accepted=False)
    script.configure(lane_register(0, regmap.Lane.PIPELINE), 1)
    assert [len(group.lanes) for group in groups] == [1, 1, 2, 0]


def test_lanes_of_a_group_with_requests_are_not_rearranged() -> None:
    script = Script(2)
    script.admit(rows=5, group=1)
    script.configure(lane_register(0, regmap.Lane.PIPELINE), 2, accepted=False)
    script.configure(lane_register(1, regmap.Lane.FIRST_STAGE), 3, accepted=False)
    script.configure(lane_register(0, regmap.Lane.FIRST_STAGE), 3)
    script.configure(lane_register(0, regmap.Lane.FIRST_STAGE), 8, accepted=False)
