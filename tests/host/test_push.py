"""The host's own pump on the real endpoint: what it does with lanes that are pushed to, and with those that fall."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

import pytest

from cuelight import regmap
from cuelight.lanes.port import LanePort
from cuelight.native.lane_port import lane_port_library
from cuelight.regmap import FallCause, Lane, PageSchedCmd, PushCommand, PushMode
from cuelight.transports.polled import PolledTransport
from cuelight_push.board import next_sequence

from .push_board import SHAPE, WAIT_S, PushBoard, Store
from .push_host import TIMES, PushHost, push_host

POLL, PROBING, PUSH, FALLING = PushMode
PORT = regmap.LanePort
COMMAND = regmap.PUSH + regmap.Push.COMMAND
POP = regmap.POLL + regmap.Poll.POP
GROUP_RESET = regmap.CONTROL + regmap.Control.GROUP_RESET
WRITTEN = (slice(PORT.RING, PORT.DONE), slice(PORT.DONE, PORT.RECORD), slice(PORT.RECORD, None))
"""Of a port, what the one writer of dispatches, the lane and again the writer fill."""
TURNS = 10


def report_of(sequence: int) -> int:
    """Offset in BAR0 of lane 0's report of a dispatch."""
    entry = regmap.COMPLETION + regmap.COMPLETION_ENTRY_STRIDE * (sequence % regmap.COMPLETION_ENTRY_COUNT)
    return entry + regmap.Completion.BATCH_DONE


def reports(board: PushBoard) -> list[int]:
    """Sequences that the host has reported for lane 0."""
    return [store.value for store in board.stores if store.offset == report_of(store.value)]


def pops(board: PushBoard) -> list[int]:
    """Sequences that the host has delivered to lane 0."""
    return [store.value for store in board.stores if store.offset == POP]


def lose_once(board: PushBoard, offset: int) -> list[Store]:
    """The next write of the host's to a register is lost; it is in the list then."""
    lost: list[Store] = []

    def loses(store: Store) -> bool:
        if lost or store.offset != offset:
            return False
        lost.append(store)
        return True

    board.loses_store = loses
    return lost


def lose_the_first_of_two_reports(host: PushHost) -> None:
    """Lane 0 has two dispatches, and completes both; the board hears of the second one only."""
    host.board.admit(rows=3)
    flying = [host.take(), host.take()]
    lost = lose_once(host.board, report_of(1))
    for dispatch in flying:
        host.lanes[0].complete(dispatch.sequence)
    host.until(lambda: reports(host.board) == [1, 2], "they are not reported")
    assert lost


def call_back_to_poll(board: PushBoard) -> None:
    """Have lane 0 fall, as by a fault of the bus: the pump knows nothing of it."""
    board.write32(COMMAND, PushCommand.POLL)
    board.wait(lambda: board.mode(0) == POLL, "the lane does not fall")


def test_a_lane_that_falls_while_it_is_probed_gets_both_its_dispatches_completed() -> None:
    with push_host(period_s=1.0) as host, host.serving():
        host.probe()
        host.until(lambda: host.both(PROBING), "the lane is not probed")
        host.board.admit(rows=3)
        flying = [host.take(), host.take()]
        host.until(lambda: pops(host.board) == [1, 2], "they are not delivered")
        call_back_to_poll(host.board)
        host.until(lambda: host.both(POLL), "the host does not notice the fall")
        host.go_round()
        # The host has delivered them, so the board does not offer them again. Nor is there a reminder.
        for dispatch in flying:
            host.lanes[0].complete(dispatch.sequence)
        assert [dispatch.sequence for dispatch in host.run(4)] == [3, 4, 5, 6]
        assert reports(host.board)[:4] == [1, 2, 3, 4]
        assert host.ignored() == 0


def test_a_lane_that_the_device_does_not_probe_stays_polled() -> None:
    with push_host() as host:
        host.probe(generation=0)
        host.until(lambda: host.both(POLL), "the host does not notice that PROBE was refused")
        host.board.admit(rows=3)
        assert [dispatch.sequence for dispatch in host.run(6)] == [1, 2, 3, 4, 5, 6]
        host.push()


def test_a_lane_that_the_device_does_not_push_to_stays_polled() -> None:
    refused: list[Store] = []

    def fall_first(store: Store) -> None:
        if (store.offset, store.value) == (COMMAND, PushCommand.PUSH) and not refused:
            refused.append(store)
            call_back_to_poll(host.board)

    with push_host() as host:
        host.board.admit(rows=3)
        flying = [host.take(), host.take()]
        host.board.before_store = fall_first
        host.probe()
        host.until(lambda: bool(refused) and host.both(POLL), "the host does not notice that PUSH was refused")
        for dispatch in flying:
            host.lanes[0].complete(dispatch.sequence)
        assert [dispatch.sequence for dispatch in host.run(6)] == [3, 4, 5, 6, 7, 8]
        assert not host.board.pushed
        assert host.ignored() == 0


