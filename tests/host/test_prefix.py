"""Prefix hits on the device, with a lane whose tokens depend on every position it reads through its KV blocks."""

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from cuelight import Device, Finish, Request
from cuelight.errors import InvalidArgument, LaneError, NoKvCredit
from cuelight.lanes.port import LanePort
from cuelight.lanes.types import Dispatch, TokenStatus

from .checks import WAIT_S, assert_at_rest, until
from .lane import STAGES, InstantLane, expected_tokens

POSITIONS = 16
BLOCKS = 12


@pytest.fixture
def device() -> Iterator[Device]:
    with Device.open("twin", lanes=2, slots=64, seats=16, context=256, blocks=16) as device:
        device.configure(stages=STAGES, kv_blocks=BLOCKS, block_positions=POSITIONS)
        yield device


@pytest.fixture
def lane(device: Device) -> Iterator[InstantLane]:
    lane = InstantLane(device)
    lane.start()
    yield lane
    lane.stop()


def make_prompt(length: int, seed: int = 0) -> list[int]:
    chance = random.Random(seed)
    return [chance.randrange(1000) for _ in range(length)]


def check(request: Request, prompt: list[int]) -> Request:
    tokens = [token.token for token in request.result(WAIT_S)]
    assert tokens == expected_tokens(prompt, request.max_new_tokens)
    return request


def prefilled(lane: InstantLane, request: Request) -> list[tuple[int, int]]:
    return [(entry.start, entry.rows) for entry in lane.chunks if entry.request_id == request.id]


def test_a_prompt_that_was_run_before_is_prefilled_from_its_last_whole_block_on(
    device: Device, lane: InstantLane
) -> None:
    prompt = make_prompt(50)
    first = check(device.submit(prompt, 3), prompt)
    again = check(device.submit(prompt, 3), prompt)
    assert (first.start, again.start) == (0, 48)
    assert prefilled(lane, first) == [(0, 50)]
    assert prefilled(lane, again) == [(48, 2)]
    assert_at_rest(device)


@pytest.mark.parametrize(("length", "start"), [(16, 0), (17, 16), (32, 16), (33, 32), (15, 0)])
def test_one_row_at_least_is_left_to_run(device: Device, lane: InstantLane, length: int, start: int) -> None:
    prompt = make_prompt(length)
    check(device.submit(prompt, 4), prompt)
    again = check(device.submit(prompt, 4), prompt)
    assert again.start == start
    assert sum(rows for _, rows in prefilled(lane, again)) == length - start


def test_a_conversation_goes_on_from_what_was_said(device: Device, lane: InstantLane) -> None:
    prompt = make_prompt(20)
    answer = [token.token for token in device.submit(prompt, 30).result(WAIT_S)]
    # The last token of an answer is never run, so 49 positions were written.
    following = prompt + answer + make_prompt(10, seed=1)
    assert check(device.submit(following, 5), following).start == 48


def test_a_prefix_is_shared_while_its_owner_runs_from_its_first_token_on(device: Device) -> None:
    allowed = threading.Semaphore(0)

    def gate(_: Dispatch) -> None:
        assert allowed.acquire(timeout=WAIT_S)

    prompt = make_prompt(40)
    lane = InstantLane(device, gate=gate)
    lane.start()
    owner = device.submit(prompt, 20)
    early = device.submit(prompt, 2)
    assert early.start == 0
    # The first pass, kv-init to output decode, up to where its token is posted.
    allowed.release(2)
    next(owner.tokens(WAIT_S))
    late = device.submit(prompt, 2)
    assert late.start == 32
    assert late.lease is not None
    assert owner.lease is not None
    assert late.lease.table[:2] == owner.lease.table[:2]
    # Shared blocks count for each, on both sides.
    assert device.status().groups[0].kv_free == device._room.free_blocks(0) == BLOCKS - 4 - 3 - 3
    allowed.release(1000)
    for request in (owner, early, late):
        check(request, prompt)
    assert_at_rest(device)
    lane.stop()


def test_what_a_cancelled_request_has_not_written_is_never_found(device: Device) -> None:
    device.configure(stages=STAGES, kv_blocks=BLOCKS, block_positions=POSITIONS, rows=32)
    prompt = make_prompt(60)
    doomed = device.submit(prompt, 4)
    until(lambda: device.status().lanes[0].in_pass)
    # Its first chunk of 32 rows is on the way; no other comes.
    assert doomed.cancel()
    lane = InstantLane(device)
    lane.start()
    doomed.wait(WAIT_S)
    assert doomed.finish is Finish.CANCELLED
    assert lane.passes == [(0, 1)]
    assert check(device.submit(prompt, 4), prompt).start == 0
    assert device._room.cached_blocks(0) == 3
    lane.stop()


