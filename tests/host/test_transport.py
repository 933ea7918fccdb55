"""What every transport does: registers, lanes' rings, bells, traces; with lanes in threads of this process."""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cuelight import regmap
from cuelight.errors import DeviceClosed, InvalidArgument, SegmentError
from cuelight.lanes.port import LanePort
from cuelight.lanes.types import Entry, PassRecord
from cuelight.regmap import CommitKind
from cuelight.transports.base import Transport
from cuelight.transports.polled import PolledTransport
from cuelight.transports.twin import TwinTransport

from .bare import (
    CANCEL,
    SEATS,
    SLOTS,
    STAGES,
    WAIT_S,
    active,
    admit,
    command,
    configure,
    passes,
    pop_retired,
    run_lane,
    take,
    wait_until,
)
from .model_registers import ModelRegisters


@pytest.fixture(params=["twin", "polling twin", "polled"])
def transport(request: pytest.FixtureRequest) -> Iterator[Transport]:
    """The twin, which has a thread of its own, and the same RTL served through its registers alone."""
    transport: Transport
    before_s = sys.getswitchinterval()
    if request.param == "polled":
        # The model's registers are read in Python: by a thread that must not wait its turn for long.
        sys.setswitchinterval(0.0002)
        transport = PolledTransport(ModelRegisters(slots=SLOTS, seats=SEATS), tokens=64, context=64, blocks=4)
    else:
        polling = request.param == "polling twin"
        transport = TwinTransport(slots=SLOTS, seats=SEATS, tokens=64, context=64, blocks=4, polling=polling)
    configure(transport)
    yield transport
    transport.close()
    sys.setswitchinterval(before_s)


def test_registers_are_reached_at_both_widths(transport: Transport) -> None:
    assert transport.read32(regmap.IDENTITY + regmap.Identity.MAGIC) == 0x4C455543
    both = transport.read64(regmap.IDENTITY + regmap.Identity.MAGIC)
    assert both >> 32 == transport.read32(regmap.IDENTITY + regmap.Identity.VERSION)
    capabilities = regmap.IdentityCapabilities.unpack(transport.read64(regmap.IDENTITY + regmap.Identity.CAPABILITIES))
    assert (capabilities.slots, capabilities.seats, capabilities.lanes) == (SLOTS, SEATS, 2)
    rows = regmap.GROUP + regmap.Group.ROWS
    transport.write32(rows, 77)
    assert (transport.read32(rows), transport.read32(rows + regmap.GROUP_STRIDE)) == (77, 256)


@pytest.mark.parametrize("call", ["read32", "read64"])
@pytest.mark.parametrize("offset", [-8, 2, 0x10000])
def test_offset_that_is_none_is_refused(transport: Transport, call: str, offset: int) -> None:
    with pytest.raises(InvalidArgument, match="is no offset"):
        getattr(transport, call)(offset)


def test_value_that_does_not_fit_is_refused(transport: Transport) -> None:
    with pytest.raises(InvalidArgument, match="does not fit a 32-bit register"):
        transport.write32(regmap.CONTROL + regmap.Control.STAGE_COUNT, 1 << 32)
    with pytest.raises(InvalidArgument, match="does not fit a 64-bit register"):
        transport.write64(regmap.PAGE + regmap.Page.SCHED_CMD, -1)


def test_pass_goes_through_its_stages_with_its_record(transport: Transport) -> None:
    with LanePort(transport.segment.path, 1) as port:
        request_id = admit(transport, group=1, rows=20)
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
        wait_until(
            transport,
            lambda: active(transport) == 1 and transport.read64(regmap.FIFO + regmap.Fifo.RETIRE_HEAD) >> 63 == 1,
        )
        assert pop_retired(transport) == [(request_id, regmap.RetireReason.FINISHED)]


