"""The twin's thread, its shared segment and its registers, with lanes in threads of this process."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cuelight import regmap
from cuelight.errors import DeviceClosed, InvalidArgument, SegmentError
from cuelight.lanes.port import LanePort
from cuelight.lanes.types import Dispatch, Entry, PassRecord
from cuelight.regmap import CommitKind, FifoRetireHead, PageSchedAttr, PageSchedCmd
from cuelight.transports.twin import TwinTransport

SLOTS, SEATS = 64, 16
STAGES = 4
CANCEL = 0xFFFF_FFFF
WAIT_S = 30.0
HANG_S = 120.0
REJECTS = regmap.COUNTERS + regmap.Counters.REJECTED


def open_twin(*, polling: bool = False) -> TwinTransport:
    return TwinTransport(lanes=2, slots=SLOTS, seats=SEATS, tokens=64, context=64, blocks=4, polling=polling)


@pytest.fixture(params=[False, True], ids=["woken", "polling"])
def twin(request: pytest.FixtureRequest) -> Iterator[TwinTransport]:
    transport = open_twin(polling=request.param)
    configure(transport)
    yield transport
    transport.close()


@pytest.fixture
def woken() -> Iterator[TwinTransport]:
    transport = open_twin()
    configure(transport)
    yield transport
    transport.close()


def configure(twin: TwinTransport) -> None:
    twin.write32(regmap.CONTROL + regmap.Control.STAGE_COUNT, STAGES)
    for group in range(2):
        twin.write32(regmap.GROUP + group * regmap.GROUP_STRIDE + regmap.Group.KV_BLOCKS, 1000)


def command(twin: TwinTransport, request_id: int, stage: int, page: int = 0) -> None:
    twin.write64(
        regmap.PAGE + page * regmap.PAGE_STRIDE + regmap.Page.SCHED_CMD, PageSchedCmd(stage, request_id).pack()
    )


def admit(twin: TwinTransport, group: int = 0, rows: int = 1, tier: int = 0) -> int:
    request_id = twin.read32(regmap.PAGE + regmap.Page.OFFER_ID)
    assert request_id
    attributes = PageSchedAttr(automatic=1, group=group, kv_blocks=1, rows=rows, tier=tier).pack()
    twin.write64(regmap.PAGE + regmap.Page.SCHED_ATTR, attributes)
    command(twin, request_id, 0)
    return request_id


def passes(twin: TwinTransport) -> int:
    return twin.read32(regmap.COUNTERS + regmap.Counters.PASSES)


def active(twin: TwinTransport) -> int:
    return twin.read32(regmap.PAGE + regmap.Page.REQ_STATUS) & 0xFFFF


def pop_retired(twin: TwinTransport) -> list[tuple[int, int]]:
    """Ids and reasons of all that wait in the retirement FIFO."""
    retired = []
    while (head := FifoRetireHead.unpack(twin.read64(regmap.FIFO + regmap.Fifo.RETIRE_HEAD))).valid:
        retired.append((head.id, head.reason))
        twin.write32(regmap.FIFO + regmap.Fifo.RETIRE_POP, head.index)
    return retired


def take(port: LanePort) -> Dispatch:
    dispatch = port.wait(WAIT_S)
    assert dispatch is not None, "no dispatch came"
    return dispatch


def run_lane(twin: TwinTransport, lane: int, passes: int) -> int:
    """Answer every dispatch at once until that many passes are over; return how many dispatches there were."""
    dispatches = 0
    with LanePort(twin.segment.path, lane) as port:
        while passes:
            dispatch = take(port)
            if dispatch.first:
                record = port.record(dispatch)
                assert len(record.decode) + sum(entry.rows for entry in record.entries) == dispatch.rows
            passes -= dispatch.last
            dispatches += 1
            port.complete(dispatch.sequence)
    return dispatches


def test_registers_are_reached_at_both_widths(twin: TwinTransport) -> None:
    assert twin.read32(regmap.IDENTITY + regmap.Identity.MAGIC) == 0x4C455543
    both = twin.read64(regmap.IDENTITY + regmap.Identity.MAGIC)
    assert both >> 32 == twin.read32(regmap.IDENTITY + regmap.Identity.VERSION)
    capabilities = regmap.IdentityCapabilities.unpack(twin.read64(regmap.IDENTITY + regmap.Identity.CAPABILITIES))
    assert (capabilities.slots, capabilities.seats, capabilities.lanes) == (SLOTS, SEATS, 2)
    rows = regmap.GROUP + regmap.Group.ROWS
    twin.write32(rows, 77)
    assert (twin.read32(rows), twin.read32(rows + regmap.GROUP_STRIDE)) == (77, 256)


@pytest.mark.parametrize("call", ["read32", "read64"])
@pytest.mark.parametrize("offset", [-8, 2, 0x10000])
def test_offset_that_is_none_is_refused(woken: TwinTransport, call: str, offset: int) -> None:
    with pytest.raises(InvalidArgument, match="is no offset"):
        getattr(woken, call)(offset)


def test_value_that_does_not_fit_is_refused(woken: TwinTransport) -> None:
    with pytest.raises(InvalidArgument, match="does not fit a 32-bit register"):
        woken.write32(regmap.CONTROL + regmap.Control.STAGE_COUNT, 1 << 32)
    with pytest.raises(InvalidArgument, match="does not fit a 64-bit register"):
        woken.write64(regmap.PAGE + regmap.Page.SCHED_CMD, -1)


def test_every_boot_has_its_own_nonce(woken: TwinTransport) -> None:
    other = open_twin()
    nonces = {each.read64(regmap.IDENTITY + regmap.Identity.BOOT_NONCE) for each in (woken, other)}
    other.close()
    assert len(nonces) == 2


def test_time_is_that_of_the_host(woken: TwinTransport) -> None:
    before = time.monotonic_ns()
    now = woken.read64(regmap.IDENTITY + regmap.Identity.TIME_NS)
    assert before <= now <= time.monotonic_ns()


def test_pass_goes_through_its_stages_with_its_record(twin: TwinTransport) -> None:
    with LanePort(twin.segment.path, 1) as port:
        request_id = admit(twin, group=1, rows=20)
        seen = []
        for _ in range(5):
            dispatch = take(port)
            record = port.record(dispatch)
            seen.append((dispatch.sequence, dispatch.stage, dispatch.first, dispatch.last, dispatch.rows, record))
            port.complete(dispatch.sequence, (0,) if dispatch.sequence == 5 else ())
        entry = Entry(request_id, request_id & 0xFFFF, 0, start=0, rows=20, bind=True, first=True, last=True)
        prefill, decode = PassRecord((), (entry,)), PassRecord((0,), ())
        assert seen == [
            (1, 1, True, False, 20, prefill),
            (2, 2, False, False, 20, prefill),
            (3, 3, False, True, 20, prefill),
            (4, 2, True, False, 1, decode),
            (5, 3, False, True, 1, decode),
        ]
        wait_until(twin, lambda: active(twin) == 1 and twin.read64(regmap.FIFO + regmap.Fifo.RETIRE_HEAD) >> 63 == 1)
        assert pop_retired(twin) == [(request_id, regmap.RetireReason.FINISHED)]


def test_second_pass_goes_first_and_has_a_record_of_its_own(twin: TwinTransport) -> None:
    with LanePort(twin.segment.path, 0) as port:

        def answer() -> tuple[int, int, PassRecord]:
            dispatch = take(port)
            record = port.record(dispatch)
            port.complete(dispatch.sequence)
            return dispatch.stage, dispatch.buffer, record

        waiting = admit(twin, tier=3)
        assert [answer()[:2] for _ in range(3)] == [(1, 0), (2, 0), (3, 0)]
        running = take(port)
        assert (running.stage, running.buffer) == (2, 1)
        urgent = admit(twin, rows=20)
        wait_until(twin, lambda: passes(twin) == 3)
        port.complete(running.sequence)
        # Stage 3 was dispatched ahead; the next pass of the waiting one comes when the second pass is through.
        decode = PassRecord((0,), ())
        prefill = PassRecord(
            (), (Entry(urgent, urgent & 0xFFFF, 1, start=0, rows=20, bind=True, first=True, last=True),)
        )
        assert [answer() for _ in range(4)] == [(3, 1, decode), (1, 2, prefill), (2, 2, prefill), (3, 2, prefill)]
        assert answer() == (2, 0, decode)
        assert answer() == (3, 0, decode)
        assert answer() == (2, 1, PassRecord((0, 1), ()))
        for request_id in (waiting, urgent):
            command(twin, request_id, CANCEL)


def test_overtaken_pass_goes_on_with_its_own_record(twin: TwinTransport) -> None:
    twin.write32(regmap.CONTROL + regmap.Control.STAGE_COUNT, 6)
    with LanePort(twin.segment.path, 0) as port:

        def answer() -> tuple[int, int, int, int]:
            dispatch = take(port)
            record = port.record(dispatch)
            port.complete(dispatch.sequence)
            return dispatch.stage, dispatch.pass_number, len(record.decode), len(record.entries)

        waiting = admit(twin, tier=3)
        assert [answer()[:2] for _ in range(5)] == [(stage, 1) for stage in (1, 2, 3, 4, 5)]
        running = take(port)
        assert (running.stage, running.pass_number) == (2, 2)
        urgent = admit(twin, rows=20)
        wait_until(twin, lambda: passes(twin) == 3)
        port.complete(running.sequence)
        assert answer() == (3, 2, 1, 0)
        assert [answer() for _ in range(5)] == [(stage, 3, 0, 1) for stage in (1, 2, 3, 4, 5)]
        assert [answer() for _ in range(2)] == [(stage, 2, 1, 0) for stage in (4, 5)]
        for request_id in (waiting, urgent):
            command(twin, request_id, CANCEL)


def test_pass_goes_from_lane_to_lane_of_a_pipeline(twin: TwinTransport) -> None:
    lane = regmap.LANE + regmap.LANE_STRIDE
    twin.write32(lane + regmap.Lane.FIRST_STAGE, 3)
    twin.write32(regmap.LANE + regmap.Lane.PIPELINE, 2)
    with LanePort(twin.segment.path, 0) as front, LanePort(twin.segment.path, 1) as back:

        def run(port: LanePort, count: int, finished: tuple[int, ...] = ()) -> list[tuple[int, int, bool, bool]]:
            seen = []
            for _ in range(count):
                dispatch = take(port)
                record = port.record(dispatch)
                assert len(record.decode) + sum(entry.rows for entry in record.entries) == dispatch.rows
                seen.append((dispatch.stage, dispatch.buffer, dispatch.first, dispatch.last))
                port.complete(dispatch.sequence, finished if dispatch.stage == STAGES - 1 else ())
            return seen

        ids = [admit(twin)]
        assert run(front, 2) == [(1, 0, True, False), (2, 0, False, True)]
        # While the first is on the back lane the second one's pass runs on the front lane.
        ids.append(admit(twin))
        assert run(front, 2) == [(1, 2, True, False), (2, 2, False, True)]
        assert run(back, 2) == [(1, 0, True, False), (3, 0, False, True)]
        assert run(back, 2) == [(1, 2, True, False), (3, 2, False, True)]
        # Seat 0 decodes in pass 0, seat 1 in pass 1.
        assert sorted(run(front, 2)) == [(2, 1, True, True), (2, 3, True, True)]
        assert sorted(run(back, 2, (0, 1))) == [(3, 1, True, True), (3, 3, True, True)]
        retired: list[int] = []

        def all_retired() -> bool:
            retired.extend(request_id for request_id, _ in pop_retired(twin))
            return len(retired) == 2

        wait_until(twin, all_retired)
        assert sorted(retired) == ids


def wait_until(twin: TwinTransport, condition: Callable[[], bool]) -> None:
    """Wait for what the host bell announces."""
    deadline = time.monotonic() + WAIT_S
    bell = twin.segment.host_bell()
    while not condition():
        assert time.monotonic() < deadline
        bell = twin.wait(bell, 0.01)


def test_entries_of_an_earlier_pass_leave_no_trace_in_a_shorter_record(twin: TwinTransport) -> None:
    with LanePort(twin.segment.path, 0) as port:
        # The first pass may hold one of them only; the second, in the other buffer, has the others.
        for _ in range(8):
            admit(twin)
        entries = []
        for _ in range(16):
            dispatch = take(port)
            if dispatch.first:
                start = (regmap.LanePort.RECORD + dispatch.buffer * regmap.LanePort.RECORD_STRIDE) // 4
                words = twin.segment.port_memory(0)[start : start + regmap.LanePort.RECORD_STRIDE // 4]
                unused = words[(regmap.Record.ENTRY + dispatch.entries * regmap.Record.ENTRY_STRIDE) // 4 :]
                assert not unused.any()
                entries.append(dispatch.entries)
            port.complete(dispatch.sequence)
        assert sum(entries) == 8
        assert entries[-1] == 0


def test_completion_entries_are_empty_when_a_dispatch_uses_them_again(twin: TwinTransport) -> None:
    with LanePort(twin.segment.path, 0) as port:
        admit(twin)
        for _ in range(40):
            dispatch = take(port)
            start = (regmap.LanePort.DONE + dispatch.sequence % 16 * regmap.LanePort.DONE_STRIDE) // 4
            entry = twin.segment.port_memory(0)[start : start + regmap.LanePort.DONE_STRIDE // 4]
            assert not entry.any()
            # Seats that nobody holds: the device ignores them, the entry must lose them.
            port.complete(dispatch.sequence, range(1, SEATS))
        assert twin.read32(regmap.COUNTERS + regmap.Counters.COMPLETIONS_IGNORED) == 0


def test_no_wakeup_is_lost_over_thousands_of_passes(twin: TwinTransport, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both lanes answer at once and look at their rings only when woken, so one lost wakeup stops a lane for good."""
    monkeypatch.setattr("cuelight.lanes.port._HEARTBEAT_S", 10 * HANG_S)
    monkeypatch.setitem(globals(), "WAIT_S", 10 * HANG_S)
    passes = 1500
    for group in range(2):
        admit(twin, group=group)
    with ThreadPoolExecutor() as pool:
        lanes = [pool.submit(run_lane, twin, lane, passes) for lane in range(2)]
        try:
            assert [lane.result(HANG_S) for lane in lanes] == [2 * passes + 1] * 2
        finally:
            twin.close()


