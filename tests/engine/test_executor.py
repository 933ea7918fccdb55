"""The CPU lane's executor: what it keeps, what it repeats, what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from cuelight.engine.model import Llama
from cuelight.errors import InvalidArgument, LaneError, SegmentError
from cuelight.filters import Filters
from cuelight.lanes.cpu_executor import CpuExecutor
from cuelight.lanes.faults import LaneFault
from cuelight.lanes.types import Entry, LaneToken, PassRecord, SlotRecord, TokenStatus

from .tiny import save_model

STAGES = 5
BLOCKS = 8
ALL = range(1, STAGES)
WITHOUT_BIND = range(2, STAGES)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Llama:
    directory = tmp_path_factory.mktemp("model")
    save_model(directory)
    return Llama.load(directory)


@pytest.fixture
def executor(model: Llama) -> CpuExecutor:
    return CpuExecutor(model, BLOCKS, STAGES)


def slot_record(slot: int, rows: int = 10, epoch: int = 1, **fields: Any) -> SlotRecord:
    prompt = np.random.default_rng(slot).integers(3, 320, rows).astype(np.int32)
    values: dict[str, Any] = {
        "request_id": epoch << 16 | slot,
        "prompt": prompt,
        "limit": 8,
        "block_table": np.array([slot], np.int32),
        "ignore_eos": True,
    }
    return SlotRecord(**(values | fields))


def chunk(
    slot: int, rows: int = 10, *, start: int = 0, seat: int | None = None, epoch: int = 1, **flags: bool
) -> Entry:
    fields = {"bind": start == 0, "first": start == 0, "last": True} | flags
    return Entry(epoch << 16 | slot, slot, slot + 20 if seat is None else seat, start, rows, **fields)


class Lane:
    """Runs passes and keeps what they gave."""

    def __init__(self, executor: CpuExecutor, *records: SlotRecord) -> None:
        self.executor = executor
        self.records = {record.request_id & 0xFFFF: record for record in records}
        self.masks: dict[tuple[int, int], NDArray[np.uint32]] = {}

    def mask(self, slot: int, position: int) -> NDArray[np.uint32]:
        if (slot, position) not in self.masks:
            raise SegmentError(f"Slot {slot} has no mask for position {position}.")
        return self.masks[slot, position]

    def run(
        self,
        record: PassRecord,
        stages: range = ALL,
        read: Callable[[int], SlotRecord] | None = None,
        buffer: int = 0,
    ) -> tuple[list[LaneToken], list[int]]:
        tokens: list[LaneToken] = []
        finished: list[int] = []
        for stage in stages:
            result = self.executor.execute(stage, buffer, record, read or self.records.__getitem__, self.mask)
            tokens += result.tokens
            finished += result.finished
        return tokens, finished

    def decode(self, *seats: int) -> tuple[list[LaneToken], list[int]]:
        return self.run(PassRecord(seats, ()), WITHOUT_BIND)


def test_request_runs_to_its_limit_and_reports_its_seat(executor: CpuExecutor) -> None:
    lane = Lane(executor, slot_record(3, limit=3))
    results = [lane.run(PassRecord((), (chunk(3),))), lane.decode(23), lane.decode(23)]
    tokens = [token for tokens, _ in results for token in tokens]
    assert [token.position for token in tokens] == [10, 11, 12]
    assert [token.finish for token in tokens] == [TokenStatus.MORE, TokenStatus.MORE, TokenStatus.LENGTH]
    assert [finished for _, finished in results] == [[], [], [23]]


@pytest.mark.parametrize("rows", [1, 2])
def test_request_that_is_over_gets_no_token_if_its_report_was_lost(executor: CpuExecutor, rows: int) -> None:
    lane = Lane(executor, slot_record(3, limit=1), slot_record(4))
    assert lane.run(PassRecord((), (chunk(3), chunk(4))))[1] == [23]
    tokens, finished = lane.decode(*(23, 24)[:rows])
    assert [token.request_id & 0xFFFF for token in tokens] == [4] * (rows - 1)
    assert finished == [23]


def test_end_of_text_ends_a_request_unless_it_is_to_be_ignored(model: Llama, tmp_path: Path) -> None:
    lane = Lane(CpuExecutor(model, BLOCKS, STAGES), slot_record(3))
    first = lane.run(PassRecord((), (chunk(3),)))[0][0].token
    save_model(tmp_path, eos_token_id=[2, first])
    ending = Llama.load(tmp_path)
    for ignore_eos, status, finished in ((False, TokenStatus.END_OF_TEXT, [23]), (True, TokenStatus.MORE, [])):
        lane = Lane(CpuExecutor(ending, BLOCKS, STAGES), slot_record(3, ignore_eos=ignore_eos))
        tokens, seats = lane.run(PassRecord((), (chunk(3),)))
        assert (tokens[0].token, tokens[0].finish, seats) == (first, status, finished)


def test_chunk_that_is_not_the_last_gives_no_token(executor: CpuExecutor) -> None:
    lane = Lane(executor, slot_record(3))
    assert lane.run(PassRecord((), (chunk(3, 6, last=False),)), ALL) == ([], [])
    tokens, _ = lane.run(PassRecord((), (chunk(3, 4, start=6),)), WITHOUT_BIND)
    whole, _ = Lane(CpuExecutor(executor._model, BLOCKS, STAGES), slot_record(3)).run(PassRecord((), (chunk(3),)))
    assert tokens[0].token == whole[0].token
    assert tokens[0].logprob == pytest.approx(whole[0].logprob, abs=1e-4)


def test_stages_run_again_change_nothing(executor: CpuExecutor, model: Llama) -> None:
    records = slot_record(3), slot_record(4, 20)
    once = Lane(executor, *records)
    again = Lane(CpuExecutor(model, BLOCKS, STAGES), *records)
    first = PassRecord((), (chunk(3),))
    joined = PassRecord((23,), (chunk(4, 20),))
    expected = [once.run(first), once.run(joined), once.decode(23, 24)]
    for stages in (range(1, 2), range(1, 3), range(1, 4)):
        again.run(first, stages)
    results = [again.run(first)]
    # Interrupted after any stage but output decode, a pass is run from its start again.
    for stages in (range(1, 2), range(1, 3), range(1, 4)):
        again.run(joined, stages)
    results.append(again.run(joined))
    # Output decode delivered twice answers with what it recorded.
    assert again.run(joined, range(STAGES - 1, STAGES)) == results[-1]
    results.append(again.decode(23, 24))
    assert results == expected


@pytest.mark.parametrize("between", range(2, STAGES))
def test_second_pass_between_two_stages_changes_nothing(between: int, executor: CpuExecutor, model: Llama) -> None:
    records = slot_record(3), slot_record(4, 20)
    lane, apart = Lane(executor, *records), Lane(CpuExecutor(model, BLOCKS, STAGES), *records)
    first, second = PassRecord((23,), ()), PassRecord((), (chunk(4, 20),))
    assert lane.run(PassRecord((), (chunk(3),))) == apart.run(PassRecord((), (chunk(3),)))
    expected = apart.run(second), apart.run(first, WITHOUT_BIND), apart.decode(23, 24)
    begun = lane.run(first, range(2, between))
    other = lane.run(second, buffer=2)
    rest = lane.run(first, range(between, STAGES))
    assert (other, (begun[0] + rest[0], begun[1] + rest[1]), lane.decode(23, 24)) == expected


def test_slot_goes_to_another_request_with_another_seat(executor: CpuExecutor, model: Llama) -> None:
    lane = Lane(executor, slot_record(3, limit=1))
    assert lane.run(PassRecord((), (chunk(3),)))[1] == [23]
    lane.records[3] = slot_record(3, epoch=2, prompt=np.arange(5, 17, dtype=np.int32))
    tokens, _ = lane.run(PassRecord((), (chunk(3, 12, seat=7, epoch=2),)))
    alone = Lane(CpuExecutor(model, BLOCKS, STAGES), lane.records[3])
    assert tokens == alone.run(PassRecord((), (chunk(3, 12, epoch=2),)))[0]
    assert lane.decode(7)[0] == alone.decode(23)[0]


def test_reseated_request_goes_on_where_it_was(executor: CpuExecutor, model: Llama) -> None:
    lane, stayed = (Lane(one, slot_record(3)) for one in (executor, CpuExecutor(model, BLOCKS, STAGES)))
    for each in (lane, stayed):
        each.run(PassRecord((), (chunk(3),)))
    reseated = PassRecord((5,), (chunk(3, 0, seat=5, bind=True, first=False, last=False),))
    assert lane.run(reseated)[0] == stayed.decode(23)[0]


def test_likeliest_tokens_come_before_the_token_they_are_for(executor: CpuExecutor, model: Llama) -> None:
    lane = Lane(executor, slot_record(3, top_logprobs=3), slot_record(4), slot_record(5, top_logprobs=1))
    tokens, _ = lane.run(PassRecord((), (chunk(3), chunk(4), chunk(5))))
    slots = [token.request_id & 0xFFFF for token in tokens]
    assert slots == [3, 3, 3, 3, 4, 5, 5]
    assert [token.finish == TokenStatus.ALTERNATIVE for token in tokens] == [True] * 3 + [False, False, True, False]
    assert {token.position for token in tokens} == {10}
    assert tokens[0][1:4] == tokens[3][1:4]
    assert tokens[0].logprob > tokens[1].logprob > tokens[2].logprob
    plain = Lane(CpuExecutor(model, BLOCKS, STAGES), *map(slot_record, (3, 4, 5)))
    alone, _ = plain.run(PassRecord((), (chunk(3), chunk(4), chunk(5))))
    assert alone == [token for token in tokens if token.finish != TokenStatus.ALTERNATIVE]


@pytest.mark.parametrize("filters", [Filters(repetition_penalty=1.5), Filters(presence_penalty=2, frequency_penalty=2)])
def test_penalties_go_on_where_a_replayed_request_was(filters: Filters, executor: CpuExecutor, model: Llama) -> None:
    record = slot_record(3, limit=30, filters=filters)
    lane = Lane(executor, record)
    tokens = [lane.run(PassRecord((), (chunk(3),)))[0][0]] + [lane.decode(23)[0][0] for _ in range(29)]
    plain = Lane(CpuExecutor(model, BLOCKS, STAGES), slot_record(3, limit=30))
    unpenalized = [plain.run(PassRecord((), (chunk(3),)))[0][0]] + [plain.decode(23)[0][0] for _ in range(29)]
    ids = [token.token for token in tokens]
    assert ids != [token.token for token in unpenalized]
    prompt = np.concatenate([record.prompt, np.array(ids[:12], np.int32)])
    fresh = CpuExecutor(model, BLOCKS, STAGES)
    again = Lane(fresh, slot_record(3, limit=18, prompt=prompt, produced=12, filters=filters))
    rest = [again.run(PassRecord((), (chunk(3, 22),)))[0][0]] + [again.decode(23)[0][0] for _ in range(17)]
    assert [token.token for token in rest] == ids[12:]


BAD_RECORDS: dict[str, tuple[dict[str, Any], LaneFault]] = {
    "another request": ({"request_id": 9 << 16 | 3}, LaneFault.RECORD_MISMATCH),
    "no prompt": ({"prompt": np.zeros(0, np.int32)}, LaneFault.TOO_LONG),
    "beyond the context": ({"prompt": np.full(510, 7, np.int32)}, LaneFault.TOO_LONG),
    "no new token": ({"limit": 0}, LaneFault.TOO_LONG),
    "short table": ({"limit": 60}, LaneFault.KV_BLOCKS),
    "no such block": ({"block_table": np.array([BLOCKS], np.int32)}, LaneFault.KV_BLOCKS),
    "negative block": ({"block_table": np.array([-1], np.int32)}, LaneFault.KV_BLOCKS),
    "token too high": ({"prompt": np.full(10, 320, np.int32)}, LaneFault.UNKNOWN_TOKEN),
    "token negative": ({"prompt": np.full(10, -1, np.int32)}, LaneFault.UNKNOWN_TOKEN),
    "temperature negative": ({"temperature": -0.5}, LaneFault.BAD_SAMPLING),
    "temperature no number": ({"temperature": float("nan")}, LaneFault.BAD_SAMPLING),
    "filter out of range": ({"filters": Filters(top_p=0.0)}, LaneFault.BAD_SAMPLING),
    "filter no number": ({"filters": Filters(repetition_penalty=float("nan"))}, LaneFault.BAD_SAMPLING),
    "bias of an unknown token": ({"filters": Filters(logit_bias=((320, 1.0),))}, LaneFault.BAD_SAMPLING),
    "too many alternatives": ({"top_logprobs": 21}, LaneFault.BAD_SAMPLING),
    "nothing but produced tokens": ({"produced": 10}, LaneFault.BAD_SAMPLING),
    "temperature infinite": ({"temperature": float("inf")}, LaneFault.BAD_SAMPLING),
}


@pytest.mark.parametrize("name", BAD_RECORDS)
def test_bad_record_costs_its_own_request_only(name: str, executor: CpuExecutor, model: Llama) -> None:
    fields, fault = BAD_RECORDS[name]
    lane = Lane(executor, slot_record(3, **fields), slot_record(4))
    tokens, finished = lane.run(PassRecord((), (chunk(3), chunk(4))))
    good = Lane(CpuExecutor(model, BLOCKS, STAGES), slot_record(4)).run(PassRecord((), (chunk(4),)))[0]
    assert tokens[0] == LaneToken(1 << 16 | 3, 0, fault, 0.0, TokenStatus.LANE_ERROR)
    assert finished == [23]
    assert tokens[1:] == good


def test_record_that_cannot_be_read_costs_its_own_request_only(executor: CpuExecutor) -> None:
    def read(slot: int) -> SlotRecord:
        if slot == 3:
            raise SegmentError("Slot 3 has no record.")
        return slot_record(slot)

    tokens, finished = Lane(executor).run(PassRecord((), (chunk(3), chunk(4))), ALL, read)
    assert (tokens[0].token, tokens[0].finish) == (LaneFault.RECORD_MISMATCH, TokenStatus.LANE_ERROR)
    assert (finished, len(tokens)) == ([23], 2)


@pytest.mark.parametrize(
    "entry",
    [
        chunk(3, 11),
        chunk(3, 4, start=8, bind=False),
        chunk(3, 5),
        chunk(3, 5, start=5, bind=False, first=False, epoch=7),
        chunk(5, 5, start=5, bind=False, first=False),
    ],
)
def test_chunk_outside_its_prompt_or_of_a_stranger_is_refused(entry: Entry, executor: CpuExecutor) -> None:
    lane = Lane(executor, slot_record(3), slot_record(4))
    lane.run(PassRecord((), (chunk(3, 1, last=False), chunk(4))))
    tokens, finished = lane.run(PassRecord((24,), (entry,)), ALL if entry.bind else WITHOUT_BIND)
    assert tokens[0] == LaneToken(entry.request_id, 0, LaneFault.BAD_CHUNK, 0.0, TokenStatus.LANE_ERROR)
    assert finished == [entry.seat]
    assert [token.request_id for token in tokens[1:]] == [1 << 16 | 4]


def test_decoding_seat_nobody_knows_is_reported_as_finished(executor: CpuExecutor) -> None:
    lane = Lane(executor, slot_record(3))
    assert lane.decode(9) == ([], [9])
    lane.run(PassRecord((), (chunk(3, 4, last=False),)))
    assert lane.decode(23) == ([], [23])


def test_numbers_that_are_none_are_reported(model: Llama, tmp_path: Path) -> None:
    save_model(tmp_path)
    broken = Llama.load(tmp_path)
    broken._norm = torch.full_like(broken._norm, float("nan"))
    tokens, finished = Lane(CpuExecutor(broken, BLOCKS, STAGES), slot_record(3)).run(PassRecord((), (chunk(3),)))
    assert (tokens[0].token, tokens[0].finish, finished) == (
        LaneFault.NOT_A_NUMBER,
        TokenStatus.LANE_ERROR,
        [23],
    )


def mask_of(*tokens: int) -> NDArray[np.uint32]:
    allowed = np.zeros(320, np.uint8)
    allowed[list(tokens)] = 1
    return np.packbits(allowed, bitorder="little").view(np.uint32)


def test_a_mask_holds_for_its_position_only_and_others_go_on(executor: CpuExecutor) -> None:
    lane = Lane(executor, slot_record(3, masked=True), slot_record(4), slot_record(5, masked=True))
    free = Lane(executor, slot_record(4)).run(PassRecord((), (chunk(4),)))[0][0].token
    lane.masks = {(3, 10): mask_of(7, 300), (3, 12): mask_of(9), (5, 10): mask_of(319)}
    tokens, finished = lane.run(PassRecord((), (chunk(3), chunk(4), chunk(5))))
    assert tokens[0].token in (7, 300)
    assert [token.token for token in tokens[1:]] == [free, 319]
    assert not finished
    # There are none for position 11.
    tokens, finished = lane.decode(23, 24, 25)
    assert [(token.token, token.finish) for token in tokens[:2]] == [(LaneFault.NO_MASK, TokenStatus.LANE_ERROR)] * 2
    assert (tokens[2].position, tokens[2].finish, finished) == (11, TokenStatus.MORE, [23, 25])


@pytest.mark.parametrize("nothing", [mask_of(), mask_of()[:0]])
def test_a_mask_that_allows_nothing_is_reported(nothing: NDArray[np.uint32], executor: CpuExecutor) -> None:
    lane = Lane(executor, slot_record(3, masked=True))
    lane.masks = {(3, 10): nothing}
    tokens, finished = lane.run(PassRecord((), (chunk(3),)))
    assert (tokens[0].token, tokens[0].finish, finished) == (LaneFault.NO_MASK, TokenStatus.LANE_ERROR, [23])


def test_a_mask_that_changes_after_the_token_changes_nothing(executor: CpuExecutor) -> None:
    """Output decode that is delivered twice answers with what it recorded, whatever the host has written since."""
    lane = Lane(executor, slot_record(3, masked=True))
    lane.masks = {(3, 10): mask_of(7)}
    first = lane.run(PassRecord((), (chunk(3),)))
    lane.masks = {(3, 11): mask_of(9)}
    assert lane.run(PassRecord((), (chunk(3),)), range(STAGES - 1, STAGES)) == first


@pytest.mark.parametrize("stages", [0, 3, 8, 128])
def test_stage_counts_unfit_for_the_model_are_refused(stages: int, model: Llama) -> None:
    with pytest.raises(InvalidArgument, match="4 layers runs in 4 to 7 stages"):
        CpuExecutor(model, BLOCKS, stages)


@pytest.mark.parametrize("stage", [0, STAGES, 127])
def test_stage_the_lane_does_not_have_is_refused(stage: int, executor: CpuExecutor) -> None:
    with pytest.raises(LaneError, match="stages 1 to 4"):
        Lane(executor).run(PassRecord((), ()), range(stage, stage + 1))