def test_second_pass_goes_first_and_has_a_record_of_its_own(transport: Transport) -> None:
    with LanePort(transport.segment.path, 0) as port:

        def answer() -> tuple[int, int, PassRecord]:
            dispatch = take(port)
            record = port.record(dispatch)
            port.complete(dispatch.sequence)
            return dispatch.stage, dispatch.buffer, record

        waiting = admit(transport, tier=3)
        assert [answer()[:2] for _ in range(3)] == [(1, 0), (2, 0), (3, 0)]
        running = take(port)
        assert (running.stage, running.buffer) == (2, 1)
        urgent = admit(transport, rows=20)
        wait_until(transport, lambda: passes(transport) == 3)
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
            command(transport, request_id, CANCEL)


def test_overtaken_pass_goes_on_with_its_own_record(transport: Transport) -> None:
    transport.write32(regmap.CONTROL + regmap.Control.STAGE_COUNT, 6)
    with LanePort(transport.segment.path, 0) as port:

        def answer() -> tuple[int, int, int, int]:
            dispatch = take(port)
            record = port.record(dispatch)
            port.complete(dispatch.sequence)
            return dispatch.stage, dispatch.pass_number, len(record.decode), len(record.entries)

        waiting = admit(transport, tier=3)
        assert [answer()[:2] for _ in range(5)] == [(stage, 1) for stage in (1, 2, 3, 4, 5)]
        running = take(port)
        assert (running.stage, running.pass_number) == (2, 2)
        urgent = admit(transport, rows=20)
        wait_until(transport, lambda: passes(transport) == 3)
        port.complete(running.sequence)
        assert answer() == (3, 2, 1, 0)
        assert [answer() for _ in range(5)] == [(stage, 3, 0, 1) for stage in (1, 2, 3, 4, 5)]
        assert [answer() for _ in range(2)] == [(stage, 2, 1, 0) for stage in (4, 5)]
        for request_id in (waiting, urgent):
            command(transport, request_id, CANCEL)


def test_pass_goes_from_lane_to_lane_of_a_pipeline(transport: Transport) -> None:
    lane = regmap.LANE + regmap.LANE_STRIDE
    transport.write32(lane + regmap.Lane.FIRST_STAGE, 3)
    transport.write32(regmap.LANE + regmap.Lane.PIPELINE, 2)
    with LanePort(transport.segment.path, 0) as front, LanePort(transport.segment.path, 1) as back:

        def run(port: LanePort, count: int, finished: tuple[int, ...] = ()) -> list[tuple[int, int, bool, bool]]:
            seen = []
            for _ in range(count):
                dispatch = take(port)
                record = port.record(dispatch)
                assert len(record.decode) + sum(entry.rows for entry in record.entries) == dispatch.rows
                seen.append((dispatch.stage, dispatch.buffer, dispatch.first, dispatch.last))
                port.complete(dispatch.sequence, finished if dispatch.stage == STAGES - 1 else ())
            return seen

        ids = [admit(transport)]
        assert run(front, 2) == [(1, 0, True, False), (2, 0, False, True)]
        # While the first is on the back lane the second one's pass runs on the front lane.
        ids.append(admit(transport))
        assert run(front, 2) == [(1, 2, True, False), (2, 2, False, True)]
        assert run(back, 2) == [(1, 0, True, False), (3, 0, False, True)]
        assert run(back, 2) == [(1, 2, True, False), (3, 2, False, True)]
        # Seat 0 decodes in pass 0, seat 1 in pass 1.
        assert sorted(run(front, 2)) == [(2, 1, True, True), (2, 3, True, True)]
        assert sorted(run(back, 2, (0, 1))) == [(3, 1, True, True), (3, 3, True, True)]
        retired: list[int] = []

        def all_retired() -> bool:
            retired.extend(request_id for request_id, _ in pop_retired(transport))
            return len(retired) == 2

        wait_until(transport, all_retired)
        assert sorted(retired) == ids