def test_host_threads_and_lanes_do_not_disturb_each_other(twin: TwinTransport) -> None:
    """Four threads, each with a producer page of its own, while both lanes run passes."""
    pages, rounds = range(1, 5), 100
    twin.write32(regmap.CONTROL + regmap.Control.PAGE_ENABLE, 0b11111)

    def play(page: int) -> None:
        base = regmap.PAGE + page * regmap.PAGE_STRIDE
        for turn in range(rounds):
            request_id = 0
            while not request_id:
                request_id = twin.read32(base + regmap.Page.OFFER_ID)
            if turn % 2:
                command(twin, request_id, 3, page)
            else:
                twin.write32(base + regmap.Page.SCHED_CMD + 4, request_id)
                twin.write32(base + regmap.Page.SCHED_CMD, 3)
            twin.write32(base + regmap.Page.STAGE_DONE, request_id)
            command(twin, request_id, 2, page)
            command(twin, request_id, CANCEL, page)

    for group in range(2):
        admit(twin, group=group)
    with ThreadPoolExecutor() as pool:
        lanes = [pool.submit(run_lane, twin, lane, 200) for lane in range(2)]
        for future in [pool.submit(play, page) for page in pages]:
            future.result()
        for lane in lanes:
            lane.result()
    assert twin.read32(REJECTS) == 0
    assert twin.read32(regmap.COUNTERS + regmap.Counters.STAGE_DONE_IGNORED) == 0
    assert twin.read32(regmap.COUNTERS + regmap.Counters.ADMITTED) == len(pages) * rounds + 2
    assert active(twin) == 2


