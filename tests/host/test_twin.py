"""The twin itself: its boot, its clock, its thread, its sizes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from cuelight import regmap
from cuelight.errors import InvalidArgument
from cuelight.lanes.port import LanePort
from cuelight.transports.twin import TwinTransport

from . import bare
from .bare import CANCEL, SEATS, SLOTS, active, admit, command, configure, run_lane, take

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


def test_every_boot_has_its_own_nonce(woken: TwinTransport) -> None:
    other = open_twin()
    nonces = {each.read64(regmap.IDENTITY + regmap.Identity.BOOT_NONCE) for each in (woken, other)}
    other.close()
    assert len(nonces) == 2


def test_time_is_that_of_the_host(woken: TwinTransport) -> None:
    before = time.monotonic_ns()
    now = woken.read64(regmap.IDENTITY + regmap.Identity.TIME_NS)
    assert before <= now <= time.monotonic_ns()


def test_no_wakeup_is_lost_over_thousands_of_passes(twin: TwinTransport, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both lanes answer at once and look at their rings only when woken, so one lost wakeup stops a lane for good."""
    monkeypatch.setattr("cuelight.lanes.port._HEARTBEAT_S", 10 * HANG_S)
    monkeypatch.setattr(bare, "WAIT_S", 10 * HANG_S)
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


@pytest.mark.parametrize(("option", "value"), [("slots", 100), ("seats", 8), ("lanes", 9), ("tokens", 3)])
def test_size_out_of_range_is_refused(option: str, value: int) -> None:
    with pytest.raises(InvalidArgument, match=rf"{option}.* not {value}"):
        TwinTransport(**{option: value})  # type: ignore[arg-type]
