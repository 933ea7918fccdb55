"""Requests whose host says before each token which ones it may be, also when lane or device are lost meanwhile.

The lane here chooses among what the mask allows, by all tokens before: one mask too late, twice, in part or of somebody
else changes every token that follows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cuelight import Device, Request
from cuelight.errors import InvalidArgument, SegmentError
from cuelight.segment import Segment, Shape

from .checks import WAIT_S, assert_at_rest, lose_device, lose_lane, until
from .lane import STAGES, expected_tokens, lane_of, next_token, unpack

POSITIONS = 16
VOCABULARY = 1000
PROMPT = [random.Random(0).randrange(1000) for _ in range(60)]


@pytest.fixture
def device() -> Iterator[Device]:
    with Device.open("twin", lanes=1, slots=64, seats=16, context=256, blocks=16, vocabulary=VOCABULARY) as device:
        device.configure(stages=STAGES, kv_blocks=120, block_positions=POSITIONS)
        yield device


def mask_of(seed: int, position: int) -> NDArray[np.uint32]:
    """What request `seed` may have at `position`: a third of the vocabulary."""
    allowed = np.random.default_rng((seed, position)).random(1024) < 0.3
    return np.packbits(allowed, bitorder="little").view(np.uint32)


def expected_masked(prompt: Sequence[int], count: int, seed: int) -> list[int]:
    sequence = list(prompt)
    for _ in range(count):
        allowed = np.flatnonzero(unpack(mask_of(seed, len(sequence))))
        sequence.append(int(allowed[next_token(sequence) % len(allowed)]))
    return sequence[len(prompt) :]


def begin(device: Device, length: int, count: int, tier: int = 0) -> Request:
    return device.submit(PROMPT[:length], count, tier=tier, mask=mask_of(length, length))


def lead(request: Request) -> None:
    """Answer each token with the next mask, to the end."""
    for token in request.tokens(WAIT_S):
        if not token.finish:
            request.credit(mask_of(request.prompt_tokens, token.position + 1))


def check(request: Request) -> None:
    length = request.prompt_tokens
    tokens = [token.token for token in request.result(WAIT_S)]
    assert tokens == expected_masked(PROMPT[:length], request.max_new_tokens, length)


def test_each_token_is_chosen_under_its_own_mask(device: Device) -> None:
    with lane_of(device), ThreadPoolExecutor(8) as pool:

        def masked(length: int) -> None:
            request = begin(device, length, 40, tier=length % 4)
            lead(request)
            check(request)

        def free(length: int) -> None:
            tokens = [token.token for token in device.submit(PROMPT[:length], 40).result(WAIT_S)]
            assert tokens == expected_tokens(PROMPT[:length], 40)

        work = [pool.submit(call, 10 + turn) for turn in range(12) for call in (masked, free)]
        for done in work:
            done.result(2 * WAIT_S)
        assert_at_rest(device)


def test_samples_of_one_prompt_have_the_first_mask_in_common_and_go_their_own_ways(device: Device) -> None:
    with lane_of(device), ThreadPoolExecutor(3) as pool:
        samples = device.submit_samples(PROMPT, 20, 3, mask=mask_of(60, 60))
        assert [request.start for request in samples] == [0, 48, 48]
        for done in [pool.submit(lead, request) for request in samples]:
            done.result(WAIT_S)
        for request in samples:
            check(request)
        assert_at_rest(device)


@pytest.mark.parametrize("lose", [lose_lane, lose_device])
@pytest.mark.parametrize("decided", [False, True])
def test_a_mask_survives_the_loss_of_what_it_was_written_for(device: Device, lose: object, decided: bool) -> None:
    """Whether the host decided on a token before or after the loss, the tokens are the same."""
    assert callable(lose)
    request = begin(device, 20, 30)
    if not decided:
        with lane_of(device):
            next(request.tokens(WAIT_S))
            until(lambda: device.status().groups[0].parked == 1)
    lose(device)
    with lane_of(device):
        lead(request)
        check(request)
        assert request.losses == 1
        assert_at_rest(device)


def test_masks_race_the_loss_of_lanes(device: Device) -> None:
    with ThreadPoolExecutor(6) as pool:

        def work(length: int) -> None:
            request = begin(device, length, 120)
            lead(request)
            check(request)

        lives = 0
        working = [pool.submit(work, 10 + turn) for turn in range(6)]
        chance = random.Random(5)
        while not all(done.done() for done in working):
            with lane_of(device) as lane:
                passes = chance.randrange(20, 60)
                until(lambda: len(lane.passes) > passes or all(done.done() for done in working))  # noqa: B023
            device.restart_group(0)
            lives += 1
        for done in working:
            done.result(WAIT_S)
    assert lives > 2
    assert_at_rest(device)


def test_a_host_that_is_too_late_leaves_the_slots_next_request_alone(device: Device) -> None:
    with lane_of(device):
        late = begin(device, 20, 30)
        next(late.tokens(WAIT_S))
        others = [device.admit(stage=1) for _ in range(device.status().slots - 1)]
        late.cancel()
        late.wait(WAIT_S)
        assert not late.credit(mask_of(0, 0))
    device.restart_group(0)
    following = begin(device, 21, 30)
    assert following.slot == late.slot
    # As a thread would do it that saw it alive a moment ago.
    device._link.results._write_mask(late)
    with lane_of(device):
        lead(following)
        check(following)
        for other in others:
            other.cancel()
        assert_at_rest(device)


def test_masks_that_cannot_be_meant_are_refused(device: Device) -> None:
    good = mask_of(20, 20)
    mask: Any
    for mask in (good[:-1], np.zeros_like(good), good.astype(np.int64), good.reshape(2, -1)):
        with pytest.raises(InvalidArgument, match="mask"):
            device.submit(PROMPT, 5, mask=mask)
    request = begin(device, 20, 30)
    # The one for its first token may be in use.
    with pytest.raises(InvalidArgument, match="has its mask already"):
        request.credit(good)
    with lane_of(device):
        next(request.tokens(WAIT_S))
        with pytest.raises(InvalidArgument, match="needs one with each credit"):
            request.credit()
        with pytest.raises(InvalidArgument, match="allows no token"):
            request.credit(np.zeros_like(good))
        assert request.parked
        lead(request)
        check(request)
        free = device.submit(PROMPT, 5, stepped=True)
        with pytest.raises(InvalidArgument, match="no other may have one"):
            free.credit(good)
        free.cancel()
        assert_at_rest(device)
    with Device.open("twin", lanes=1, slots=64, seats=16) as plain:
        plain.configure(stages=STAGES, kv_blocks=120, block_positions=POSITIONS)
        with pytest.raises(InvalidArgument, match="no room for token masks"):
            plain.submit(PROMPT, 5, mask=good)


def test_a_reader_takes_a_whole_mask_of_its_position_or_none() -> None:
    segment = Segment.create(Shape(slots=4, context=16, blocks=4, vocabulary=VOCABULARY))
    other = Segment.open(segment.path)
    try:
        assert other.shape == segment.shape
        segment.write_mask(3, 7, mask_of(0, 7))
        segment.write_mask(2, 8, mask_of(0, 8))
        assert np.array_equal(other.mask(3, 7), mask_of(0, 7)[: segment.shape.mask_words])
        for slot, position in ((3, 8), (2, 7), (1, 7)):
            with pytest.raises(SegmentError, match="no mask for position"):
                other.mask(slot, position)
        # As a reader finds it that comes while it is written.
        segment._mask(3)[0] = 0
        with pytest.raises(SegmentError, match="no mask for position"):
            other.mask(3, 7)
        for slot, size in ((4, 32), (3, 31)):
            with pytest.raises(InvalidArgument):
                segment.write_mask(slot, 7, np.zeros(size, np.uint32))
    finally:
        other.close()
        segment.close()