def test_device_sleeps_when_nothing_is_in_flight(twin: TwinTransport) -> None:
    assert cpu_time_of_a_second() < 0.2


def test_device_sleeps_while_a_lane_works(woken: TwinTransport) -> None:
    with LanePort(woken.segment.path, 0) as port:
        admit(woken)
        dispatch = take(port)
        assert cpu_time_of_a_second() < 0.2
        port.complete(dispatch.sequence)
        assert take(port).sequence == dispatch.sequence + 1


def test_polling_device_sees_a_completion_that_rings_no_bell() -> None:
    twin = open_twin(polling=True)
    configure(twin)
    with LanePort(twin.segment.path, 0) as port:
        admit(twin)
        for sequence in range(1, 20):
            assert take(port).sequence == sequence
            done = (
                regmap.LanePort.DONE + sequence % 16 * regmap.LanePort.DONE_STRIDE + regmap.Completion.BATCH_DONE
            ) // 4
            twin.segment.port_memory(0)[done] = sequence
    twin.close()


def cpu_time_of_a_second() -> float:
    before = time.process_time()
    time.sleep(1.0)
    return time.process_time() - before


def test_trace_is_kept_for_a_host_that_reads_it_late(woken: TwinTransport) -> None:
    admit(woken)
    dispatches = run_lane(woken, 0, 300)
    with LanePort(woken.segment.path, 0) as port:
        # It is there once the last completion has been taken in.
        assert take(port).first
    events = woken.drain_trace()
    kinds = [kind for _, kind, *_ in events]
    assert kinds[0] == CommitKind.ADMIT
    assert kinds.count(CommitKind.COMPLETE) == dispatches
    assert woken.read32(regmap.COUNTERS + regmap.Counters.TRACE_LOST) == 0
    times = [event[0] for event in events]
    assert times == sorted(times)
    sequences = [event[4] for event in events if event[1] == CommitKind.COMPLETE]
    assert sequences == list(range(1, dispatches + 1))
    assert all(kind != CommitKind.ADMIT for _, kind, *_ in woken.drain_trace())