def test_one_reminder_makes_up_for_a_lost_report_of_a_polled_lane() -> None:
    with push_host() as host:
        lose_the_first_of_two_reports(host)
        assert host.oldest() == 1
        host.remind()
        assert host.oldest() in (0, 3)
        assert [dispatch.sequence for dispatch in host.run(6)] == [3, 4, 5, 6, 7, 8]
        assert host.ignored() <= 1


def test_a_lane_with_a_lost_report_falls_and_goes_on() -> None:
    with push_host(overdue_s=20e-3, period_s=200e-6) as host:
        host.push()
        lose_the_first_of_two_reports(host)
        host.board.wait(lambda: host.board.mode(0) == POLL, "the lane does not fall")
        assert host.board.status().cause == FallCause.OVERDUE
        assert [dispatch.sequence for dispatch in host.run(6)] == [3, 4, 5, 6, 7, 8]
        assert host.mode() == POLL
        assert host.ignored() <= 1


def test_a_pass_in_whose_middle_its_lane_falls_is_delivered_as_it_is() -> None:
    """The host has delivered another pass of the same buffer before."""
    with push_host() as host:
        host.board.admit(rows=3)
        (first, *_) = host.run(6)
        host.push()
        begun = next(dispatch for dispatch in iter(lambda: host.run(1)[0], None) if dispatch.buffer == first.buffer)
        assert begun.first
        assert begun.pass_number > first.pass_number
        assert begun.entries != first.entries
        following = next_sequence(begun.sequence)
        host.until(lambda: host.board.dispatch(following) is not None, "the board does not push")
        call_back_to_poll(host.board)
        record = host.board.record(first.buffer)
        host.board.store(host.board.record_address(first.buffer, 0), [0] * len(record))
        host.board.store(host.board.place(following, 0), [0] * 4)
        host.until(lambda: following in pops(host.board), "the host does not deliver")
        head, second = host.board.dispatch(following) or pytest.fail("the dispatch is not whole")
        assert (head.buffer, head.first) == (first.buffer, 0)
        assert (second.pass_number, second.entries) == (begun.pass_number, begun.entries)
        written = 2 * (1 + begun.entries)
        assert host.board.record(first.buffer)[:written] == record[:written]
        assert host.take().sequence == following
        assert host.lanes[0].record(begun).decode


def test_the_host_writes_to_no_port_that_the_board_may_write_to() -> None:
    """Where RQ has no room, the board has a dispatch that it can't push; the host has delivered one of the buffer."""
    with push_host(completion_timeout_s=4.0) as host:
        host.board.admit(rows=3)
        host.run(6)
        host.push()
        while not (begun := host.take()).first:
            host.lanes[0].complete(begun.sequence)
        host.until(lambda: host.board.dispatch(begun.sequence + 1) is not None, "the board does not push")
        host.board.link.stall = 1
        host.lanes[0].complete(begun.sequence)
        before, delivered = host.port(), pops(host.board)
        host.until(lambda: begun.sequence in reports(host.board), "it is not reported")
        for mode in (PUSH, FALLING):
            if mode == FALLING:
                host.board.write32(COMMAND, PushCommand.POLL)
            host.until(lambda mode=mode: host.both(mode), "the host does not notice the mode")  # type: ignore[misc]
            for _ in range(TURNS):
                host.turn()
            assert [host.port()[part] for part in WRITTEN] == [before[part] for part in WRITTEN]
            assert host.board.mode(0) == mode
        assert pops(host.board) == delivered
        host.board.link.stall = 0
        following = range(begun.sequence + 1, begun.sequence + 7)
        assert [dispatch.sequence for dispatch in host.run(6)] == [*following]
        assert host.ignored() == 0


def test_a_port_has_what_the_board_has_pushed_and_nothing_else() -> None:
    with push_host() as host:
        host.push()
        port = bytearray(host.port())
        host.board.admit(rows=3)
        # So many that places are used again.
        host.run(20)
        last = host.take()
        for packet in host.board.pushed:
            at = packet.address - host.board.port(0)
            port[at : at + 4 * packet.count] = b"".join(word.to_bytes(4, "little") for word in packet.words)
        after = host.port()
        assert last.sequence == 21
        assert [after[part] for part in WRITTEN[::2]] == [bytes(port[part]) for part in WRITTEN[::2]]


def test_each_lane_is_pushed_to_in_its_own_port() -> None:
    rows = {0: 3, 1: 2}
    with push_host() as host:
        for lane, count in rows.items():
            host.push(lane=lane)
            host.board.admit(group=lane, rows=count, request=1 << 16 | lane)
        for lane, count in rows.items():
            assert [(dispatch.sequence, dispatch.rows) for dispatch in host.run(2, lane)] == [(1, count), (2, count)]
            assert host.both(PUSH, lane)
        assert host.ignored() == 0