def test_what_a_failed_request_held_is_never_found(device: Device, lane: InstantLane) -> None:
    prompt = make_prompt(40)
    check(device.submit(prompt, 1), prompt)
    lane.stop()
    failing = device.submit(prompt, 4)
    assert failing.start == 32
    with LanePort(device.segment.path, 0) as port:
        assert port.wait(WAIT_S) is not None
        port.post_token(failing.id, len(prompt), 7, 0.0, TokenStatus.LANE_ERROR)
        until(lambda: failing.blamed)
    other = InstantLane(device)
    other.start()
    with pytest.raises(LaneError):
        failing.result(WAIT_S)
    assert device._room.cached_blocks(0) == 0
    assert check(device.submit(prompt, 4), prompt).start == 0
    assert_at_rest(device)
    other.stop()


def test_samples_prefill_their_prompt_once(device: Device, lane: InstantLane) -> None:
    prompt = make_prompt(40)
    requests = device.submit_samples(prompt, 4, n=3, seed=(1 << 64) - 1)
    assert [request.seed for request in requests] == [(1 << 64) - 1, 0, 1]
    for request in requests:
        check(request, prompt)
    assert [request.start for request in requests] == [0, 32, 32]
    assert sum(rows for request in requests for _, rows in prefilled(lane, request)) == 40 + 2 * 8
    # There is nothing to share, so nobody waits.
    lane.stop()
    short = device.submit_samples(prompt[:POSITIONS], 1, n=4)
    assert all(not request.received for request in short)
    other = InstantLane(device)
    other.start()
    for request in short:
        check(request, prompt[:POSITIONS])
    assert_at_rest(device)
    other.stop()


def test_samples_that_wait_in_vain_prefill_for_themselves(device: Device) -> None:
    prompt = make_prompt(40)
    requests = device.submit_samples(prompt, 4, n=3, timeout_s=0)
    lane = InstantLane(device)
    lane.start()
    for request in requests:
        assert check(request, prompt).start == 0
    assert_at_rest(device)
    lane.stop()


def test_samples_come_all_or_none(device: Device) -> None:
    with pytest.raises(InvalidArgument, match="n must be"):
        device.submit_samples([1], 1, n=0)
    with pytest.raises(NoKvCredit):
        device.submit_samples([1] * 8, 60, n=3, timeout_s=0)
    lane = InstantLane(device)
    lane.start()
    assert_at_rest(device)
    assert device.status().counters.admitted == 2
    lane.stop()


def test_groups_do_not_share(device: Device, lane: InstantLane) -> None:
    prompt = make_prompt(40)
    check(device.submit(prompt, 1), prompt)
    other = InstantLane(device, lane=1)
    other.start()
    assert check(device.submit(prompt, 1, group=1), prompt).start == 0
    assert check(device.submit(prompt, 1, group=1), prompt).start == 32
    other.stop()


def test_configuring_anew_forgets_what_was_cached(device: Device, lane: InstantLane) -> None:
    prompt = make_prompt(40)
    check(device.submit(prompt, 1), prompt)
    device.configure(stages=STAGES, kv_blocks=BLOCKS, block_positions=POSITIONS)
    assert check(device.submit(prompt, 1), prompt).start == 0


def test_tokens_are_right_when_prefixes_are_shared_evicted_and_cancelled_all_the_time(
    device: Device, lane: InstantLane
) -> None:
    stems = [make_prompt(96, seed) for seed in range(4)]

    def work(seed: int) -> int:
        chance = random.Random(seed)
        saved = 0
        for _ in range(30):
            stem = chance.choice(stems)[: chance.randrange(1, 97)]
            prompt = stem + make_prompt(chance.randrange(20), seed=chance.randrange(3))
            request = device.submit(prompt, chance.randrange(1, 30), tier=chance.randrange(4))
            saved += request.start
            if chance.random() < 0.3:
                for _, _ in zip(range(chance.randrange(6)), request.tokens(WAIT_S), strict=False):
                    pass
                request.cancel()
            tokens = [token.token for token in request.tokens(WAIT_S)]
            assert tokens == expected_tokens(prompt, len(tokens))
        return saved

    with ThreadPoolExecutor(6) as pool:
        saved = sum(pool.map(work, range(6), timeout=4 * WAIT_S))
    assert_at_rest(device)
    assert saved > 1000
    # More prompts came than the group has room for.
    assert device._room.cached_blocks(0) <= BLOCKS
