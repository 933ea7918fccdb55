import contextlib
import json
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from cuelight import Device, Finish, Request
from cuelight.errors import (
    CommandRefused,
    CuelightError,
    DeviceBusy,
    DeviceClosed,
    DeviceFull,
    DeviceLost,
    InvalidArgument,
    LaneError,
    NoKvCredit,
    PromptTooLong,
    RequestCancelled,
    Timeout,
    UnknownDevice,
    UnknownGroup,
    UnknownTier,
)
from cuelight.filters import Filters
from cuelight.lanes.port import LanePort
from cuelight.lanes.types import Dispatch, TokenStatus
from cuelight.regmap import (
    COUNTERS,
    FIFO,
    GROUP,
    IDENTITY,
    PAGE,
    CommitKind,
    Counters,
    Fifo,
    Group,
    Identity,
    Page,
    RejectReason,
)
from cuelight.transports.twin import TwinTransport

from .checks import WAIT_S, assert_at_rest, until
from .lane import STAGES, expected_tokens, lane_of

SLOTS = 64
SEATS = 16
BLOCKS = 40
POSITIONS = 16


@pytest.fixture
def device() -> Iterator[Device]:
    with Device.open("twin", lanes=2, slots=SLOTS, seats=SEATS, context=256, blocks=16) as device:
        device.configure(stages=STAGES, kv_blocks=BLOCKS, block_positions=POSITIONS)
        yield device


@pytest.fixture
def only_device() -> Iterator[Device]:
    """One that can't be replaced."""
    with Device(TwinTransport(lanes=2, slots=SLOTS, seats=SEATS, context=256, blocks=16)) as device:
        device.configure(stages=STAGES, kv_blocks=BLOCKS, block_positions=POSITIONS)
        yield device


def check_tokens(request: Request, prompt: list[int]) -> None:
    tokens = request.result(WAIT_S)
    first = len(prompt)
    assert [token.position for token in tokens] == list(range(first, first + request.max_new_tokens))
    assert [token.token for token in tokens] == expected_tokens(prompt, len(tokens))
    assert request.finish is Finish.LENGTH


# ---------------------------------------------------------------------------------------- manual mode


def test_a_manual_request_walks_through_stages_as_its_host_says(device: Device) -> None:
    request = device.admit(stage=1)
    with pytest.raises(CommandRefused, match="STAGE_DONE first") as refusal:
        request.run(2)
    assert refusal.value.reason == RejectReason.REQUEST_RUNNING
    request.stage_done()
    request.stage_done()
    request.run(2)
    with pytest.raises(CommandRefused):
        request.run(3)
    assert device.status().active == 1
    assert request.cancel()
    assert not request.cancel()
    with pytest.raises(CommandRefused):
        request.run(2)
    assert device.rejects() == ()
    assert_at_rest(device)


def test_a_stage_that_does_not_exist_is_refused_and_costs_nothing(device: Device) -> None:
    for stage in (STAGES, 0xFFFF, 0xFFFF_FFFE):
        with pytest.raises(CommandRefused) as refusal:
            device.admit(stage)
        assert refusal.value.reason == RejectReason.UNKNOWN_STAGE
    assert_at_rest(device)


def test_a_full_device_says_so_and_takes_the_next_when_one_leaves(device: Device) -> None:
    requests = [device.admit(stage=1) for _ in range(SLOTS)]
    assert sorted(request.id & 0xFFFF for request in requests) == list(range(SLOTS))
    for call in (lambda: device.admit(1, timeout_s=0), lambda: device.submit([1], 1, timeout_s=0)):
        with pytest.raises(DeviceFull, match=f"All {SLOTS} slots"):
            call()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(device.admit, 1, WAIT_S)
        requests.pop(5).cancel()
        requests.append(waiting.result(WAIT_S))
    for request in requests:
        assert request.cancel()
    assert_at_rest(device)


def test_manual_requests_from_many_threads_never_share_a_slot(device: Device) -> None:
    def work(seed: int) -> list[int]:
        ids = []
        for turn in range(30):
            request = device.admit(stage=turn % STAGES)
            ids.append(request.id)
            request.stage_done()
            request.run((seed + turn) % STAGES)
            assert request.cancel()
        return ids

    with ThreadPoolExecutor(6) as pool:
        ids = [id for ids in pool.map(work, range(6), timeout=WAIT_S) for id in ids]
    assert len(set(ids)) == len(ids) == 180
    assert_at_rest(device)


