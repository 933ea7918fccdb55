"""Requests that park and are credited, also when their lane or their device is lost meanwhile."""

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from cuelight import Device, Finish, Request
from cuelight.errors import DeviceBusy, DeviceClosed, InvalidArgument, LaneError, NoKvCredit, Timeout
from cuelight.lanes.types import Dispatch

from .checks import WAIT_S, assert_at_rest, lose_device, lose_lane, until
from .lane import STAGES, expected_tokens, lane_of

POSITIONS = 16
BLOCKS = 120
SEATS = 16
PROMPT = [random.Random(0).randrange(1000) for _ in range(50)]


@pytest.fixture
def device() -> Iterator[Device]:
    with Device.open("twin", lanes=1, slots=64, seats=SEATS, context=256, blocks=16) as device:
        configure(device)
        yield device


def configure(device: Device, seats: int = SEATS) -> None:
    device.configure(stages=STAGES, kv_blocks=BLOCKS, block_positions=POSITIONS, seats=seats)


def check(request: Request, prompt: list[int]) -> None:
    tokens = request.result(WAIT_S)
    assert [token.token for token in tokens] == expected_tokens(prompt, request.max_new_tokens)
    assert [token.position for token in tokens] == list(range(len(prompt), len(prompt) + len(tokens)))
    assert request.finish is Finish.LENGTH


def parked(device: Device, count: int) -> None:
    """Wait until so many seats are parked."""
    until(lambda: device.status().groups[0].parked == count)


def pass_by(device: Device) -> None:
    """Let another request run from its beginning to its end; what the lane gave before has come then."""
    check(device.submit([1, 2, 3], 5), [1, 2, 3])


def test_a_parked_request_is_left_out_until_its_credit(device: Device) -> None:
    with lane_of(device):
        request = device.submit(PROMPT, 200)
        next(request.tokens(WAIT_S))
        assert request.park()
        assert request.parked
        parked(device, 1)
        assert request.park()
        pass_by(device)
        count = len(request.received)
        assert count < 200
        pass_by(device)
        assert len(request.received) == count
        assert device.snapshot().requests[0].parked
        assert request.credit()
        assert not request.parked
        check(request, PROMPT)
        assert not request.park()
        assert not request.credit()
        assert_at_rest(device)


def test_a_stepped_request_gives_one_token_a_credit(device: Device) -> None:
    with lane_of(device):
        request = device.submit(PROMPT, 8, stepped=True)
        for count in range(1, 8):
            until(lambda count=count: len(request.received) == count)  # type: ignore[misc]
            parked(device, 1)
            pass_by(device)
            assert len(request.received) == count
            assert request.parked
            assert request.credit()
        check(request, PROMPT)
        assert_at_rest(device)


def test_a_host_that_decides_on_each_token_gets_them_all(device: Device) -> None:
    with lane_of(device), ThreadPoolExecutor(8) as pool:

        def work(length: int) -> None:
            request = device.submit(PROMPT[:length], 60, stepped=True, tier=length % 4)
            for _ in request.tokens(WAIT_S):
                # Often before the device has parked it.
                request.credit()
            check(request, PROMPT[:length])

        for done in [pool.submit(work, 10 + turn) for turn in range(8)]:
            done.result(2 * WAIT_S)
        assert_at_rest(device)


def test_an_early_credit_is_remembered_once(device: Device) -> None:
    request = device.submit(PROMPT, 20, stepped=True)
    for _ in range(3):
        assert request.credit()
    free = device.submit(PROMPT, 5)
    for _ in range(2):
        assert free.credit()
    # Uses that up.
    assert free.park()
    assert not free.parked
    with lane_of(device):
        check(free, PROMPT)
        until(lambda: len(request.received) == 2)
        parked(device, 1)
        pass_by(device)
        assert len(request.received) == 2
        assert request.cancel()
        request.wait(WAIT_S)
        assert request.finish is Finish.CANCELLED
        assert_at_rest(device)


def test_a_queued_request_parks_without_a_seat(device: Device) -> None:
    configure(device, seats=1)
    seated = device.submit([1], 100)
    queued, cancelled = (device.submit(PROMPT[:length], 5) for length in (9, 10))
    until(lambda: device.status().groups[0].queued == 2)
    for request in (queued, cancelled):
        request.park()
    assert device.status().groups[0].queued == 0
    assert cancelled.cancel()
    cancelled.wait(WAIT_S)
    with lane_of(device):
        check(seated, [1])
        pass_by(device)
        assert queued.received == ()
        queued.credit()
        check(queued, PROMPT[:9])
        assert_at_rest(device)


