"""The golden model alone: short scripts of writes and commits, and what it foretells."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import pytest

from cuelight import regmap
from cuelight.regmap import CommitKind, PageReqStatus, PageSchedAttr, PageSchedCmd, RejectReason, RetireReason
from cuelight_sim.forming import Costs, Forming
from cuelight_sim.lane import next_sequence
from cuelight_sim.planning import Plan
from cuelight_sim.seating import next_seated, victim
from cuelight_sim.slots import Request
from cuelight_sim.steps import Divergence
from cuelight_sim.tiers import Tier

from .script import CORE, LANE, Script

COMMAND = regmap.PAGE + regmap.Page.SCHED_CMD
ATTRIBUTES = regmap.PAGE + regmap.Page.SCHED_ATTR
KV_BLOCKS = regmap.GROUP + regmap.Group.KV_BLOCKS
TIER3 = regmap.TIER + 3 * regmap.TIER_STRIDE


@pytest.fixture
def script() -> Script:
    return Script()


def test_a_manual_request_runs_waits_is_retargeted_and_cancelled(script: Script) -> None:
    script.write(COMMAND, PageSchedCmd(stage=3, id=0x1_0000).pack())
    script.commit(CORE, CommitKind.ADMIT, id=0x1_0000, detail=3)
    script.write(COMMAND, PageSchedCmd(stage=4, id=0x1_0000).pack())
    script.commit(CORE, CommitKind.REJECT, stage=RejectReason.REQUEST_RUNNING, id=0x1_0000, detail=4 << 8)
    script.write32(regmap.PAGE + regmap.Page.STAGE_DONE, 0x1_0000)
    script.commit(CORE, CommitKind.STAGE_DONE, id=0x1_0000)
    script.write(COMMAND, PageSchedCmd(stage=4, id=0x1_0000).pack())
    script.commit(CORE, CommitKind.RETARGET, stage=4, id=0x1_0000)
    script.write(COMMAND, PageSchedCmd(stage=0xFFFF_FFFF, id=0x1_0000).pack())
    script.commit(CORE, CommitKind.CANCEL, stage=0, id=0x1_0000)
    assert PageReqStatus.unpack(script.reads(regmap.PAGE + regmap.Page.REQ_STATUS)).active == 0


@pytest.mark.parametrize(
    "strobes", [(0x0F, 0xF0), (0xF0, 0x0F), (0x01, 0xFE), tuple(1 << n for n in (3, 7, 0, 5, 1, 6, 2, 4))]
)
def test_a_command_counts_when_its_last_byte_has_come(script: Script, strobes: tuple[int, ...]) -> None:
    command = PageSchedCmd(stage=3, id=0x1_0000).pack()
    for strobe in strobes:
        script.golden.written()
        script.write(COMMAND, command, strobe)
    with pytest.raises(Divergence, match="made no commit; expected ADMIT"):
        script.golden.written()
    script.commit(CORE, CommitKind.ADMIT, id=0x1_0000, detail=3)
    script.golden.written()


def test_attributes_discard_a_half_command(script: Script) -> None:
    script.write(COMMAND, PageSchedCmd(id=0x1_0000).pack(), 0x0F)
    script.write(ATTRIBUTES, 0, 0x01)
    script.write(COMMAND, PageSchedCmd(id=0x1_0000).pack(), 0xF0)
    script.golden.written()


def test_credit_moves_at_admission_and_retirement(script: Script) -> None:
    script.configure(KV_BLOCKS, 10)
    script.admit(rows=8, kv_blocks=7)
    assert script.reads(regmap.GROUP + regmap.Group.KV_FREE) == 3
    script.write(COMMAND, PageSchedCmd(stage=0xFFFF_FFFF, id=0x1_0000).pack())
    script.commit(CORE, CommitKind.CANCEL, stage=1, id=0x1_0000)
    with pytest.raises(Divergence, match="legal now: RETIRE"):
        script.seat()
    script.commit(CORE, CommitKind.RETIRE, stage=RetireReason.CANCELLED, id=0x1_0000, detail=0x100)
    assert script.reads(regmap.GROUP + regmap.Group.KV_FREE) == 10


def test_a_request_goes_through_a_pass_and_finishes(script: Script) -> None:
    script.configure(regmap.CONTROL + regmap.Control.STAGE_COUNT, 4)
    script.admit(rows=5)
    script.seat()
    script.form(rows=5)
    script.dispatch(sequence=1, stage=1, rows=5, flags=0b101, cycles=30)
    assert script.reads(regmap.POLL + regmap.Poll.RECORD + regmap.Record.ENTRY) == 0x1_0000
    for sequence, stage in ((1, 1), (2, 2), (3, 3)):
        script.complete(sequence, stage, finished=0xFFFF_FFFF)
        if sequence < 3:
            script.dispatch(sequence + 1, stage + 1, rows=5, flags=0b100 | (sequence == 2) << 1, cycles=10)
    script.commit(CORE, CommitKind.LOOP_POINT, id=1)
    with pytest.raises(Divergence, match="legal now: RETIRE"):
        script.commit(CORE, CommitKind.ADVANCE, stage=0, id=0x1_0000, detail=5 | 1 << 31)
    script.commit(CORE, CommitKind.RETIRE, stage=RetireReason.FINISHED, id=0x1_0000)


@pytest.mark.parametrize(
    ("kind", "fields", "complaint"),
    [
        (CommitKind.CHUNK, {"stage": 0, "id": 0x1_0000, "detail": 8 << 20 | 2 << 30}, "legal now: CHUNK"),
        (CommitKind.FORM, {"stage": 0, "id": 1}, "legal now: CHUNK"),
        (CommitKind.SEAT, {"stage": 1, "id": 0x1_0000}, "legal now: CHUNK"),
        (CommitKind.GROUP_READY, {}, "legal now: CHUNK"),
        (CommitKind.FREE, {}, "nothing of the kind"),
    ],
)
def test_a_wrong_step_is_told_from_the_right_one(
    script: Script, kind: CommitKind, fields: dict[str, int], complaint: str
) -> None:
    script.admit(rows=100)
    script.seat()
    script.plan()
    with pytest.raises(Divergence, match=complaint):
        script.commit(CORE, kind, **fields)


def test_a_commit_on_another_port_is_refused(script: Script) -> None:
    script.admit(rows=100)
    with pytest.raises(Divergence, match="came on commit port 1, not 0"):
        script.commit(LANE, CommitKind.SEAT, stage=0, id=0x1_0000)


def test_work_left_undone_is_noticed_at_rest(script: Script) -> None:
    script.admit(rows=100)
    with pytest.raises(Divergence, match=r"due is SEAT"):
        script.golden.check_rest()


def test_a_group_reset_retires_everybody(script: Script) -> None:
    script.admit(rows=100)
    script.seat()
    script.write32(regmap.CONTROL + regmap.Control.GROUP_RESET, 0)
    script.commit(CORE, CommitKind.GROUP_RESET)
    with pytest.raises(Divergence, match="legal now: RETIRE"):
        script.plan()
    script.commit(CORE, CommitKind.RETIRE, stage=RetireReason.LANE_LOST, id=0x1_0000)
    script.commit(CORE, CommitKind.GROUP_READY)


def test_sequences_skip_blank_and_all_ones_stamps() -> None:
    assert [next_sequence(sequence) for sequence in (1, 0xFFFE, 0xFFFF_FFFE)] == [2, 0x1_0001, 1]


def name(script: Script, kind: CommitKind, effect: int, request_id: int = 0x1_0000) -> None:
    """Writes PARK or CREDIT and shows its commit."""
    script.write32(regmap.PAGE + getattr(regmap.Page, kind.name), request_id)
    script.commit(CORE, kind, stage=effect, id=request_id)


def test_a_kv_floor_counts_at_admission(script: Script) -> None:
    script.configure(KV_BLOCKS, 10)
    script.configure(TIER3 + regmap.Tier.KV_FLOOR, 4)
    script.write(ATTRIBUTES, PageSchedAttr(automatic=1, rows=8, tier=3, kv_blocks=7).pack())
    script.write(COMMAND, PageSchedCmd(id=0x1_0000).pack())
    script.commit(CORE, CommitKind.REJECT, stage=RejectReason.NO_KV_CREDIT, id=0x1_0000)
    script.admit(rows=8, tier=3, kv_blocks=6)


@pytest.mark.parametrize(
    ("register", "most"), [("MIN_SEATS", 16), ("MIN_ROWS", 512), ("KV_FLOOR", 0xFFFF), ("SEAT_FLOOR", 16)]
)
def test_settings_of_a_tier_are_validated(script: Script, register: str, most: int) -> None:
    offset = TIER3 + getattr(regmap.Tier, register)
    script.configure(offset, most)
    script.configure(offset, most + 1, accepted=False)
    assert script.reads(offset) == most


def test_a_queued_request_is_parked_and_queues_again(script: Script) -> None:
    script.admit(rows=8)
    name(script, CommitKind.PARK, 1)
    with pytest.raises(Divergence, match="nothing of the kind"):
        script.seat()
    name(script, CommitKind.PARK, 3)
    name(script, CommitKind.CREDIT, 1)
    name(script, CommitKind.CREDIT, 3)
    name(script, CommitKind.CREDIT, 4)
    name(script, CommitKind.PARK, 4)
    script.seat()


def test_a_seated_request_parks_before_the_next_pass(script: Script) -> None:
    script.admit(rows=8)
    script.seat()
    name(script, CommitKind.PARK, 2)
    with pytest.raises(Divergence, match="legal now: PARKED"):
        script.plan()
    script.commit(CORE, CommitKind.PARKED, stage=0)
    assert script.reads(regmap.GROUP + regmap.Group.OCCUPANCY + 4) == 1 << 16
    name(script, CommitKind.PARK, 3)
    name(script, CommitKind.CREDIT, 2)
    script.form(rows=8)


def test_a_credited_prompt_goes_first_of_its_tier(script: Script) -> None:
    for slot in (0, 1):
        script.admit(rows=8, slot=slot)
        script.seat(slot)
    name(script, CommitKind.PARK, 2, 0x1_0001)
    script.commit(CORE, CommitKind.PARKED, stage=1)
    name(script, CommitKind.CREDIT, 2, 0x1_0001)
    script.plan()
    with pytest.raises(Divergence, match=r"legal now: CHUNK\(lane=0, stage=1"):
        chunk(script, 0, 8, flags=3)
    chunk(script, 1, 8, flags=3)
    chunk(script, 0, 8, flags=3)


def test_a_parked_prompt_is_no_reason_for_a_pass(script: Script) -> None:
    script.admit(rows=8)
    script.seat()
    name(script, CommitKind.PARK, 2)
    script.commit(CORE, CommitKind.PARKED, stage=0)
    script.golden.check_rest()
    name(script, CommitKind.CREDIT, 2)
    with pytest.raises(Divergence, match="due is PLAN"):
        script.golden.check_rest()


def test_a_prompt_cancelled_while_its_pass_is_formed_comes_along(script: Script) -> None:
    script.admit(rows=8)
    script.seat()
    script.plan()
    script.write(COMMAND, PageSchedCmd(stage=0xFFFF_FFFF, id=0x1_0000).pack())
    script.commit(CORE, CommitKind.CANCEL, stage=2, id=0x1_0000)
    with pytest.raises(Divergence, match="legal now: CHUNK"):
        script.commit(CORE, CommitKind.FORM, id=1)
    chunk(script, 0, 8, flags=3)


def test_unfinished_prompts_advance_last_first_and_stay_in_order(script: Script) -> None:
    script.configure(regmap.CONTROL + regmap.Control.STAGE_COUNT, 4)
    script.configure(regmap.GROUP + regmap.Group.COST, 24)
    script.configure(regmap.GROUP + regmap.Group.COST_CHUNK, 1)
    for slot in range(3):
        script.admit(rows=100, slot=slot)
        script.seat(slot)
    script.plan()
    chunk(script, 0, 16, flags=2)
    chunk(script, 1, 8, flags=2)
    script.commit(CORE, CommitKind.FORM, stage=2, id=1, detail=24)
    for sequence, stage, flags, cycles in ((1, 1, 1, 40), (2, 2, 2, 10)):
        script.dispatch(sequence, stage, rows=24, flags=flags, cycles=cycles)
        script.complete(sequence, stage)
    script.commit(CORE, CommitKind.LOOP_POINT, id=1)
    with pytest.raises(Divergence, match=r"legal now: ADVANCE\(lane=0, stage=1"):
        script.commit(CORE, CommitKind.ADVANCE, stage=0, id=0x1_0000, detail=16)
    script.commit(CORE, CommitKind.ADVANCE, stage=1, id=0x1_0001, detail=8)
    script.commit(CORE, CommitKind.ADVANCE, stage=0, id=0x1_0000, detail=16)
    assert [request.slot for request in script.golden.groups[0].prefilling[0]] == [0, 1, 2]


def chunk(script: Script, seat: int, rows: int, flags: int, start: int = 0) -> None:
    """Shows the CHUNK of the request in slot and seat ``seat``."""
    detail = start | rows << 20 | flags << 30
    script.commit(CORE, CommitKind.CHUNK, stage=seat, id=1 << 16 | seat, detail=detail)


def test_park_and_credit_of_others_are_ignored_and_counted(script: Script) -> None:
    name(script, CommitKind.PARK, 0, 0x5_0005)
    name(script, CommitKind.CREDIT, 0)
    assert script.reads(regmap.COUNTERS + regmap.Counters.STAGE_DONE_IGNORED) == 2


def test_stage_done_of_the_last_member_completes_the_dispatch(script: Script) -> None:
    script.admit(rows=5)
    script.seat()
    script.form(rows=5)
    script.dispatch(sequence=1, stage=1, rows=5, flags=0b101, cycles=30)
    script.write32(regmap.PAGE + regmap.Page.STAGE_DONE, 0x1_0000)
    script.commit(CORE, CommitKind.STAGE_DONE, id=0x1_0000)
    with pytest.raises(Divergence, match="expected COMPLETE"):
        script.golden.written()
    script.commit(LANE, CommitKind.COMPLETE, stage=1, id=1)
    script.write32(regmap.PAGE + regmap.Page.STAGE_DONE, 0x1_0000)
    script.commit(CORE, CommitKind.STAGE_DONE_IGNORED, id=0x1_0000)


def test_two_dispatches_are_outstanding_at_depth_2_and_the_oldest_completes_first(script: Script) -> None:
    script.admit(rows=5)
    script.seat()
    script.form(rows=5)
    script.dispatch(sequence=1, stage=1, rows=5, flags=0b101, cycles=30)
    script.dispatch(sequence=2, stage=2, rows=5, flags=0b100, cycles=1)
    with pytest.raises(Divergence, match="nothing of the kind"):
        script.dispatch(sequence=3, stage=3, rows=5, flags=0b100, cycles=1)
    for sequence in (1, 2):
        script.write32(regmap.POLL + regmap.Poll.POP, sequence)
        script.commit(LANE, CommitKind.TAKEN, id=sequence)
    done = regmap.COMPLETION + regmap.Completion.BATCH_DONE
    script.write32(done + 2 * regmap.COMPLETION_ENTRY_STRIDE, 2)
    script.commit(LANE, CommitKind.COMPLETE_IGNORED, id=2)
    script.write32(done + regmap.COMPLETION_ENTRY_STRIDE, 1)
    script.commit(LANE, CommitKind.COMPLETE, stage=1, id=1)


def request(slot: int, tier: int, seat: int | None = None, rows: int = 100, start: int = 0) -> Request:
    return Request(1 << 16 | slot, 0, tier, 0, 0, start, rows, seat=seat, bound=seat is not None)


def chunks(
    prefilling: list[list[Request]],
    rows: int = 256,
    costs: Costs | None = None,
    tiers: list[Tier] | None = None,
    joining: Sequence[Request] = (),
    credited: Sequence[Request] = (),
) -> list[tuple[int, int]]:
    """Slots and rows of the entries that a pass takes."""
    plan = Plan(0, joining, [deque(requests) for requests in prefilling])
    forming = Forming(plan, 1, 0, rows + len(joining), costs or Costs(), tiers or [Tier() for _ in range(4)])
    for late in credited:
        late.parked = False
    while (entry := forming.next_entry()) is not None:
        forming.take(entry)
    return [(entry.request.slot, entry.rows) for entry in forming.entries]


def test_chunks_are_powers_of_two_within_the_row_budget_or_the_rest_of_a_prompt() -> None:
    lists = [[request(0, 0, 0), request(1, 0, 1, rows=3)], [], [request(2, 2, 2)], []]
    assert chunks(lists) == [(0, 100), (1, 3), (2, 100)]
    assert chunks(lists, rows=100) == [(0, 64), (1, 3), (2, 32)]


def test_chunks_leave_the_minimum_rows_of_lower_tiers_that_have_work() -> None:
    tiers = [Tier(), Tier(), Tier(min_rows=200), Tier(min_rows=40)]
    lists = [[request(0, 0, 0)], [], [], [request(3, 3, 3)]]
    assert chunks(lists, rows=100, tiers=tiers) == [(0, 32), (3, 64)]


def test_chunks_stay_within_the_cost_budget_but_a_pass_has_one_at_least() -> None:
    lists = [[request(0, 0, 0, start=3 << 10)], [request(1, 1, 1)], [], []]
    assert chunks(lists, costs=Costs(1000, c0=5, c1=10)) == [(0, 16), (1, 64)]
    assert chunks(lists, costs=Costs(100, c0=5, c1=10)) == [(0, 8)]


@pytest.mark.parametrize(("credited", "taken"), [(0, [3, 0, 4]), (2, [3, 4])])
def test_a_prompt_credited_while_a_pass_is_formed_comes_along_unless_its_tiers_turn_is_over(
    credited: int, taken: list[int]
) -> None:
    dear = request(2, 2, 2, start=5 << 10)
    lists = [deque(requests) for requests in ([], [], [dear], [request(3, 3, 3, rows=8), request(4, 3, 4, rows=8)])]
    plan = Plan(0, [request(9, 3, 9, rows=0)], lists)
    forming = Forming(plan, 1, 0, 256, Costs(100, c0=1, c1=10), [Tier() for _ in range(4)])
    entry = forming.next_entry()
    assert entry is not None
    forming.take(entry)
    lists[credited].appendleft(request(credited, credited, 5, rows=8))
    while (entry := forming.next_entry()) is not None:
        forming.take(entry)
    assert [entry.request.slot for entry in forming.entries] == taken


def test_decoding_seats_that_plan_counted_are_bound_first() -> None:
    joining = [request(4, 3, 4, rows=0), request(5, 3, 5, rows=0)]
    for seat in joining:
        seat.bound = False
    joining[1].parked = True
    lists = [[request(0, 0, 0, rows=9)], [], [], []]
    assert chunks(lists, joining=joining, credited=joining[1:]) == [(4, 0), (0, 9)]


def test_a_free_seat_goes_to_a_tier_below_its_minimum_first() -> None:
    tiers = [Tier(), Tier(min_seats=1), Tier(), Tier(min_seats=2)]
    queues = [[request(0, 0)], [], [], [request(3, 3)]]
    seated = {0: request(8, 0, 0), 1: request(9, 3, 1)}
    assert next_seated(queues, seated, tiers, 5) is queues[3][0]
    assert next_seated(queues, {**seated, 2: request(10, 3, 2)}, tiers, 5) is queues[0][0]


def test_a_tier_leaves_seats_free_as_its_floor_says() -> None:
    tiers = [Tier(seat_floor=2), Tier(), Tier(), Tier()]
    queues = [[request(0, 0)], [], [request(2, 2)], []]
    assert next_seated(queues, {}, tiers, 3) is queues[0][0]
    assert next_seated(queues, {}, tiers, 2) is queues[2][0]
    assert next_seated(queues[:1], {}, tiers, 2) is None
    tiers[0].min_seats = 1
    assert next_seated(queues, {}, tiers, 1) is queues[0][0]


def test_only_lower_tiers_above_their_minimum_give_up_seats() -> None:
    seated = {0: request(8, 1, 0), 1: request(9, 3, 1), 2: request(10, 2, 2)}
    tiers = [Tier() for _ in range(4)]
    waiting = request(0, 1)
    assert victim([[], [waiting], [], []], seated, tiers, 0, 0) is seated[1]
    tiers[3].min_seats = 1
    assert victim([[], [waiting], [], []], seated, tiers, 0, 0) is seated[2]
    tiers[2].min_seats = 1
    assert victim([[], [waiting], [], []], seated, tiers, 0, 0) is None


def test_a_seat_is_given_up_only_to_a_tier_that_it_lets_in() -> None:
    seated = {0: request(8, 3, 0)}
    tiers = [Tier(seat_floor=1), Tier(), Tier(), Tier()]
    queues = [[request(0, 0)], [], [], []]
    assert victim(queues, seated, tiers, 0, 0) is None
    assert victim(queues, seated, tiers, 1, 0) is seated[0]
    assert victim(queues, seated, tiers, 2, 0) is None
    tiers[0].min_seats = 1
    assert victim(queues, seated, tiers, 0, 0) is seated[0]


def test_a_seat_in_a_pass_is_not_given_up() -> None:
    seated = {0: request(8, 3, 0), 1: request(9, 3, 1)}
    assert victim([[request(0, 0)], [], [], []], seated, [Tier() for _ in range(4)], 0, 0b01) is seated[1]