# -------------------------------------------------------------------------------------- automatic mode


def test_tokens_come_in_order_and_everything_is_given_back(device: Device) -> None:
    prompts = [list(range(100 * turn, 100 * turn + 5 + 3 * turn)) for turn in range(SEATS + 4)]
    with lane_of(device):
        requests = [device.submit(prompt, 4, tier=turn % 4) for turn, prompt in enumerate(prompts)]
        for request, prompt in zip(requests, prompts, strict=True):
            check_tokens(request, prompt)
        assert_at_rest(device)
    counters = device.status().counters
    assert (counters.admitted, counters.retired, counters.rejected) == (len(prompts), len(prompts), 0)


def test_long_prompts_are_prefilled_in_chunks(device: Device) -> None:
    prompt = list(range(230))
    device.configure(stages=STAGES, kv_blocks=BLOCKS, block_positions=POSITIONS, seats=8, rows=24)
    with lane_of(device) as lane:
        check_tokens(device.submit(prompt, 3), prompt)
    # 14 chunks of 16 rows and one of 6, then two passes that decode.
    assert lane.passes == [(0, 1)] * 15 + [(1, 0)] * 2


def test_both_groups_run_at_once(device: Device) -> None:
    with lane_of(device, 0), lane_of(device, 1):
        requests = [device.submit([7, turn], 5, group=turn % 2) for turn in range(12)]
        for turn, request in enumerate(requests):
            check_tokens(request, [7, turn])
        assert_at_rest(device)
    assert all(lane.passes for lane in device.status().lanes)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"prompt": []}, InvalidArgument),
        ({"prompt": [1.5]}, InvalidArgument),
        ({"prompt": [[1]]}, InvalidArgument),
        ({"prompt": [-1]}, InvalidArgument),
        ({"prompt": [1 << 31]}, InvalidArgument),
        ({"max_new_tokens": 0}, InvalidArgument),
        ({"prompt": [1] * 250, "max_new_tokens": 7}, PromptTooLong),
        ({"tier": 4}, UnknownTier),
        ({"tier": -1}, UnknownTier),
        ({"group": 2}, UnknownGroup),
        ({"temperature": -0.1}, InvalidArgument),
        ({"temperature": float("nan")}, InvalidArgument),
        ({"seed": 1 << 64}, InvalidArgument),
        ({"seed": -1}, InvalidArgument),
        ({"top_logprobs": 21}, InvalidArgument),
        ({"top_logprobs": -1}, InvalidArgument),
        ({"filters": Filters(top_k=-1)}, InvalidArgument),
        ({"filters": Filters(logit_bias=tuple((token, 1.0) for token in range(301)))}, InvalidArgument),
    ],
)
def test_what_cannot_be_right_is_refused_before_the_device_hears_of_it(
    device: Device, arguments: dict[str, object], error: type[CuelightError]
) -> None:
    with pytest.raises(error) as refusal:
        device.submit(**{"prompt": [1, 2], "max_new_tokens": 2} | arguments)  # type: ignore[arg-type]
    assert str(refusal.value).endswith(".")
    assert device.status().counters.admitted == 0
    assert_at_rest(device)


def test_a_request_without_credit_waits_for_it_or_says_so(device: Device) -> None:
    device.configure(stages=STAGES, kv_blocks=4, block_positions=POSITIONS)
    with pytest.raises(NoKvCredit, match="needs 5 KV blocks and lane group 0 has 4"):
        device.submit([1] * 60, 5)
    held = device.submit([1] * 40, 8)
    with pytest.raises(NoKvCredit, match="1 of 4 KV blocks free"):
        device.submit([1] * 20, 1, timeout_s=0)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(device.submit, [2] * 20, 1, timeout_s=WAIT_S)
        with lane_of(device):
            check_tokens(held, [1] * 40)
            check_tokens(waiting.result(WAIT_S), [2] * 20)
            assert_at_rest(device)


def test_what_the_device_alone_refuses_is_a_typed_error_and_costs_nothing(device: Device) -> None:
    device.transport.write32(GROUP + Group.KV_BLOCKS, 1)
    with pytest.raises(NoKvCredit) as refusal:
        device.submit([1] * 20, 20)
    assert refusal.value.reason == RejectReason.NO_KV_CREDIT
    assert device._room.free_blocks(0) == BLOCKS
    assert device.requests == ()
    device.transport.write32(GROUP + Group.KV_BLOCKS, BLOCKS)
    with lane_of(device):
        check_tokens(device.submit([1] * 20, 20), [1] * 20)
        assert_at_rest(device)


