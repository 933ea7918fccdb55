"""The golden model alone: short scripts of writes and commits, and what it foretells."""

from __future__ import annotations

from itertools import count

import pytest

from cuelight import regmap
from cuelight.regmap import CommitKind, PageReqStatus, PageSchedAttr, PageSchedCmd, RejectReason, RetireReason
from cuelight_rtl.model import Commit
from cuelight_rtl.params import Params
from cuelight_sim.golden import Golden
from cuelight_sim.passes import next_sequence
from cuelight_sim.steps import Divergence

COMMAND = regmap.PAGE + regmap.Page.SCHED_CMD
ATTRIBUTES = regmap.PAGE + regmap.Page.SCHED_ATTR
KV_BLOCKS = regmap.GROUP + regmap.Group.KV_BLOCKS
CORE, LANE, PAGES = 0, 1, 2


class Script:
    """A one-lane device played by hand."""

    def __init__(self) -> None:
        self.golden = Golden(Params(slots=64, seats=16, lanes=1, stages=8))
        self._cycle = count(10, 10)
        self.commit(PAGES, CommitKind.OFFER, stage=0, id=0x1_0000)

    def write(self, offset: int, value: int, strobe: int = 0xFF) -> None:
        high = offset % 8
        self.golden.write(offset - high, value << 8 * high, strobe if not high else 0xF0)

    def write32(self, offset: int, value: int) -> None:
        self.write(offset, value, 0xF0 if offset % 8 else 0x0F)

    def commit(self, port: int, kind: CommitKind, **fields: int) -> None:
        named = {"lane": 0, "stage": 0, "id": 0, "detail": 0, **fields}
        self.golden.commit(Commit(next(self._cycle), port, kind, **named))

    def admit(self, rows: int, **attributes: int) -> None:
        """Admits a request into slot 0."""
        fields = PageSchedAttr(automatic=1, rows=rows, **attributes)
        self.write(ATTRIBUTES, fields.pack())
        self.write(COMMAND, PageSchedCmd(id=0x1_0000).pack())
        self.commit(CORE, CommitKind.ADMIT, stage=1 << 3 | fields.tier << 4, id=0x1_0000, detail=fields.kv_blocks)

    def seat(self, tier: int = 0) -> None:
        self.commit(CORE, CommitKind.SEAT, stage=0, id=0x1_0000, detail=tier)

    def form(self, rows: int) -> None:
        """Plans and forms the first pass, a single last chunk."""
        self.commit(CORE, CommitKind.PLAN, id=1)
        self.commit(CORE, CommitKind.CHUNK, stage=0, id=0x1_0000, detail=rows << 20 | 3 << 30)
        self.commit(CORE, CommitKind.FORM, stage=1, id=1, detail=rows)

    def dispatch(self, sequence: int, stage: int, rows: int, flags: int, cycles: int) -> None:
        detail = rows | cycles << 16 | flags << 28
        self.commit(LANE, CommitKind.DISPATCH, stage=stage, id=sequence, detail=detail)

    def reads(self, offset: int) -> int:
        return self.golden.read(offset).value


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
    script.write32(KV_BLOCKS, 10)
    script.commit(CORE, CommitKind.CONFIG, id=KV_BLOCKS, detail=10)
    script.admit(rows=8, kv_blocks=7)
    assert script.reads(regmap.GROUP + regmap.Group.KV_FREE) == 3
    script.write(COMMAND, PageSchedCmd(stage=0xFFFF_FFFF, id=0x1_0000).pack())
    script.commit(CORE, CommitKind.CANCEL, stage=1, id=0x1_0000)
    with pytest.raises(Divergence, match="legal now: RETIRE"):
        script.seat()
    script.commit(CORE, CommitKind.RETIRE, stage=RetireReason.CANCELLED, id=0x1_0000, detail=0x100)
    assert script.reads(regmap.GROUP + regmap.Group.KV_FREE) == 10


def test_a_request_goes_through_a_pass_and_finishes(script: Script) -> None:
    stage_count = regmap.CONTROL + regmap.Control.STAGE_COUNT
    script.write32(stage_count, 4)
    script.commit(CORE, CommitKind.CONFIG, id=stage_count, detail=4)
    script.admit(rows=5)
    script.seat()
    script.form(rows=5)
    script.dispatch(sequence=1, stage=1, rows=5, flags=0b101, cycles=30)
    assert script.reads(regmap.POLL + regmap.Poll.RECORD + regmap.Record.ENTRY) == 0x1_0000
    done = regmap.COMPLETION + regmap.COMPLETION_ENTRY_STRIDE
    for sequence, stage in ((1, 1), (2, 2), (3, 3)):
        script.write32(done + regmap.Completion.FINISHED, 0xFFFF_FFFF)
        script.write32(done + regmap.Completion.BATCH_DONE, sequence)
        script.commit(LANE, CommitKind.COMPLETE, stage=stage, id=sequence)
        done += regmap.COMPLETION_ENTRY_STRIDE
        if sequence < 3:
            script.dispatch(sequence + 1, stage + 1, rows=5, flags=0b100 | (sequence == 2) << 1, cycles=10)
    script.commit(CORE, CommitKind.LOOP_POINT, id=1)
    with pytest.raises(Divergence, match="legal now: RETIRE"):
        script.commit(CORE, CommitKind.ADVANCE, stage=0, id=0x1_0000, detail=5 | 1 << 31)
    script.commit(CORE, CommitKind.RETIRE, stage=RetireReason.FINISHED, id=0x1_0000)
    script.commit(PAGES, CommitKind.OFFER, stage=0, id=0x1_0001)


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
    script.commit(CORE, CommitKind.PLAN, id=1)
    with pytest.raises(Divergence, match=complaint):
        script.commit(CORE, kind, **fields)


def test_a_commit_on_another_port_is_refused(script: Script) -> None:
    script.admit(rows=100)
    with pytest.raises(Divergence, match="came on commit port 1, not 0"):
        script.commit(LANE, CommitKind.SEAT, stage=0, id=0x1_0000)


def test_work_left_undone_is_noticed_at_rest(script: Script) -> None:
    script.admit(rows=100)
    with pytest.raises(Divergence, match=r"due is OFFER.*SEAT"):
        script.golden.check_rest()


def test_a_group_reset_retires_everybody(script: Script) -> None:
    script.admit(rows=100)
    script.seat()
    script.write32(regmap.CONTROL + regmap.Control.GROUP_RESET, 0)
    script.commit(CORE, CommitKind.GROUP_RESET)
    with pytest.raises(Divergence, match="legal now: RETIRE"):
        script.commit(CORE, CommitKind.PLAN, id=1)
    script.commit(CORE, CommitKind.RETIRE, stage=RetireReason.LANE_LOST, id=0x1_0000)
    script.commit(CORE, CommitKind.GROUP_READY)


def test_sequences_skip_blank_and_all_ones_stamps() -> None:
    assert [next_sequence(sequence) for sequence in (1, 0xFFFE, 0xFFFF_FFFE)] == [2, 0x1_0001, 1]
