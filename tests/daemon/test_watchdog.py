"""Health: device and lane are dead in every way, which is seen soon and mends itself."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
from collections.abc import Iterator

import pytest

from cuelight import LLM, Device
from cuelight.daemon import watchdog as module
from cuelight.daemon.watchdog import Watchdog
from cuelight.lanes.crew import Crew

from ..host.checks import WAIT_S, until, vanish
from ..host.instant_lane import BLOCKS, POSITIONS, prepare
from ..host.lane import STAGES
from ..host.threads import standing_still, twin_thread
from .conftest import Running

PROMPT = [1, 2, 3]


@pytest.fixture
def device() -> Iterator[Device]:
    with Device.open("twin", lanes=1, slots=64, seats=16, context=512, blocks=32) as device:
        device.configure(stages=STAGES, kv_blocks=BLOCKS, block_positions=POSITIONS)
        yield device


@pytest.fixture
def crew(device: Device) -> Iterator[Crew]:
    crew = Crew(device, prepare)
    crew.start(1)
    yield crew
    crew.stop_keeping()
    device.stop(0.0)
    crew.close()


@pytest.fixture
def watchdog(device: Device, crew: Crew) -> Iterator[Watchdog]:
    watchdog = Watchdog(device, lambda: crew.lanes)
    until(lambda: watchdog.snapshot is not None)
    yield watchdog
    watchdog.close()


def test_a_lane_that_stands_still_is_seen_and_one_that_goes_on_is_well(crew: Crew, watchdog: Watchdog) -> None:
    assert watchdog.health.ok
    os.kill(crew.lanes[0].pid, signal.SIGSTOP)
    until(lambda: not watchdog.health.ok)
    assert "no life" in watchdog.health.trouble
    os.kill(crew.lanes[0].pid, signal.SIGCONT)
    until(lambda: watchdog.health.ok)


def test_a_lane_that_stands_still_for_too_long_is_replaced(
    device: Device, crew: Crew, watchdog: Watchdog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_KILL_S", 2.0)
    request = device.submit(PROMPT, 400)
    until(lambda: len(request.received) > 5)
    pid = crew.lanes[0].pid
    os.kill(pid, signal.SIGSTOP)
    assert len(request.result(WAIT_S)) == 400
    assert crew.lanes[0].pid != pid
    until(lambda: watchdog.health.ok)


def test_a_lane_that_is_killed_is_seen(crew: Crew, watchdog: Watchdog) -> None:
    """As long as none has taken its place, which may be sooner than anybody looks."""
    crew.stop_keeping()
    os.kill(crew.lanes[0].pid, signal.SIGKILL)
    until(lambda: not watchdog.health.ok)
    assert "Lane 0 has died" in watchdog.health.trouble


def test_a_device_that_does_not_answer_is_seen(device: Device, crew: Crew, watchdog: Watchdog) -> None:
    crew.stop_keeping()
    vanish(device.transport)
    until(lambda: not watchdog.health.ok)


def test_all_is_well_again_once_lane_and_device_are_replaced(device: Device, crew: Crew, watchdog: Watchdog) -> None:
    pid = crew.lanes[0].pid
    os.kill(pid, signal.SIGKILL)
    until(lambda: crew.lanes[0].pid != pid)
    vanish(device.transport)
    assert len(device.submit(PROMPT, 4).result(WAIT_S)) == 4
    until(lambda: watchdog.health.ok and watchdog.snapshot is not None)
    assert device.failovers.devices == 1


def test_a_twin_that_stands_still_is_seen_although_whoever_asks_it_waits(device: Device, watchdog: Watchdog) -> None:
    with contextlib.ExitStack() as undo:
        undo.enter_context(standing_still(twin_thread()))
        until(lambda: not watchdog.health.ok)
        assert "device" in watchdog.health.trouble


def test_health_and_readiness_are_told_apart(llm: LLM) -> None:
    running = Running(llm)

    def get(path: str) -> tuple[int, dict[str, str]]:
        connection = http.client.HTTPConnection(running.url.removeprefix("http://"), timeout=WAIT_S)
        connection.request("GET", path)
        answer = connection.getresponse()
        told = answer.status, json.loads(answer.read())
        connection.close()
        return told

    until(lambda: get("/health") == (200, {"status": "ok"}))
    assert get("/ready") == (200, {"status": "ok"})
    os.kill(llm.lanes[0].pid, signal.SIGSTOP)
    until(lambda: get("/health")[0] == 503)
    assert get("/ready")[0] == 503
    os.kill(llm.lanes[0].pid, signal.SIGCONT)
    until(lambda: get("/health")[0] == 200)
    running.service.stopping = True
    assert get("/ready")[0] == 503
    assert get("/health")[0] == 200
    running.stop()
