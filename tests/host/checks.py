"""What several tests of the driver check."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypedDict

import pytest

from cuelight.device import Device
from cuelight.errors import DeviceLost
from cuelight.stream import Stream
from cuelight.transports.base import Transport

WAIT_S = 60.0


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that must come."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def assert_at_rest(device: Device) -> None:
    """Every slot, seat and KV block is back, on the device and on the host, and both agree."""
    until(lambda: not device.requests)
    status = device.status()
    assert status.active == 0
    assert status.offered is not None
    for index, group in enumerate(status.groups):
        assert (group.queued, group.seated, group.decoding) == (0, 0, 0)
        assert group.kv_free == group.kv_blocks == device._room.free_blocks(index)
    assert device._room.free_slots == status.slots


class Kind(TypedDict):
    """How tokens are chosen."""

    temperature: float
    seed: int


def kinds(turn: int) -> Kind:
    """How the generation with this number chooses its tokens: every second one draws them."""
    return {"temperature": 1.5 * (turn % 2), "seed": turn}


def assert_identical(stream: Stream, undisturbed: Stream) -> None:
    """Both have the same tokens, and the same end."""
    tokens, others = (one.request.result(WAIT_S) for one in (stream, undisturbed))
    assert [(token.position, token.token) for token in tokens] == [(token.position, token.token) for token in others]
    assert [token.logprob for token in tokens] == pytest.approx([token.logprob for token in others], abs=1e-3)
    assert stream.finish is undisturbed.finish


def vanish(transport: Transport) -> None:
    """Make a device answer nothing any more."""

    def gone(*_: int) -> int:
        raise DeviceLost("The device is gone.")

    for access in ("_read", "write32", "write64"):
        setattr(transport, access, gone)


def lose_lane(device: Device) -> None:
    """Replace the lane of group 0 as if it had died."""
    device.restart_group(0)


def lose_device(device: Device) -> None:
    """Let the device vanish, and wait for the one that takes its place."""
    old = device.transport
    vanish(old)
    until(lambda: device.transport is not old)