def test_a_lane_is_led_to_push_when_it_lives_and_again_after_a_fall() -> None:
    def live() -> PushMode:
        """Lane 0 waits for a dispatch, and the host looks at it."""
        assert host.lanes[0].wait(0) is None
        host.pushing.tend()
        return host.mode()

    with push_host() as host:
        answers = host.board.answers
        for _ in range(TURNS):
            host.pushing.tend()
        assert host.mode() == POLL
        for turn in range(2):
            host.board.answers = answers
            host.until(lambda: live() == PROBING, "the lane is not probed")
            host.until(lambda: host.both(PUSH), "the lane does not come to PUSH")
            host.pushing.tend()
            host.board.answers = lambda lane, tag: []
            host.until(lambda: host.both(POLL), "the host does not notice the fall")
            assert host.board.count(regmap.Push.RETURNS) == turn + 1
        assert host.mode(1) == POLL


def test_a_lane_that_sleeps_is_woken_for_what_the_board_pushes() -> None:
    with push_host() as host:
        host.push()
        library, bell = lane_port_library(), host.segment.port_memory(0).ctypes.data + PORT.BELL
        seen = library.cuelight_sleep(bell, 0, 0)
        sleeper = threading.Thread(target=library.cuelight_sleep, args=(bell, seen, int(1e9 * 3600)), daemon=True)
        sleeper.start()
        host.board.admit(rows=3)
        host.until(lambda: host.board.dispatch(2) is not None, "the board does not push")
        host.turn()
        rung = library.cuelight_sleep(bell, 0, 0)
        assert rung != seen
        sleeper.join(WAIT_S)
        assert not sleeper.is_alive()


def test_a_group_is_reset_once_nothing_is_pushed_to_its_lane() -> None:
    with push_host() as host:
        host.push()
        host.board.admit(rows=3)
        host.run(5)
        # What is on its way takes long.
        host.board.link.stall = 0.95
        host.lanes[0].complete(host.take().sequence)
        before = len(host.board.stores)
        host.write32(GROUP_RESET, 0)
        stores = host.board.stores[before:]
        commands = [(store.offset, store.value) for store in stores]
        reset = next(store for store in stores if store.offset == GROUP_RESET)
        assert (COMMAND, PushCommand.POLL) in commands[: stores.index(reset)]
        assert reset.modes[0] == POLL
        assert host.mode() == POLL
        port = host.port()
        assert not any(port[PORT.RING : PORT.DONE])
        assert not any(port[PORT.RECORD :])


def test_a_transport_leads_a_lane_to_push_and_back_for_a_reset() -> None:
    board = PushBoard()
    transport = PolledTransport(
        board, board, times=TIMES, tokens=SHAPE.tokens, context=SHAPE.context, blocks=SHAPE.blocks
    )
    with contextlib.closing(transport), LanePort(transport.segment.path, 0) as lane:

        def is_pushed_to() -> bool:
            assert lane.wait(0) is None
            return board.mode(0) == PUSH

        board.wait(is_pushed_to, "the lane does not come to PUSH")
        transport.write32(GROUP_RESET, 0)
        (reset,) = (store for store in board.stores if store.offset == GROUP_RESET)
        assert reset.modes[0] == POLL
        board.wait(is_pushed_to, "the lane does not come to PUSH again")
    assert board.closed
    assert not board.link.mastering


def test_sequences_go_on_where_their_low_half_wraps() -> None:
    with push_host() as host:
        host.write32(regmap.LANE + Lane.SEQUENCE, 0xFFF8)
        host.push()
        host.board.admit(rows=3)
        sequences = [dispatch.sequence for dispatch in host.run(12)]
        assert sequences == [*range(0xFFF8, 0xFFFF), *range(0x10001, 0x10006)]
        assert host.both(PUSH)
        assert host.ignored() == 0
        host.board.write32(COMMAND, PushCommand.POLL)
        assert [dispatch.sequence for dispatch in host.run(4)] == [*range(0x10006, 0x1000A)]


def wrong_command(host: PushHost) -> None:
    """Rejected, as no request can have this id."""
    host.board.write64(regmap.PAGE + regmap.Page.SCHED_CMD, PageSchedCmd(id=0xFFFF_FFFF, stage=1).pack())


def last_report(host: PushHost) -> None:
    """Retires the request that a lane has begun; the lane posts no token."""
    while not (dispatch := host.take()).last:
        host.lanes[0].complete(dispatch.sequence)
    seat = host.lanes[0].record(dispatch).entries[0].seat
    host.lanes[0].complete(dispatch.sequence, [seat])


@pytest.mark.parametrize("cause", [wrong_command, last_report])
def test_an_interrupt_alone_tells_users_of_what_waits_for_them(cause: Callable[[PushHost], None]) -> None:
    with push_host() as host:
        host.push()
        host.board.admit(rows=3)
        with host.serving(listening=True):
            bell = host.segment.host_bell()
            cause(host)
            host.until(lambda: host.segment.host_bell() != bell, "the host's bell does not ring")


def test_an_interrupt_alone_tells_of_a_fall() -> None:
    with push_host() as host:
        host.push()
        with host.serving(listening=True):
            host.board.answers = lambda lane, tag: []
            host.until(lambda: host.both(POLL), "the host does not notice the fall")
        assert host.board.status().cause == FallCause.TIMEOUT
