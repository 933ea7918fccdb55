"""Several generations at once, on a device with less room than they need."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from cuelight.cli.together import Event, run_together
from cuelight.detokenize import Detokenizer
from cuelight.device import Device
from cuelight.errors import InvalidArgument, NoKvCredit, Timeout
from cuelight.stream import Stream

from .checks import WAIT_S, assert_at_rest
from .lane import STAGES, InstantLane, expected_tokens


@pytest.fixture
def device() -> Iterator[Device]:
    device = Device.open("twin", slots=64, seats=16)
    device.configure(stages=STAGES, kv_blocks=8, block_positions=16)
    yield device
    device.close(0.0)


def spell(token: int) -> bytes:
    return f"{token} ".encode()


def detokenizer() -> Detokenizer:
    return Detokenizer(spell)


def text_of(tokens: list[int]) -> str:
    return b"".join(map(spell, tokens)).decode()


def test_more_than_there_is_room_for_wait_for_those_before(device: Device) -> None:
    """A quarter of them fits at a time, none waits longer for room than it may, and each comes out whole."""
    lane = InstantLane(device)
    lane.start()

    def start(index: int) -> Stream:
        # Doesn't wait at all: room must be found by trying again.
        return Stream(device.submit([index + 1], 30, timeout_s=0), 0, detokenizer)

    texts = [""] * 16
    ended = []
    for event in run_together(16, start, WAIT_S):
        texts[event.index] += event.piece
        if event.stream:
            ended.append(event.index)
    assert sorted(ended) == list(range(16))
    assert texts == [text_of(expected_tokens([index + 1], 30)) for index in range(16)]
    assert_at_rest(device)
    lane.stop()


def test_no_room_and_nobody_before_is_an_error_at_once(device: Device) -> None:
    held = device.submit([1], 127)

    def start(index: int) -> Stream:
        return Stream(device.submit([1], 30, timeout_s=0), 0, detokenizer)

    (only,) = run_together(1, start, WAIT_S)
    assert isinstance(only.error, NoKvCredit)
    held.cancel()


def test_one_refusal_stops_no_other(device: Device) -> None:
    lane = InstantLane(device)
    lane.start()

    def start(index: int) -> Stream:
        return Stream(device.submit([7], 3 if index else 0), 0, detokenizer)

    events = list(run_together(2, start, WAIT_S))
    refused = [event for event in events if event.error]
    assert [event.index for event in refused] == [0]
    assert isinstance(refused[0].error, InvalidArgument)
    assert any(event.stream and event.index == 1 for event in events)
    lane.stop()


def test_a_lane_that_says_nothing_times_out_and_is_cancelled(device: Device) -> None:
    def start(index: int) -> Stream:
        return Stream(device.submit([7], 3), 0, detokenizer)

    (only,) = run_together(1, start, 0.05)
    assert isinstance(only.error, Timeout)


def test_a_bug_shows_with_its_traceback() -> None:
    def start(index: int) -> Stream:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(run_together(1, start, WAIT_S))


def test_nothing_at_all_within_twice_the_limit_is_a_timeout() -> None:
    never = threading.Event()

    def start(index: int) -> Stream:
        never.wait(WAIT_S)
        raise ZeroDivisionError

    events: Iterator[Event] = run_together(1, start, 0.02)
    with pytest.raises(Timeout, match=r"--timeout"):
        next(events)
    never.set()