def test_a_stepped_request_parks_by_itself_only(device: Device) -> None:
    request = device.submit(PROMPT, 5, stepped=True)
    with pytest.raises(InvalidArgument, match="parks by itself"):
        request.park()
    with lane_of(device):
        request.cancel()
        request.wait(WAIT_S)
        assert_at_rest(device)


def test_the_last_of_many_parks_and_credits_holds(device: Device) -> None:
    with lane_of(device), ThreadPoolExecutor(4) as pool:

        def work(seed: int) -> None:
            chance = random.Random(seed)
            prompt = PROMPT[: 5 + seed]
            request = device.submit(prompt, 200)
            next(request.tokens(WAIT_S))
            for _ in range(12):
                for _ in range(chance.randrange(1, 5)):
                    # So fast that the device has not come to the end of the pass.
                    request.park()
                    request.credit()
                if not request.park():
                    break
                assert request.parked
                until(lambda: device.status().groups[0].parked > 0)
                request.credit()
            check(request, prompt)

        for done in [pool.submit(work, seed) for seed in range(4)]:
            done.result(2 * WAIT_S)
        assert_at_rest(device)


def test_a_park_amid_a_pass_that_has_a_credit_holds_from_the_next_token_on(device: Device) -> None:
    begun = threading.Event()

    def gate(_: Dispatch) -> None:
        # The host has read all but the latest token.
        until(lambda: all(len(request.received) >= len(lane.passes) - 2 for request in device.requests))
        # Within the third pass; the device parks at the end of it, but for the credit.
        if len(lane.passes) == 3 and not begun.is_set():
            begun.set()
            (request,) = device.requests
            request.park()
            request.credit()
            request.park()

    with lane_of(device, gate=gate) as lane:
        request = device.submit(PROMPT, 200)
        parked(device, 1)
        assert request.parked
        assert 3 <= len(request.received) < 20
        request.credit()
        check(request, PROMPT)


# --------------------------------------------------------------------------------------------- losses


@pytest.mark.parametrize("lose", [lose_lane, lose_device])
@pytest.mark.parametrize("stepped", [False, True])
def test_what_was_parked_when_its_lane_was_lost_stays_so(device: Device, lose: object, stepped: bool) -> None:
    assert callable(lose)
    with lane_of(device):
        request = device.submit(PROMPT, 60, stepped=stepped)
        next(request.tokens(WAIT_S))
        if not stepped:
            request.park()
        parked(device, 1)
        pass_by(device)
        kept = request.received
    lose(device)
    with lane_of(device):
        pass_by(device)
        assert (request.received, request.parked) == (kept, True)
        assert device.requests == (request,)
        with pytest.raises(DeviceBusy):
            configure(device)
        for _ in range(60):
            request.credit()
            if not stepped:
                break
            until(lambda: request.parked or request.done)
            if request.done:
                break
        check(request, PROMPT)
        assert request.received[: len(kept)] == kept
        assert request.losses == 1
        assert_at_rest(device)


@pytest.mark.parametrize("lose", [lose_lane, lose_device])
def test_a_remembered_credit_is_remembered_when_the_lane_is_lost(device: Device, lose: object) -> None:
    assert callable(lose)
    request = device.submit(PROMPT, 60, stepped=True)
    request.credit()
    lose(device)
    with lane_of(device):
        until(lambda: len(request.received) == 2)
        parked(device, 1)
        pass_by(device)
        assert len(request.received) == 2
        request.cancel()
        request.wait(WAIT_S)
        assert_at_rest(device)


def test_what_was_parked_without_a_seat_is_taken_back_like_the_rest(device: Device) -> None:
    configure(device, seats=1)
    low = device.submit(PROMPT, 30, tier=3)
    with lane_of(device):
        next(low.tokens(WAIT_S))
        low.park()
        parked(device, 1)
        # Takes its seat.
        pass_by(device)
        assert device.status().counters.pauses == 1
        assert device.status().groups[0].parked == 0
        kept = low.received
    device.restart_group(0)
    until(lambda: device.status().active == 0)
    with lane_of(device):
        pass_by(device)
        assert low.received == kept
        low.credit()
        check(low, PROMPT)
        assert_at_rest(device)