def test_host_bell_rings_for_every_retirement_and_reject(woken: TwinTransport) -> None:
    for _ in range(50):
        bell = woken.segment.host_bell()
        command(woken, 0, 0)
        bell = woken.wait(bell, WAIT_S)
        head = regmap.FifoRejectHead.unpack(woken.read64(regmap.FIFO + regmap.Fifo.REJECT_HEAD))
        assert head.valid
        woken.write32(regmap.FIFO + regmap.Fifo.REJECT_POP, head.index)
        request_id = admit(woken, group=1)
        bell = woken.segment.host_bell()
        with LanePort(woken.segment.path, 1) as port:
            dispatch = take(port)
            command(woken, request_id, CANCEL)
            while not dispatch.last:
                port.complete(dispatch.sequence)
                dispatch = take(port)
            port.complete(dispatch.sequence)
        woken.wait(bell, WAIT_S)
        assert pop_retired(woken) == [(request_id, regmap.RetireReason.CANCELLED)]


def test_wait_comes_back_with_the_bell_unchanged_when_nothing_rings(woken: TwinTransport) -> None:
    bell = woken.segment.host_bell()
    assert woken.wait(bell, 0.01) == bell


def test_reset_group_goes_on_with_the_next_sequence(twin: TwinTransport) -> None:
    """The dispatches under way are dropped; neither the lane that was at one nor a new one is led astray."""
    with LanePort(twin.segment.path, 0) as port:
        lost = admit(twin)
        dispatch = take(port)
        twin.write32(regmap.CONTROL + regmap.Control.GROUP_RESET, 0)
        wait_until(twin, lambda: twin.read64(regmap.FIFO + regmap.Fifo.RETIRE_HEAD) >> 63 == 1)
        assert pop_retired(twin) == [(lost, regmap.RetireReason.LANE_LOST)]
        port.complete(dispatch.sequence)
        admit(twin)
        following = take(port)
        assert (following.sequence, following.first) == (dispatch.sequence + 2, True)
        port.record(following)
        port.complete(following.sequence)
        assert take(port).sequence == following.sequence + 1
    with LanePort(twin.segment.path, 0) as again:
        assert take(again).sequence == following.sequence + 1