def test_settings_are_checked_and_stay_while_requests_live(device: Device) -> None:
    settings: dict[str, Any] = {"stages": STAGES, "kv_blocks": BLOCKS, "block_positions": POSITIONS}
    for wrong in (
        {"stages": 3},
        {"stages": 129},
        {"kv_blocks": 1 << 16},
        {"block_positions": 0},
        {"seats": 0},
        {"seats": SEATS + 1},
        {"rows": SEATS + 15},
        {"rows": 513},
        {"depth": 0},
        {"depth": 3},
    ):
        with pytest.raises(InvalidArgument):
            device.configure(**settings | wrong)
    for seats, rows in ((16, 512), (1, 17), (16, 32), (2, 18), (8, 24)):
        device.configure(**settings, seats=seats, rows=rows)
        assert {(group.seats, group.rows) for group in device.status().groups} == {(seats, rows)}
    request = device.submit([1], 1)
    with pytest.raises(DeviceBusy):
        device.configure(**settings)
    with lane_of(device):
        check_tokens(request, [1])
        assert_at_rest(device)
    device.configure(**settings)


def test_refusals_of_others_do_not_confuse_the_driver(device: Device) -> None:
    stop = threading.Event()

    def pester() -> None:
        while not stop.is_set():
            # An admission with an illegal id, and cancels of requests that never lived.
            device.transport.write64(PAGE + Page.SCHED_CMD, 2)
            device.transport.write64(PAGE + Page.SCHED_CMD, (0x7777_0001 << 32) | 0xFFFF_FFFF)
            time.sleep(0)
            device.rejects()

    rude = threading.Thread(target=pester)
    rude.start()
    try:
        for turn in range(50):
            request = device.admit(stage=1)
            with pytest.raises(CommandRefused) as refusal:
                request.run(2)
            assert refusal.value.reason == RejectReason.REQUEST_RUNNING
            assert request.cancel(), turn
    finally:
        stop.set()
        rude.join(WAIT_S)
    rejects = device.rejects()
    assert {(reject.id, reject.reason) for reject in rejects} == {
        (0, RejectReason.ILLEGAL_ID),
        (0x7777_0001, RejectReason.STALE_EPOCH),
    }
    json.dumps([reject.to_dict() for reject in rejects])
    assert_at_rest(device)


# --------------------------------------------------------------------------------------------- cancel


def test_cancel_works_queued_seated_and_after_the_end(device: Device) -> None:
    requests = [device.submit([turn], 4) for turn in range(SEATS + 2)]
    until(lambda: device.status().groups[0].seated == SEATS)
    queued, seated = requests[-1], requests[0]
    assert queued.cancel()
    queued.wait(WAIT_S)
    assert queued.finish is Finish.CANCELLED
    assert seated.cancel()
    with lane_of(device):
        for turn, request in enumerate(requests):
            if request in (queued, seated):
                with pytest.raises(RequestCancelled):
                    request.result(WAIT_S)
            else:
                check_tokens(request, [turn])
            assert not request.cancel()
        assert_at_rest(device)


def test_a_cancel_races_the_end_from_many_threads(device: Device) -> None:
    def work(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(40):
            prompt = [chance.randrange(1000) for _ in range(chance.randrange(1, 40))]
            limit = chance.randrange(1, 6)
            request = device.submit(prompt, limit, group=chance.randrange(2), tier=chance.randrange(4))
            canceller = threading.Thread(target=request.cancel)
            if chance.random() < 0.6:
                if chance.random() < 0.5:
                    next(request.tokens(WAIT_S), None)
                canceller.start()
            tokens = list(request.tokens(WAIT_S))
            assert [token.token for token in tokens] == expected_tokens(prompt, len(tokens))
            assert request.finish is (Finish.LENGTH if len(tokens) == limit else Finish.CANCELLED)
            if canceller.ident:
                canceller.join(WAIT_S)

    with lane_of(device, 0), lane_of(device, 1), ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(work, seed) for seed in range(6)]:
            done.result(4 * WAIT_S)
        assert_at_rest(device)
    counters = device.status().counters
    assert counters.admitted == counters.retired == 240
    assert (counters.rejects_lost, counters.config_ignored, counters.pops_ignored) == (0, 0, 0)


# ------------------------------------------------------------------------------------ when things die