@pytest.mark.parametrize("lose", [lose_lane, lose_device])
def test_what_was_lost_has_its_room_until_it_goes_on_or_ends(device: Device, lose: object) -> None:
    assert callable(lose)
    device.configure(stages=STAGES, kv_blocks=8, block_positions=POSITIONS)
    goes_on, ends = (device.submit([turn] * 40, 20, tier=3) for turn in range(2))
    for request in (goes_on, ends):
        request.park()
    with ThreadPoolExecutor(2) as pool:
        # Of a higher tier, and there for longer.
        waiting = [pool.submit(device.submit, [turn] * 40, 20) for turn in (2, 3)]
        until(lambda: device.snapshot().waiting == (2, 0, 0, 0))
        lose(device)
        until(lambda: device.status().active == 0 and device.snapshot().waiting == (2, 0, 0, 0))
        with pytest.raises(NoKvCredit):
            device.submit([1], 1, timeout_s=0.1)
        goes_on.credit()
        until(lambda: device.status().active == 1)
        assert not any(submit.done() for submit in waiting)
        assert ends.cancel()
        until(lambda: device.status().active == 2)
        with lane_of(device):
            check(goes_on, [0] * 40)
            for submit, turn in zip(waiting, (2, 3), strict=True):
                check(submit.result(WAIT_S), [turn] * 40)
            assert_at_rest(device)


def test_a_parked_request_without_a_lane_is_cancelled_and_ends_with_its_group_and_its_device(device: Device) -> None:
    requests = [device.submit(PROMPT[:length], 30, stepped=True) for length in (5, 6, 7)]
    with lane_of(device):
        for request in requests:
            next(request.tokens(WAIT_S))
        parked(device, 3)
    device.restart_group(0)
    until(lambda: device.status().active == 0)
    requests[0].cancel()
    requests[0].wait(WAIT_S)
    assert requests[0].finish is Finish.CANCELLED
    device.reset_group(0, LaneError("Lane 0 has died; start it again."))
    for request in requests[1:]:
        with pytest.raises(LaneError, match="has died"):
            request.result(WAIT_S)
    assert_at_rest(device)


def test_giving_a_group_up_ends_what_is_parked_on_the_device(device: Device) -> None:
    configure(device, seats=1)
    seated, queued = (device.submit(PROMPT[:length], 30) for length in (5, 6))
    until(lambda: device.status().groups[0].queued == 1)
    queued.park()
    device.reset_group(0, LaneError("Lane 0 has died; start it again."))
    for request in (seated, queued):
        with pytest.raises(LaneError, match="has died"):
            request.result(WAIT_S)
    assert_at_rest(device)


def test_closing_ends_what_is_parked_with_and_without_a_lane(device: Device) -> None:
    lost = device.submit(PROMPT, 30)
    lost.park()
    device.restart_group(0)
    until(lambda: device.status().active == 0)
    live = device.submit(PROMPT, 30)
    live.park()
    with pytest.raises(Timeout):
        next(live.tokens(0.05))
    device.close(timeout_s=0.1)
    for request in (lost, live):
        with pytest.raises(DeviceClosed):
            request.result(WAIT_S)
        assert not request.credit()


def test_parks_and_credits_race_the_loss_of_lanes(device: Device) -> None:
    with ThreadPoolExecutor(6) as pool:

        def step(length: int) -> None:
            request = device.submit(PROMPT[:length], 180, stepped=True)
            for _ in request.tokens(WAIT_S):
                request.credit()
            check(request, PROMPT[:length])

        def park(length: int) -> None:
            request = device.submit(PROMPT[:length], 180)
            for token in request.tokens(WAIT_S):
                if token.position % 3:
                    request.park()
                    request.credit()
            check(request, PROMPT[:length])

        lives = 0
        work = [pool.submit(call, 10 + turn) for turn in range(3) for call in (step, park)]
        chance = random.Random(5)
        while not all(done.done() for done in work):
            with lane_of(device) as lane:
                passes = chance.randrange(20, 60)
                until(lambda: len(lane.passes) > passes or all(done.done() for done in work))  # noqa: B023
            device.restart_group(0)
            lives += 1
        for done in work:
            done.result(WAIT_S)
    assert lives > 2
    assert_at_rest(device)
