"""Lanes and devices lost under requests, with a lane whose tokens depend on all it reads from its KV blocks."""

import itertools
import random
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Self

import pytest

from cuelight import Device, Finish, Request
from cuelight.errors import BuildError, DeviceClosed, DeviceLost, LaneError
from cuelight.lanes.types import Dispatch
from cuelight.regmap import IDENTITY, Identity
from cuelight.transports.base import Transport
from cuelight.transports.twin import TwinTransport

from .checks import WAIT_S, assert_at_rest, until, vanish
from .lane import STAGES, Died, InstantLane, expected_tokens

POSITIONS = 16
BLOCKS = 120
PROMPT = [random.Random(0).randrange(1000) for _ in range(50)]


class Lanes:
    """Lanes of a device that die as they are told to, and are followed by others with nothing in their cache.

    Parameters
    ----------
    device
        The device.
    die_at
        The dispatches at which they die, one after the other; later lanes live.
    poison
        Tokens of prompts that kill a lane.
    """

    def __init__(self, device: Device, die_at: Iterable[int] = (), poison: Iterable[int] = ()) -> None:
        self.device = device
        self.lives = 0
        self._die_at = list(die_at)
        self._poison = frozenset(poison)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        while not self._closing.is_set():
            path = self.device.segment.path
            lane = InstantLane(self.device, gate=self._gate(self._die_at.pop(0) if self._die_at else 0))
            lane.poison = self._poison
            self.lives += 1
            lane.start()
            while lane.is_alive() and not self._closing.is_set():
                lane.join(0.05)
            lane.stop()
            if not self._closing.is_set() and self.device.segment.path == path:
                try:
                    self.device.restart_group(0)
                except DeviceLost:
                    assert self.device.wait_replaced(path)

    def _gate(self, dispatches: int) -> Callable[[Dispatch], None]:
        left = itertools.count(dispatches, -1)

        def gate(_: Dispatch) -> None:
            # Its tokens have been posted, it has not completed.
            if next(left) == 1:
                raise Died

        return gate


@pytest.fixture
def device() -> Iterator[Device]:
    with Device.open("twin", lanes=1, slots=64, seats=16, context=256, blocks=16) as device:
        device.configure(stages=STAGES, kv_blocks=BLOCKS, block_positions=POSITIONS)
        yield device


@pytest.fixture
def lanes(device: Device) -> Iterator[Lanes]:
    with Lanes(device) as lanes:
        yield lanes


def check(request: Request, prompt: list[int]) -> None:
    tokens = request.result(WAIT_S)
    assert [token.token for token in tokens] == expected_tokens(prompt, request.max_new_tokens)
    assert [token.position for token in tokens] == list(range(len(prompt), len(prompt) + len(tokens)))
    assert request.finish is Finish.LENGTH


def reset(transport: Transport) -> None:
    """Make a device show another boot nonce, as after a reset."""
    assert isinstance(transport, TwinTransport)
    read = transport._read
    nonce = IDENTITY + Identity.BOOT_NONCE
    transport._read = lambda offset: read(offset) ^ (offset == nonce)  # type: ignore[method-assign]


@pytest.mark.parametrize("dispatches", [1, 2, 3, 4, 5, 6, 7, 40])
def test_requests_go_on_from_their_latest_token_when_a_lane_dies(device: Device, dispatches: int) -> None:
    prompts = [PROMPT[: 5 + turn] for turn in range(20)]
    # More than there are seats, so some wait in the queue.
    requests = [device.submit(prompt, 30) for prompt in prompts]
    with Lanes(device, [dispatches, dispatches]) as lanes:
        for request, prompt in zip(requests, prompts, strict=True):
            check(request, prompt)
        assert_at_rest(device)
    assert lanes.lives == 3


def test_what_came_before_is_neither_altered_nor_repeated(device: Device) -> None:
    with Lanes(device, [50, 30, 20]) as lanes:
        request = device.submit(PROMPT, 100)
        seen = []
        for token in request.tokens(WAIT_S):
            seen.append(token)
            assert request.received[: len(seen)] == tuple(seen)
        check(request, PROMPT)
    assert lanes.lives == 4


def test_nothing_that_a_dead_lane_had_cached_is_used_again(device: Device) -> None:
    first = InstantLane(device)
    first.start()
    check(device.submit(PROMPT, 2), PROMPT)
    first.stop()
    # Found before the lane died, so the blocks are held; its content is gone all the same.
    waiting = device.submit(PROMPT, 4)
    assert waiting.start == 48
    assert device._room.cached_blocks(0) == 3
    device.restart_group(0)
    assert device._room.cached_blocks(0) == 0
    second = InstantLane(device)
    second.start()
    check(waiting, PROMPT)
    assert waiting.start == 0
    assert check_start(device, PROMPT) == 48
    assert_at_rest(device)
    second.stop()


def check_start(device: Device, prompt: list[int]) -> int:
    request = device.submit(prompt, 2)
    check(request, prompt)
    return request.start