def test_closing_ends_requests_whose_lane_is_at_work(device: Device) -> None:
    begun = threading.Event()
    with lane_of(device, gate=lambda dispatch: begun.set()):
        request = device.submit([1], 200)
        assert begun.wait(WAIT_S)
        device.close()
    with pytest.raises(DeviceClosed, match="submit it again"):
        request.result(WAIT_S)
    for call in (lambda: device.submit([1], 1), lambda: device.admit(1), device.status):
        with pytest.raises(DeviceClosed):
            call()
    assert not request.cancel()
    device.close()


def test_closing_does_not_wait_for_a_lane_that_never_answers(device: Device) -> None:
    seated, queued = [device.submit([turn], 5, group=group) for group in range(2) for turn in range(2)][1:3]
    device.close(timeout_s=0.1)
    for request in (seated, queued):
        with pytest.raises(DeviceClosed):
            request.result(WAIT_S)


def test_closing_wakes_who_waits_for_room(device: Device) -> None:
    device.configure(stages=STAGES, kv_blocks=1, block_positions=POSITIONS)
    device.submit([1], 1)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(device.submit, [1], 1, timeout_s=WAIT_S)
        until(lambda: len(device._room._lines[0]) == 1)
        device.close(timeout_s=0.1)
        with pytest.raises(DeviceClosed):
            waiting.result(WAIT_S)


def test_a_lost_lane_fails_its_requests_and_no_others(device: Device) -> None:
    hung, released = threading.Event(), threading.Event()

    def hang(dispatch: Dispatch) -> None:
        if dispatch.pass_number == 3:
            hung.set()
            assert released.wait(WAIT_S)

    with lane_of(device, 1):
        with lane_of(device, 0, hang):
            lost = [device.submit([turn], 20) for turn in range(SEATS + 2)]
            kept = [device.submit([turn], 20, group=1) for turn in range(4)]
            assert hung.wait(WAIT_S)
            device.reset_group(0, LaneError("Lane 0 has died; start it again."))
            for request in lost:
                with pytest.raises(LaneError, match="has died"):
                    request.result(WAIT_S)
            for turn, request in enumerate(kept):
                check_tokens(request, [turn])
            released.set()
        with pytest.raises(LaneError, match="has died"):
            device.submit([1], 1)
        check_tokens(device.submit([1], 1, group=1), [1])
        assert_at_rest(device)


