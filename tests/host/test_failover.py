"""What runs requests dies under them: lane processes by SIGKILL, the twin's thread, a device that reads all ones."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cuelight import Device, Request
from cuelight.errors import LaneError
from cuelight.lanes.crew import Crew
from cuelight.transports.base import Transport
from cuelight.transports.twin import TwinTransport

from .checks import WAIT_S, assert_at_rest, until
from .instant_lane import BLOCKS, POISON, POSITIONS, InstantLaneProcess, prepare
from .lane import STAGES, expected_tokens
from .threads import killed, standing_still, twin_thread

DOOMED = "CUELIGHT_TEST_DOOMED"
PROMPT = [random.Random(0).randrange(1000) for _ in range(50)]


class BrokenLaneProcess(InstantLaneProcess):
    """A lane that dies of its first request, whatever it is."""

    program = (*InstantLaneProcess.program, "--broken")


@contextlib.contextmanager
def opened() -> Iterator[Device]:
    with Device.open("twin", lanes=1, slots=64, seats=16, context=512, blocks=32) as device:
        device.configure(stages=STAGES, kv_blocks=BLOCKS, block_positions=POSITIONS)
        yield device


@pytest.fixture
def device() -> Iterator[Device]:
    with opened() as device:
        yield device


@pytest.fixture
def crew(device: Device) -> Iterator[Crew]:
    crew = Crew(device, prepare, spare=True)
    crew.start(1)
    yield crew
    crew.stop_keeping()
    device.stop()
    crew.close()


def check(request: Request, prompt: list[int]) -> None:
    """It has all its tokens, each once."""
    tokens = request.result(WAIT_S)
    assert [token.token for token in tokens] == expected_tokens(prompt, request.max_new_tokens)
    assert [token.position for token in tokens] == list(range(len(prompt), len(prompt) + len(tokens)))


def lose_power(transport: Transport) -> None:
    """From now on reads are all ones, and writes go nowhere, as when a board is off its bus."""
    transport._read = lambda offset: 0xFFFF_FFFF_FFFF_FFFF  # type: ignore[attr-defined]
    for write in ("write32", "write64"):
        setattr(transport, write, lambda offset, value: None)


def test_streams_go_on_through_the_death_of_lane_after_lane(device: Device, crew: Crew) -> None:
    prompts = [PROMPT[: 5 + turn] for turn in range(8)]
    requests = [device.submit(prompt, 400) for prompt in prompts]
    for _ in range(3):
        pid, seen = crew.lanes[0].pid, len(requests[0].received)
        until(lambda seen=seen: len(requests[0].received) > seen + 5)  # type: ignore[misc]
        early = [request.received for request in requests]
        os.kill(pid, signal.SIGKILL)
        until(lambda pid=pid: crew.lanes[0].pid != pid)  # type: ignore[misc]
        for request, tokens in zip(requests, early, strict=True):
            assert request.received[: len(tokens)] == tokens
    for request, prompt in zip(requests, prompts, strict=True):
        check(request, prompt)
    assert_at_rest(device)
    assert (device.failovers.lanes, device.failovers.given_up) == (3, 0)
    assert device.failovers.replayed >= 3 * len(requests)


def test_one_request_after_the_other_that_kills_every_lane_fails_alone(device: Device, crew: Crew) -> None:
    """However many there are, also where nobody gets a token between two of them, the lane is started again."""
    for turn in range(3):
        guilty = device.submit([1, 2, POISON, turn], 5)
        with pytest.raises(LaneError, match=r"no token in \d+ attempts"):
            guilty.result(WAIT_S)
    assert device.failovers.given_up == 3
    check(device.submit(PROMPT, 20), PROMPT)
    assert_at_rest(device)


def test_a_lane_that_nothing_can_get_a_token_from_is_given_up(device: Device) -> None:
    def prepare_broken(_: object) -> BrokenLaneProcess:
        return BrokenLaneProcess(Path(), stages=STAGES, blocks=BLOCKS)

    crew = Crew(device, prepare_broken)
    crew.start(1)
    with pytest.raises(LaneError, match="no token in 3 attempts"):
        device.submit(PROMPT, 5).result(WAIT_S)
    # The crew's own request comes to the same end.
    until(lambda: device.failovers.given_up == 2)
    with pytest.raises(LaneError, match="Lane 0 ended"):
        device.submit(PROMPT, 5).result(WAIT_S)
    assert not crew.groups
    crew.close()


@pytest.mark.parametrize("where", ["idle", "at work"])
def test_a_device_that_reads_all_ones_is_replaced(device: Device, crew: Crew, where: str) -> None:
    old = device.transport
    requests = [device.submit(PROMPT, 200) for _ in range(4)] if where == "at work" else []
    if requests:
        until(lambda: len(requests[0].received) > 5)
    early = [request.received for request in requests]
    lose_power(old)
    requests += [device.submit(PROMPT, 10) for _ in range(2)]
    for request in requests:
        check(request, PROMPT)
    for request, tokens in zip(requests, early, strict=False):
        assert request.received[: len(tokens)] == tokens
    assert device.transport is not old
    assert device.failovers.devices == 1
    assert_at_rest(device)


def test_a_register_that_reads_all_ones_is_no_loss(device: Device) -> None:
    """The budget of a pass does by default."""
    assert device.status().groups[0].cost.budget == 0xFFFF_FFFF
    assert device.failovers.devices == 0


def test_a_device_that_was_reset_is_not_taken_for_a_strange_one(device: Device, crew: Crew) -> None:
    """Its counters begin anew, and whoever sees that first must not give up on all requests."""
    request = device.submit(PROMPT, 300)
    until(lambda: len(request.received) > 5)
    fresh = TwinTransport(lanes=1, slots=64, seats=16, context=512, blocks=32)
    old = device.transport
    for access in ("_read", "write32", "write64"):
        setattr(old, access, getattr(fresh, access))
    check(request, PROMPT)
    check(device.submit(PROMPT, 5), PROMPT)
    assert device.transport is not old
    fresh.close()


@pytest.mark.parametrize("fate", ["killed", "standing still"])
def test_a_twin_whose_thread_is_gone_is_replaced(fate: str) -> None:
    """In a process of its own, which is good for nothing else when one of its threads has been taken from it."""
    if not os.environ.get(DOOMED):
        this = f"{__file__}::{test_a_twin_whose_thread_is_gone_is_replaced.__name__}[{fate}]"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", this]
        said = subprocess.run(command, env=os.environ | {DOOMED: "1"}, stdout=subprocess.PIPE, text=True, timeout=300)
        assert "1 passed" in said.stdout or "1 skipped" in said.stdout, said.stdout
        return
    with opened() as device:
        lose_thread(device, fate)


def lose_thread(device: Device, fate: str) -> None:
    """The twin still answers, or keeps its lock for ever; neither keeps anybody from going on."""
    thread = twin_thread()
    with contextlib.ExitStack() as undo:
        crew = Crew(device, prepare)
        crew.start(1)
        undo.callback(crew.close)
        old = device.transport
        check(device.submit(PROMPT, 5), PROMPT)
        if fate == "killed":
            killed(thread)
            request = device.submit(PROMPT, 100)
        else:
            request = device.submit(PROMPT, 400)
            until(lambda: len(request.received) > 5)
            early = request.received
            undo.enter_context(standing_still(thread))
        check(request, PROMPT)
        assert device.transport is not old
        assert device.failovers.devices == 1
        if fate != "killed":
            assert request.received[: len(early)] == early
        assert_at_rest(device)
        device.stop()