def test_a_request_that_kills_every_lane_fails_alone(device: Device) -> None:
    prompts = [PROMPT[: 10 + turn] for turn in range(6)]
    innocent = [device.submit(prompt, 60, tier=1) for prompt in prompts[:3]]
    guilty = device.submit([1, 2, 5000, 3], 5)
    innocent += [device.submit(prompt, 60) for prompt in prompts[3:]]
    with Lanes(device, poison=[5000]) as lanes:
        with pytest.raises(LaneError, match=r"no token in \d+ attempts"):
            guilty.result(WAIT_S)
        for request, prompt in zip(innocent, prompts, strict=True):
            check(request, prompt)
        assert_at_rest(device)
    # An attempt in company that came on does not count against it.
    assert lanes.lives == guilty.losses + 1 <= 11


def test_a_cancel_reaches_a_request_that_waits_for_its_lane(device: Device) -> None:
    requests = [device.submit(PROMPT, 5) for _ in range(4)]
    device.restart_group(0)
    until(lambda: all(request.losses for request in requests))
    assert requests[0].cancel() in (True, False)
    lane = InstantLane(device)
    lane.start()
    requests[0].wait(WAIT_S)
    assert requests[0].finish is Finish.CANCELLED
    for request in requests[1:]:
        check(request, PROMPT)
    assert_at_rest(device)
    lane.stop()


def test_cancels_race_the_loss_of_lanes(device: Device) -> None:
    chance = random.Random(3)

    def work(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(15):
            prompt = PROMPT[: chance.randrange(1, 50)]
            request = device.submit(prompt, chance.randrange(1, 20), tier=chance.randrange(4))
            if chance.random() < 0.5:
                for _, _ in zip(range(chance.randrange(6)), request.tokens(WAIT_S), strict=False):
                    pass
                request.cancel()
            tokens = [token.token for token in request.tokens(WAIT_S)]
            assert tokens == expected_tokens(prompt, len(tokens))
            assert request.finish is (Finish.LENGTH if len(tokens) == request.max_new_tokens else Finish.CANCELLED)

    with Lanes(device, [chance.randrange(30, 90) for _ in range(30)]) as lanes, ThreadPoolExecutor(5) as pool:
        for done in [pool.submit(work, seed) for seed in range(5)]:
            done.result(2 * WAIT_S)
        assert_at_rest(device)
    assert lanes.lives > 5


def test_requests_go_on_on_a_fresh_device(device: Device, lanes: Lanes) -> None:
    prompts = [PROMPT[: 5 + turn] for turn in range(20)]
    requests = [device.submit(prompt, 150) for prompt in prompts]
    before = next(requests[0].tokens(WAIT_S))
    manual = device.admit(stage=1)
    old, sequence = device.transport, device.status().lanes[0].sequence
    vanish(old)
    until(lambda: device.transport is not old)
    for call in (manual.stage_done, lambda: manual.run(2), manual.cancel):
        with pytest.raises(DeviceLost):
            call()
    assert device.segment.path != old.segment.path
    until(lambda: not old.segment.path.exists())
    for request, prompt in zip(requests, prompts, strict=True):
        check(request, prompt)
    assert requests[0].received[0] is before
    assert device.status().lanes[0].sequence > sequence
    assert device.status().counters.admitted == sum(request.losses for request in requests) > 0
    assert_at_rest(device)


def test_a_device_that_was_reset_is_replaced(device: Device) -> None:
    requests = [device.submit(PROMPT, 5, tier=turn % 4) for turn in range(4)]
    old = device.transport
    reset(old)
    until(lambda: device.transport is not old)
    with Lanes(device):
        for request in requests:
            check(request, PROMPT)
        assert_at_rest(device)


def test_a_submit_in_the_moment_of_loss_goes_to_the_fresh_device(device: Device, lanes: Lanes) -> None:
    vanish(device.transport)
    with ThreadPoolExecutor(4) as pool:
        requests = list(pool.map(lambda length: device.submit(PROMPT[:length], 5), range(10, 14), timeout=WAIT_S))
    for request, length in zip(requests, range(10, 14), strict=True):
        check(request, PROMPT[:length])
    assert device.admit(stage=1).cancel()
    assert_at_rest(device)


def test_a_device_that_cannot_be_replaced_is_given_up(device: Device) -> None:
    def reopen() -> Transport:
        raise BuildError("There is no compiler any more.")

    device._reopen = reopen
    request = device.submit(PROMPT, 5)
    vanish(device.transport)
    with pytest.raises(BuildError):
        request.result(WAIT_S)
    for call in (lambda: device.submit(PROMPT, 5), lambda: device.admit(1)):
        with pytest.raises(DeviceLost):
            call()


def test_a_device_that_is_lost_time_after_time_is_given_up(device: Device) -> None:
    opened = []

    def reopen() -> Transport:
        opened.append(TwinTransport(lanes=1, slots=64, seats=16, context=256, blocks=16))
        threading.Timer(0.1, vanish, [opened[-1]]).start()
        return opened[-1]

    device._reopen = reopen
    request = device.submit(PROMPT, 5)
    vanish(device.transport)
    with pytest.raises(DeviceLost, match=r"no token in \d+ attempts"):
        request.result(WAIT_S)
    until(lambda: device._dead)
    assert len(opened) == 3
    with pytest.raises(DeviceLost):
        device.submit(PROMPT, 5)


def test_closing_ends_what_waits_for_a_lane(device: Device) -> None:
    requests = [device.submit(PROMPT, 5) for _ in range(4)]
    device.restart_group(0)
    device.close(timeout_s=0.1)
    for request in requests:
        with pytest.raises(DeviceClosed):
            request.result(WAIT_S)