def test_entries_of_an_earlier_pass_leave_no_trace_in_a_shorter_record(transport: Transport) -> None:
    with LanePort(transport.segment.path, 0) as port:
        # The first pass may hold one of them only; the second, in the other buffer, has the others.
        for _ in range(8):
            admit(transport)
        entries = []
        for _ in range(16):
            dispatch = take(port)
            if dispatch.first:
                start = (regmap.LanePort.RECORD + dispatch.buffer * regmap.LanePort.RECORD_STRIDE) // 4
                words = transport.segment.port_memory(0)[start : start + regmap.LanePort.RECORD_STRIDE // 4]
                unused = words[(regmap.Record.ENTRY + dispatch.entries * regmap.Record.ENTRY_STRIDE) // 4 :]
                assert not unused.any()
                entries.append(dispatch.entries)
            port.complete(dispatch.sequence)
        assert sum(entries) == 8
        assert entries[-1] == 0


def test_device_sleeps_when_nothing_is_in_flight(transport: Transport) -> None:
    assert cpu_time_of_a_second() < 0.2


def test_reset_group_goes_on_with_the_next_sequence(transport: Transport) -> None:
    """The dispatches under way are dropped; neither the lane that was at one nor a new one is led astray."""
    with LanePort(transport.segment.path, 0) as port:
        lost = admit(transport)
        dispatch = take(port)
        transport.write32(regmap.CONTROL + regmap.Control.GROUP_RESET, 0)
        wait_until(transport, lambda: transport.read64(regmap.FIFO + regmap.Fifo.RETIRE_HEAD) >> 63 == 1)
        assert pop_retired(transport) == [(lost, regmap.RetireReason.LANE_LOST)]
        port.complete(dispatch.sequence)
        admit(transport)
        following = take(port)
        assert (following.sequence, following.first) == (dispatch.sequence + 2, True)
        port.record(following)
        port.complete(following.sequence)
        assert take(port).sequence == following.sequence + 1
    with LanePort(transport.segment.path, 0) as again:
        assert take(again).sequence == following.sequence + 1


def test_lane_attaches_to_a_sequence_set_by_the_host(transport: Transport) -> None:
    sequence = 0x7_FFFE
    transport.write32(regmap.LANE + regmap.LANE_STRIDE + regmap.Lane.SEQUENCE, sequence)
    with LanePort(transport.segment.path, 1) as port:
        admit(transport, group=1)
        for expected in (0x7_FFFE, 0x8_0001, 0x8_0002):
            dispatch = take(port)
            assert dispatch.sequence == expected
            port.record(dispatch)
            port.complete(dispatch.sequence)


def test_dead_lane_blocks_nobody(transport: Transport) -> None:
    admit(transport, group=0)
    with LanePort(transport.segment.path, 0) as port:
        take(port)
    admit(transport, group=1)
    assert run_lane(transport, 1, 50) == 2 * 50 + 1
    assert active(transport) == 2


def test_lane_that_writes_garbage_harms_no_other(transport: Transport) -> None:
    """One port and the header are overwritten again and again while the other lane works."""
    noise = random.Random(1)
    for group in range(2):
        admit(transport, group=group)
    over = threading.Event()

    def spoil() -> None:
        port, header = transport.segment.port_memory(0), transport.segment.header_memory()
        bells = {regmap.Segment.DEVICE_BELL // 4, regmap.Segment.HOST_BELL // 4}
        while not over.is_set():
            port[:] = np.frombuffer(noise.randbytes(4 * len(port)), dtype=np.uint32)
            for word in range(32):
                if word not in bells:
                    header[word] = noise.getrandbits(32)
            time.sleep(0.001)

    with LanePort(transport.segment.path, 1) as port:
        spoiler = threading.Thread(target=spoil)
        spoiler.start()
        for sequence in range(1, 200):
            assert take(port).sequence == sequence
            port.complete(sequence)
        over.set()
        spoiler.join(WAIT_S)
    assert active(transport) == 2
    with pytest.raises(SegmentError):
        LanePort(transport.segment.path, 1)


def test_close_ends_waiting_lanes_and_hosts(transport: Transport) -> None:
    path = transport.segment.path
    assert os.stat(path).st_mode & 0o777 == 0o600
    port = LanePort(path, 0)
    with ThreadPoolExecutor() as pool:
        lane = pool.submit(port.wait, WAIT_S)
        host = pool.submit(transport.wait, transport.segment.host_bell(), WAIT_S)
        transport.close()
        transport.close()
        assert lane.result(WAIT_S) is None
        with pytest.raises(DeviceClosed, match="closed; open"):
            host.result(WAIT_S)
    assert port.stop_requested
    assert not path.exists()
    port.close()
    with pytest.raises(DeviceClosed):
        transport.read32(0)


def test_close_in_the_midst_of_calls(transport: Transport) -> None:
    started = threading.Barrier(5)

    def hammer() -> None:
        started.wait(WAIT_S)
        while True:
            transport.read32(regmap.PAGE)
            transport.drain_trace()

    with ThreadPoolExecutor() as pool:
        calls = [pool.submit(hammer) for _ in range(4)]
        started.wait(WAIT_S)
        transport.close()
        for call in calls:
            with pytest.raises(DeviceClosed):
                call.result(WAIT_S)


@pytest.mark.parametrize("transport", ["twin", "polled"], indirect=True)
def test_device_sleeps_while_a_lane_works(transport: Transport) -> None:
    with LanePort(transport.segment.path, 0) as port:
        admit(transport)
        dispatch = take(port)
        assert cpu_time_of_a_second() < 0.2
        port.complete(dispatch.sequence)
        assert take(port).sequence == dispatch.sequence + 1


def test_trace_is_kept_for_a_host_that_reads_it_late(transport: Transport) -> None:
    admit(transport)
    dispatches = run_lane(transport, 0, 200)
    with LanePort(transport.segment.path, 0) as port:
        # It is there once the last completion has been taken in.
        assert take(port).first
    events = transport.drain_trace()
    kinds = [kind for _, kind, *_ in events]
    assert kinds[0] == CommitKind.ADMIT
    assert kinds.count(CommitKind.COMPLETE) == dispatches
    assert transport.read32(regmap.COUNTERS + regmap.Counters.TRACE_LOST) == 0
    times = [event[0] for event in events]
    assert times == sorted(times)
    sequences = [event[4] for event in events if event[1] == CommitKind.COMPLETE]
    assert sequences == list(range(1, dispatches + 1))
    assert all(kind != CommitKind.ADMIT for _, kind, *_ in transport.drain_trace())


def test_host_bell_rings_for_every_retirement_and_reject(transport: Transport) -> None:
    for _ in range(50):
        bell = transport.segment.host_bell()
        command(transport, 0, 0)
        bell = transport.wait(bell, WAIT_S)
        head = regmap.FifoRejectHead.unpack(transport.read64(regmap.FIFO + regmap.Fifo.REJECT_HEAD))
        assert head.valid
        transport.write32(regmap.FIFO + regmap.Fifo.REJECT_POP, head.index)
        request_id = admit(transport, group=1)
        bell = transport.segment.host_bell()
        with LanePort(transport.segment.path, 1) as port:
            dispatch = take(port)
            command(transport, request_id, CANCEL)
            while not dispatch.last:
                port.complete(dispatch.sequence)
                dispatch = take(port)
            port.complete(dispatch.sequence)
        transport.wait(bell, WAIT_S)
        assert pop_retired(transport) == [(request_id, regmap.RetireReason.CANCELLED)]


def test_wait_comes_back_with_the_bell_unchanged_when_nothing_rings(transport: Transport) -> None:
    bell = transport.segment.host_bell()
    assert transport.wait(bell, 0.01) == bell


def cpu_time_of_a_second() -> float:
    before = time.process_time()
    time.sleep(1.0)
    return time.process_time() - before