def test_a_lost_device_fails_all_that_lives_and_hangs_nobody(
    only_device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = only_device

    def lose(*_: int) -> int:
        raise DeviceLost("The device is gone.")

    request = device.submit([1], 1)
    for access in ("read32", "read64", "write32", "write64"):
        monkeypatch.setattr(device.transport, access, lose)
    for call in (lambda: request.result(WAIT_S), lambda: device.submit([1], 1), lambda: device.admit(1), device.status):
        with pytest.raises(DeviceLost, match="gone"):
            call()
    device.close()


def test_a_device_that_was_reset_has_lost_its_requests(only_device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    device = only_device
    read64 = device.transport.read64
    request = device.submit([1], 1)
    nonce = IDENTITY + Identity.BOOT_NONCE
    monkeypatch.setattr(device.transport, "read64", lambda offset: read64(offset) ^ (offset == nonce))
    with pytest.raises(DeviceLost, match="was reset"):
        request.result(WAIT_S)


@pytest.mark.parametrize(
    ("position", "status", "sentence"),
    [(1, TokenStatus.LANE_ERROR, "error 77"), (2, TokenStatus.MORE, "position 2"), (1, 9, "error 77")],
)
def test_a_lane_that_misbehaves_fails_the_request_alone(
    device: Device, position: int, status: int, sentence: str
) -> None:
    request = device.submit([1], 5)
    with LanePort(device.segment.path, 0) as port:
        dispatch = port.wait(WAIT_S)
        assert dispatch is not None
        port.post_token(request.id, position, 77, 0.0, status)
        port.post_token(0xDEAD_0001, 0, 0, 0.0, TokenStatus.MORE)
        until(lambda: device.status().counters.rejected == 0 and request._failure is not None)
    with lane_of(device):
        with pytest.raises(LaneError, match=sentence):
            request.result(WAIT_S)
        check_tokens(device.submit([1], 2), [1])
        assert_at_rest(device)


def test_a_wait_for_a_lane_that_is_not_there_ends_in_time(device: Device) -> None:
    request = device.submit([1], 1)
    with pytest.raises(Timeout):
        next(request.tokens(0.05))
    assert not request.done
    with lane_of(device):
        check_tokens(request, [1])


def test_an_interrupted_admission_leaves_nothing_behind(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    write64 = device.transport.write64
    for fatal, before in ((Page.SCHED_ATTR, True), (Page.SCHED_CMD, True), (Page.SCHED_CMD, False)):

        def interrupt(offset: int, value: int, fatal: int = fatal, before: bool = before) -> None:
            if offset != fatal or (value & 0xFFFF_FFFF) == 0xFFFF_FFFF:
                write64(offset, value)
                return
            if not before:
                write64(offset, value)
            raise KeyboardInterrupt

        monkeypatch.setattr(device.transport, "write64", interrupt)
        with pytest.raises(KeyboardInterrupt):
            device.submit([1], 1)
        with pytest.raises(KeyboardInterrupt):
            device.admit(stage=1)
        monkeypatch.undo()
        with lane_of(device):
            assert_at_rest(device)


@pytest.mark.parametrize("before", [True, False])
def test_an_interrupt_amid_a_refusal_loses_no_later_one(
    device: Device, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    write32 = device.transport.write32

    def interrupt(offset: int, value: int) -> None:
        if offset != FIFO + Fifo.REJECT_POP or threading.current_thread() is not threading.main_thread():
            write32(offset, value)
            return
        if not before:
            write32(offset, value)
        raise KeyboardInterrupt

    request = device.admit(stage=1)
    monkeypatch.setattr(device.transport, "write32", interrupt)
    with contextlib.suppress(CommandRefused), pytest.raises(KeyboardInterrupt):
        request.run(2)
    monkeypatch.undo()
    for _ in range(3):
        with pytest.raises(CommandRefused):
            request.run(2)
    assert request.cancel()
    assert_at_rest(device)


# ---------------------------------------------------------------------------------- status and trace


def test_status_tells_who_is_where_and_is_json(device: Device) -> None:
    manual = device.admit(stage=1)
    requests = [device.submit([1], 1, group=1) for _ in range(SEATS + 3)]
    until(lambda: device.status().groups[1].seated == SEATS)
    status = device.status()
    assert status.active == 1 + len(requests)
    assert (status.groups[0].queued, status.groups[0].seated) == (0, 0)
    assert (status.groups[1].queued, status.groups[1].kv_free) == (3, BLOCKS - len(requests))
    assert (status.lanes[0].outstanding, status.lanes[1].outstanding) == (False, True)
    assert status.stages == STAGES
    assert len(status.rtl_hash) == 32
    assert json.loads(json.dumps(status.to_dict()))["groups"][1]["seated"] == SEATS
    manual.cancel()
    with lane_of(device, 1):
        for request in requests:
            check_tokens(request, [1])
        assert_at_rest(device)


def test_the_trace_tells_a_requests_life(device: Device) -> None:
    device.trace()
    with lane_of(device):
        request = device.submit([5, 6, 7], 2, tier=1)
        check_tokens(request, [5, 6, 7])
        assert_at_rest(device)
    events = device.trace()
    assert [event.time_ns for event in events] == sorted(event.time_ns for event in events)
    assert abs(events[-1].time_ns - device.status().time_ns) < 3600 * 10**9
    own = [event for event in events if event.id == request.id]
    assert [event.kind for event in own] == [
        CommitKind.ADMIT,
        CommitKind.SEAT,
        CommitKind.CHUNK,
        CommitKind.ADVANCE,
        CommitKind.RETIRE,
        CommitKind.FREE,
    ]
    assert own[0].fields == {"page": 0, "automatic": 1, "tier": 1, "kv_blocks": 1}
    assert own[2].fields == {"seat": own[1].stage, "start": 0, "rows": 3, "last": 1, "first": 1}
    stages = [event.stage for event in events if event.kind == CommitKind.DISPATCH]
    assert stages == [1, 2, 3, 2, 3]
    json.dumps([event.to_dict() for event in events])
    assert device.trace() == []


def test_there_are_no_devices_but_the_twin() -> None:
    with pytest.raises(UnknownDevice, match="'nothing'"):
        Device.open("nothing")


def test_counters_are_where_the_map_says(device: Device) -> None:
    device.admit(stage=1)
    assert device.status().counters.admitted == device.transport.read32(COUNTERS + Counters.ADMITTED) == 1