def test_lane_attaches_to_a_sequence_set_by_the_host(twin: TwinTransport) -> None:
    sequence = 0x7_FFFE
    twin.write32(regmap.LANE + regmap.LANE_STRIDE + regmap.Lane.SEQUENCE, sequence)
    with LanePort(twin.segment.path, 1) as port:
        admit(twin, group=1)
        for expected in (0x7_FFFE, 0x8_0001, 0x8_0002):
            dispatch = take(port)
            assert dispatch.sequence == expected
            port.record(dispatch)
            port.complete(dispatch.sequence)


def test_dead_lane_blocks_nobody(twin: TwinTransport) -> None:
    admit(twin, group=0)
    with LanePort(twin.segment.path, 0) as port:
        take(port)
    admit(twin, group=1)
    assert run_lane(twin, 1, 50) == 2 * 50 + 1
    assert active(twin) == 2


def test_lane_that_writes_garbage_harms_no_other(twin: TwinTransport) -> None:
    """One port and the header are overwritten again and again while the other lane works."""
    noise = random.Random(1)
    for group in range(2):
        admit(twin, group=group)
    over = threading.Event()

    def spoil() -> None:
        port, header = twin.segment.port_memory(0), twin.segment.header_memory()
        bells = {regmap.Segment.DEVICE_BELL // 4, regmap.Segment.HOST_BELL // 4}
        while not over.is_set():
            port[:] = np.frombuffer(noise.randbytes(4 * len(port)), dtype=np.uint32)
            for word in range(32):
                if word not in bells:
                    header[word] = noise.getrandbits(32)
            time.sleep(0.001)

    with LanePort(twin.segment.path, 1) as port:
        spoiler = threading.Thread(target=spoil)
        spoiler.start()
        for sequence in range(1, 500):
            assert take(port).sequence == sequence
            port.complete(sequence)
        over.set()
        spoiler.join(WAIT_S)
    assert active(twin) == 2
    with pytest.raises(SegmentError):
        LanePort(twin.segment.path, 1)


def test_close_ends_waiting_lanes_and_hosts(twin: TwinTransport) -> None:
    path = twin.segment.path
    assert os.stat(path).st_mode & 0o777 == 0o600
    port = LanePort(path, 0)
    with ThreadPoolExecutor() as pool:
        lane = pool.submit(port.wait, WAIT_S)
        host = pool.submit(twin.wait, twin.segment.host_bell(), WAIT_S)
        twin.close()
        twin.close()
        assert lane.result(WAIT_S) is None
        with pytest.raises(DeviceClosed, match="closed; open the device again"):
            host.result(WAIT_S)
    assert port.stop_requested
    assert not path.exists()
    port.close()
    with pytest.raises(DeviceClosed):
        twin.read32(0)


def test_close_in_the_midst_of_calls(twin: TwinTransport) -> None:
    started = threading.Barrier(5)

    def hammer() -> None:
        started.wait(WAIT_S)
        while True:
            twin.read32(regmap.PAGE)
            twin.drain_trace()

    with ThreadPoolExecutor() as pool:
        calls = [pool.submit(hammer) for _ in range(4)]
        started.wait(WAIT_S)
        twin.close()
        for call in calls:
            with pytest.raises(DeviceClosed):
                call.result(WAIT_S)


@pytest.mark.parametrize(("option", "value"), [("slots", 100), ("seats", 8), ("lanes", 9), ("tokens", 3)])
def test_size_out_of_range_is_refused(option: str, value: int) -> None:
    with pytest.raises(InvalidArgument, match=rf"{option}.* not {value}"):
        TwinTransport(**{option: value})  # type: ignore[arg-type]
