"""The lane's side of the shared segment, against a device played by hand."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cuelight import regmap
from cuelight.errors import DeviceClosed, InvalidArgument, SegmentError, Timeout
from cuelight.filters import MAX_BIASES, NO_FILTERS, Filters
from cuelight.lanes.port import LanePort, next_sequence
from cuelight.lanes.types import Dispatch, Entry, LaneToken, PassRecord, SlotRecord, TokenStatus
from cuelight.segment import Segment, Shape

RING = regmap.LanePort.RING
SHAPE = Shape(lanes=2, slots=64, seats=64, tokens=4, context=16, blocks=4)
NOW_S = 0.0
LONG_S = 30.0


@pytest.fixture
def segment() -> Iterator[Segment]:
    segment = Segment.create(SHAPE)
    for lane in range(SHAPE.lanes):
        segment.port_memory(lane)[regmap.LanePort.EXPECTED // 4] = 1
        put_record(segment, 1, [(0, 0, 0, 1 << 16)] * (1 + regmap.Record.ENTRY_COUNT), lane)
    yield segment
    segment.close()


@pytest.fixture
def port(segment: Segment) -> Iterator[LanePort]:
    with LanePort(segment.path, 0) as port:
        yield port


def put64(segment: Segment, offset: int, value: int, lane: int = 0) -> None:
    """One 64-bit store into a lane's port."""
    segment.port_memory(lane).view(np.uint64)[offset // 8] = value


def descriptor(sequence: int, *, stage: int = 2, first: bool = False, entries: int = 0) -> tuple[int, int, int, int]:
    head = regmap.DispatchHead(
        sequence=sequence, stage=stage, buffer=1, first=int(first), last=0, samples=1, rows=3
    ).pack()
    stamp = sequence & 0xFFFF
    return head, regmap.DispatchPass(7, entries, stamp).pack(), 0, stamp << 48


def put_dispatch(segment: Segment, sequence: int, *, lane: int = 0, first: bool = False, entries: int = 0) -> None:
    for at, word in enumerate(descriptor(sequence, first=first, entries=entries)):
        put64(segment, RING + sequence % 16 * 32 + 8 * at, word, lane)


def put_record(segment: Segment, buffer: int, units: list[tuple[int, int, int, int]], lane: int = 0) -> None:
    """Units of a record in order: bitmap 0, then entries."""
    places = [regmap.Record.BITMAP, *range(regmap.Record.ENTRY, regmap.Record.SIZE, 16)]
    for place, unit in zip(places, units, strict=False):
        start = (regmap.LanePort.RECORD + buffer * regmap.LanePort.RECORD_STRIDE + place) // 4
        segment.port_memory(lane)[start : start + 4] = unit


def test_dispatch_arrives_with_every_field(segment: Segment, port: LanePort) -> None:
    assert port.wait(NOW_S) is None
    put_dispatch(segment, 1, first=True, entries=2)
    assert port.wait(NOW_S) == Dispatch(1, 2, 1, True, False, True, 3, 7, 2)
    assert port.wait(NOW_S) is None


@pytest.mark.parametrize("missing", range(4))
def test_dispatch_without_one_of_its_words_is_refused(segment: Segment, port: LanePort, missing: int) -> None:
    words = descriptor(1)
    for at, word in enumerate(words):
        if at != missing:
            put64(segment, RING + 32 + 8 * at, word)
    # The reserved word is zero either way; all others are needed.
    assert (port.wait(NOW_S) is None) == (missing != 2)
    put64(segment, RING + 32 + 8 * missing, words[missing])
    assert missing == 2 or port.wait(NOW_S) is not None


@pytest.mark.parametrize("word", [1, 3])
def test_dispatch_with_the_stamp_of_the_one_before_in_its_place_is_refused(
    segment: Segment, port: LanePort, word: int
) -> None:
    segment.port_memory(0)[regmap.LanePort.EXPECTED // 4] = 17
    put_dispatch(segment, 17)
    put64(segment, RING + 32 + 8 * word, descriptor(1)[word])
    assert port.wait(NOW_S) is None


def test_dispatch_of_another_high_half_is_refused(segment: Segment, port: LanePort) -> None:
    segment.port_memory(0)[regmap.LanePort.EXPECTED // 4] = 0x2_0001
    put_dispatch(segment, 0x1_0001)
    assert port.wait(NOW_S) is None


def test_dispatches_are_taken_in_order_and_never_beyond_a_gap(segment: Segment, port: LanePort) -> None:
    put_dispatch(segment, 2)
    assert port.wait(NOW_S) is None
    put_dispatch(segment, 1)
    assert [port.wait(NOW_S), port.wait(NOW_S)] == [
        Dispatch(sequence, 2, 1, False, False, True, 3, 7, 0) for sequence in (1, 2)
    ]


def test_lane_follows_a_device_that_has_moved_on(segment: Segment, port: LanePort) -> None:
    put_dispatch(segment, 5)
    assert port.wait(NOW_S) is None
    segment.port_memory(0)[regmap.LanePort.EXPECTED // 4] = 5
    assert getattr(port.wait(NOW_S), "sequence", None) == 5
    segment.port_memory(0)[regmap.LanePort.EXPECTED // 4] = 2
    put_dispatch(segment, 6)
    assert getattr(port.wait(NOW_S), "sequence", None) == 6


def test_sequences_skip_low_halves_that_stamps_cannot_use() -> None:
    assert next_sequence(1) == 2
    assert next_sequence(0xFFFE) == 0x1_0001
    assert next_sequence(0xFFFF_FFFE) == 1


def test_lane_that_attaches_anew_gets_what_was_not_complete(segment: Segment, port: LanePort) -> None:
    put_dispatch(segment, 1)
    assert port.wait(NOW_S) is not None
    with LanePort(segment.path, 0) as again:
        assert getattr(again.wait(NOW_S), "sequence", None) == 1


def test_record_is_read_whole(segment: Segment, port: LanePort) -> None:
    put_record(segment, 1, [(0b101, 1 << 31, 0, 1 << 16), (0x0003_0011, 5 | 9 << 20 | 7 << 28, 8, 1 << 16)])
    put_dispatch(segment, 1, first=True, entries=1)
    dispatch = port.wait(NOW_S)
    assert dispatch is not None
    entry = Entry(0x0003_0011, 0x11, seat=9, start=5, rows=8, bind=True, first=True, last=True)
    assert port.record(dispatch) == PassRecord((0, 2, 63), (entry,))


def test_record_of_a_later_stage_is_that_of_the_passs_first_dispatch(segment: Segment, port: LanePort) -> None:
    put_record(segment, 1, [(1, 0, 0, 1 << 16)])
    put_dispatch(segment, 1, first=True)
    put_dispatch(segment, 2)
    first, second = port.wait(NOW_S), port.wait(NOW_S)
    assert first is not None
    assert second is not None
    assert port.record(second) == port.record(first) == PassRecord((0,), ())
    put_record(segment, 1, [(3, 0, 0, 3 << 16)])
    with pytest.raises(SegmentError, match="not whole"):
        port.record(second)


@pytest.mark.parametrize("torn", range(3))
@pytest.mark.parametrize("first", [True, False])
def test_dispatch_waits_for_each_unit_of_its_record(segment: Segment, port: LanePort, torn: int, first: bool) -> None:
    whole = [(1, 0, 0, 1 << 16), (0x1_0000, 0, 8, 1 << 16), (0x1_0001, 1 << 20, 8, 1 << 16)]
    if not first:
        put_record(segment, 1, whole)
        put_dispatch(segment, 1, first=True)
        assert port.wait(NOW_S) is not None
    units = whole.copy()
    units[torn] = (*units[torn][:3], 17 << 16)
    put_record(segment, 1, units)
    put_dispatch(segment, 1 if first else 2, first=first, entries=2)
    assert port.wait(NOW_S) is None
    put_record(segment, 1, whole)
    dispatch = port.wait(NOW_S)
    assert dispatch is not None
    assert len(port.record(dispatch).entries) == 2
    put_record(segment, 1, units)
    with pytest.raises(SegmentError, match="not whole"):
        port.record(dispatch)


def test_lane_that_attaches_within_a_pass_takes_the_record_that_is_there(segment: Segment, port: LanePort) -> None:
    put_record(segment, 1, [(5, 0, 0, 9 << 16)])
    put_dispatch(segment, 1)
    dispatch = port.wait(NOW_S)
    assert dispatch is not None
    assert port.record(dispatch) == PassRecord((0, 2), ())


def test_completion_names_its_seats_before_its_sequence(segment: Segment, port: LanePort) -> None:
    bell = segment.header_memory()[regmap.Segment.DEVICE_BELL // 4]
    port.complete(0x1_0003, (0, 33, 63))
    start = (regmap.LanePort.DONE + 3 * regmap.LanePort.DONE_STRIDE) // 4
    done = segment.port_memory(0)[start : start + regmap.LanePort.DONE_STRIDE // 4].tolist()
    assert done[:9] == [1, 1 << 31 | 2, 0, 0, 0, 0, 0, 0, 0x1_0003]
    assert segment.header_memory()[regmap.Segment.DEVICE_BELL // 4] != bell
    # Nobody empties an entry in between.
    port.complete(0x1_0013, (1,))
    done = segment.port_memory(0)[start : start + regmap.LanePort.DONE_STRIDE // 4].tolist()
    assert done[:9] == [2, 0, 0, 0, 0, 0, 0, 0, 0x1_0013]
    with pytest.raises(InvalidArgument, match="Seat 64 does not exist"):
        port.complete(0x1_0004, (64,))


def test_tokens_keep_their_order_over_many_turns_of_the_ring(segment: Segment, port: LanePort) -> None:
    bell = segment.host_bell()
    for position in range(3 * SHAPE.tokens):
        port.post_token(0x1_0002, position, 100 + position, -0.5, TokenStatus.MORE)
        if position % 3 == 2:
            assert segment.take_tokens(0) == [
                LaneToken(0x1_0002, at, 100 + at, -0.5, 0) for at in range(position - 2, position + 1)
            ]
    assert segment.take_tokens(0) == []
    assert segment.host_bell() != bell


def test_full_token_ring_makes_the_lane_wait_for_the_host(segment: Segment, port: LanePort) -> None:
    for position in range(SHAPE.tokens):
        port.post_token(1 << 16, position, 0, 0.0, TokenStatus.MORE)
    with pytest.raises(Timeout, match="start the lane again"):
        port.post_token(1 << 16, SHAPE.tokens, 0, 0.0, TokenStatus.MORE, timeout_s=0.01)
    posts = threading.Thread(target=port.post_token, args=(1 << 16, SHAPE.tokens, 9, 0.0, TokenStatus.LENGTH))
    posts.start()
    assert len(segment.take_tokens(0)) == SHAPE.tokens
    posts.join(LONG_S)
    assert segment.take_tokens(0) == [LaneToken(1 << 16, SHAPE.tokens, 9, 0.0, TokenStatus.LENGTH)]


def test_lane_asked_to_stop_leaves_a_full_ring(segment: Segment, port: LanePort) -> None:
    for position in range(SHAPE.tokens):
        port.post_token(1 << 16, position, 0, 0.0, TokenStatus.MORE)
    segment.set_stop(0, True)
    with pytest.raises(DeviceClosed, match="asked to end"):
        port.post_token(1 << 16, SHAPE.tokens, 0, 0.0, TokenStatus.MORE)


def test_lane_that_starts_again_goes_on_in_the_token_ring(segment: Segment, port: LanePort) -> None:
    port.post_token(1 << 16, 0, 5, 0.0, TokenStatus.MORE)
    assert len(segment.take_tokens(0)) == 1
    port.post_token(1 << 16, 1, 6, 0.0, TokenStatus.MORE)
    with LanePort(segment.path, 0) as again:
        again.post_token(1 << 16, 2, 7, 0.0, TokenStatus.MORE)
    assert [token.token for token in segment.take_tokens(0)] == [6, 7]


def test_slot_record_survives_the_trip(segment: Segment, port: LanePort) -> None:
    record = SlotRecord(
        request_id=0x0005_003F,
        prompt=np.arange(16, dtype=np.int32),
        limit=12,
        block_table=np.array([3, 1, 2], dtype=np.int32),
        temperature=0.75,
        seed=0xFEDC_BA98_7654_3210,
        ignore_eos=True,
        filters=Filters(
            logit_bias=tuple((7 * index, 0.5 * index - 75) for index in range(MAX_BIASES)),
            repetition_penalty=1.25,
            presence_penalty=-0.5,
            frequency_penalty=1.5,
            top_k=40,
            top_p=0.875,
            min_p=0.0625,
        ),
        top_logprobs=20,
        produced=4,
    )
    segment.write_slot_record(63, record)
    copy = port.slot_record(63)
    assert copy.prompt.tolist() == record.prompt.tolist()
    assert copy.block_table.tolist() == [3, 1, 2]
    for name in ("request_id", "limit", "temperature", "seed", "ignore_eos", "filters", "top_logprobs", "produced"):
        assert getattr(copy, name) == getattr(record, name)
    # A plain request that comes later finds nothing of it.
    segment.write_slot_record(63, SlotRecord(0x0006_003F, record.prompt, 12, record.block_table))
    plain = port.slot_record(63)
    assert (plain.filters, plain.top_logprobs, plain.produced) == (NO_FILTERS, 0, 0)


def test_slot_record_that_does_not_fit_or_is_not_there_is_refused(segment: Segment, port: LanePort) -> None:
    long = np.zeros(17, dtype=np.int32)
    with pytest.raises(InvalidArgument, match="prompt of at most 16, not 17"):
        segment.write_slot_record(0, SlotRecord(1 << 16, long, 1, long[:1]))
    with pytest.raises(InvalidArgument, match="block table of at most 4, not 5"):
        segment.write_slot_record(0, SlotRecord(1 << 16, long[:1], 1, long[:5]))
    biases = Filters(logit_bias=tuple((token, 1.0) for token in range(MAX_BIASES + 1)))
    with pytest.raises(InvalidArgument, match="logit bias of at most 300, not 301"):
        segment.write_slot_record(0, SlotRecord(1 << 16, long[:1], 1, long[:1], filters=biases))
    with pytest.raises(SegmentError, match="Slot 0 has no record"):
        port.slot_record(0)
    with pytest.raises(InvalidArgument, match="Slot 64 does not exist"):
        port.slot_record(64)


@pytest.mark.parametrize("register", [regmap.SlotRecord.PROMPT, regmap.SlotRecord.BLOCKS, regmap.SlotRecord.BIASES])
def test_slot_record_with_lengths_beyond_its_room_is_refused(segment: Segment, port: LanePort, register: int) -> None:
    segment.write_slot_record(1, SlotRecord(0x1_0001, np.ones(1, np.int32), 1, np.ones(1, np.int32)))
    with open(segment.path, "r+b") as file:
        file.seek(SHAPE.records + SHAPE.record_stride + register)
        file.write(struct.pack("<I", 0xFFFF_FFFF))
    with pytest.raises(SegmentError, match="longer than a record"):
        port.slot_record(1)


def test_stop_wakes_a_waiting_lane(segment: Segment, port: LanePort) -> None:
    found: list[Dispatch | None] = []
    waits = threading.Thread(target=lambda: found.append(port.wait(LONG_S)))
    waits.start()
    segment.set_stop(0, True)
    waits.join(LONG_S)
    assert found == [None]
    assert port.stop_requested


def test_no_wakeup_is_lost_between_two_processes(segment: Segment) -> None:
    """A lane in another process answers thousands of dispatches, each sent when the one before is complete."""
    count = 2000
    program = (
        "import sys\n"
        "from cuelight.lanes.port import LanePort\n"
        "with LanePort(sys.argv[1], 1) as port:\n"
        f"    for _ in range({count}):\n"
        f"        port.complete(port.wait({LONG_S}).sequence)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(segment.path)]) as lane:
        memory = segment.port_memory(1)
        header = segment.header_memory()
        native = segment._native
        for sequence in range(1, count + 1):
            put_dispatch(segment, sequence, lane=1)
            native.cuelight_ring(memory.ctypes.data + regmap.LanePort.BELL)
            done = (regmap.LanePort.DONE + sequence % 16 * 64 + regmap.Completion.BATCH_DONE) // 4
            deadline = time.monotonic() + LONG_S
            while True:
                bell = int(header[regmap.Segment.DEVICE_BELL // 4])
                if memory[done] == sequence:
                    break
                assert time.monotonic() < deadline, f"no answer to dispatch {sequence}"
                native.cuelight_sleep(header.ctypes.data + regmap.Segment.DEVICE_BELL, bell, 1_000_000_000)
        assert lane.wait(LONG_S) == 0


def test_pid_shows_who_is_the_lane(segment: Segment) -> None:
    assert segment.lane_pid(1) == 0
    with LanePort(segment.path, 1) as port:
        assert segment.lane_pid(1) == os.getpid()
        before = segment.lane_heartbeat(1)
        port.wait(NOW_S)
        assert segment.lane_heartbeat(1) > before
    assert segment.lane_pid(1) == 0


def test_segment_is_private_and_gone_after_close() -> None:
    segment = Segment.create(SHAPE)
    assert os.stat(segment.path).st_mode & 0o777 == 0o600
    port = LanePort(segment.path, 0)
    segment.close()
    segment.close()
    assert not segment.path.exists()
    assert port.wait(NOW_S) is None
    with pytest.raises(DeviceClosed, match="closed"):
        segment.take_tokens(0)
    with pytest.raises(SegmentError, match="cannot be opened"):
        LanePort(segment.path, 0)
    port.close()


def test_segment_of_a_killed_process_is_swept() -> None:
    program = (
        "import os, signal\n"
        "from cuelight.segment import Segment, Shape\n"
        "print(Segment.create(Shape(slots=1)).path, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    left = Path(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip())
    alive = Segment.create(SHAPE)
    again = Segment.create(SHAPE)
    assert not left.exists()
    assert alive.path.exists()
    alive.close()
    again.close()


@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [
        (regmap.Segment.MAGIC, 0, "no segment of Cuelight"),
        (regmap.Segment.LAYOUT, 9, "layout 9"),
        (regmap.Segment.TOKENS, 3, "damaged"),
        (regmap.Segment.PORT_STRIDE, 64, "damaged"),
        (regmap.Segment.SLOTS, 1 << 30, "damaged"),
    ],
)
def test_foreign_segment_is_refused(segment: Segment, offset: int, value: int, message: str) -> None:
    segment.header_memory()[offset // 4] = value
    with pytest.raises(SegmentError, match=message):
        LanePort(segment.path, 0)


def test_truncated_segment_and_unknown_lane_are_refused(segment: Segment, tmp_path: Path) -> None:
    short = tmp_path / "short"
    short.write_bytes(segment.path.read_bytes()[:8192])
    with pytest.raises(SegmentError, match="8192 bytes instead of"):
        LanePort(short, 0)
    with pytest.raises(InvalidArgument, match="Lane 2 does not exist"):
        LanePort(segment.path, 2)


@pytest.mark.parametrize(("field", "value"), [("lanes", 9), ("tokens", 3), ("context", 0)])
def test_shape_out_of_range_is_refused(field: str, value: int) -> None:
    with pytest.raises(InvalidArgument, match=f"{field} must be .* not {value}"):
        Shape(**{field: value})
