"""How a lane's dispatches come to it, read from the registers of a board's endpoint, and where there is none."""

from __future__ import annotations

from random import Random
from typing import cast

import pytest

from cuelight.device import Device
from cuelight.regmap import FallCause, Push, PushCommand, PushMode
from cuelight.status import Delivery, read_status
from cuelight.transports.base import Transport
from cuelight_push.board import Board
from cuelight_push.link import Answer
from cuelight_push.scripts import SCRIPTS
from cuelight_rtl.bus.pcie_usp.streams import RequestType

FALLS = "a_lane_falls_"
NEVER_PUSHED = Delivery(mode=PushMode.POLL, cause=None, falls={}, returns=0, pushed=0, late=0)


def delivery(board: Board, lane: int = 0) -> Delivery:
    # Of a transport the status needs reads alone, and a board has no segment.
    return read_status(cast(Transport, board)).lanes[lane].delivery


def test_without_an_endpoint_lanes_are_in_poll() -> None:
    with Device.open("twin", slots=64, seats=16) as device:
        assert [lane.delivery for lane in device.status().lanes] == [NEVER_PUSHED] * 2


def test_each_lane_tells_its_own_way_to_push_and_back() -> None:
    board = Board(Random(1))
    assert delivery(board) == NEVER_PUSHED
    board.probe(0, generation=1)
    assert delivery(board).mode == PushMode.PROBING
    board.start(1)
    board.admit(group=1, rows=3)
    board.arrives(1, lane=1)
    board.arrives(2, lane=1)
    board.run(100)
    dispatches = [packet for packet in board.packets if packet.kind is RequestType.MEMORY_WRITE and packet.count == 8]
    there = delivery(board, lane=1)
    assert there == Delivery(PushMode.PUSH, None, {}, returns=1, pushed=len(dispatches), late=0)
    assert there.pushed == 2
    board.answers = lambda lane, tag: [Answer(), Answer(delay=12)]
    board.until(lambda: board.count(Push.LATE, lane=1) >= 5)
    for generation in (2, 3):
        board.write32(board.push(1, Push.COMMAND), PushCommand.POLL)
        board.reach(1, PushMode.POLL)
        board.start(1, generation)
    board.answers = lambda lane, tag: [Answer()] if lane == 0 else []
    board.reach(1, PushMode.POLL)
    back = delivery(board, lane=1)
    assert (back.mode, back.cause, back.returns) == (PushMode.POLL, FallCause.TIMEOUT, 3)
    assert back.falls == {FallCause.COMMAND: 2, FallCause.TIMEOUT: 1}
    assert back.late >= 5
    assert delivery(board).falls == {}


def test_a_lane_that_falls_is_in_falling_until_its_last_packet_has_left() -> None:
    board = Board(Random(1))
    board.start()
    board.link.stall = 1
    board.admit(rows=3)
    board.until(lambda: bool(board.link.native.get("s_axis_rq_tvalid")))
    board.write32(board.push(0, Push.COMMAND), PushCommand.POLL)
    assert (delivery(board).mode, delivery(board).cause) == (PushMode.FALLING, FallCause.COMMAND)


@pytest.mark.parametrize("script", [name for name in SCRIPTS if name.startswith(FALLS)])
def test_every_cause_is_told_apart(script: str) -> None:
    """Each of these scripts ends with a lane that has fallen once and returned."""
    board = Board(Random(1))
    SCRIPTS[script](board)
    cause = FallCause[script.removeprefix(FALLS).rpartition("_")[0].upper()]
    told = delivery(board)
    assert (told.mode, told.cause, told.falls, told.returns) == (PushMode.PUSH, cause, {cause: 1}, 2)
