"""Scripts on a board: what push does, and what becomes of each fault (docs/push.md)."""

from __future__ import annotations

from collections.abc import Callable

from cuelight import regmap
from cuelight.regmap import CommitKind, DispatchHead, EntryChunk, FallCause, Push, PushCommand, PushMode
from cuelight_rtl.bus.pcie_usp.completer import TABLE_BAR
from cuelight_rtl.bus.pcie_usp.msix import PENDING_OFFSET, Vector
from cuelight_rtl.bus.pcie_usp.streams import CompletionStatus, RcError, RequestType

from .board import PARAMS, Board
from .link import Answer
from .shell import CLOCK_MHZ

__all__ = ["SCRIPTS", "cycles_to_push"]

SCRIPTS: dict[str, Callable[[Board], None]] = {}


def script(play: Callable[[Board], None]) -> Callable[[Board], None]:
    SCRIPTS[play.__name__] = play
    return play


def poll(board: Board, lane: int = 0) -> DispatchHead:
    """What the lane's poll window shows."""
    return DispatchHead.unpack(board.read64(board.poll(lane, regmap.Poll.DISPATCH)))


def records(board: Board, lane: int = 0) -> int:
    """Packets that went to the lane's record buffers."""
    first = board.port(lane) + regmap.LanePort.RECORD
    return sum(0 <= packet.address - first < 0x2000 for packet in board.packets)


def cycles_to_push(board: Board) -> int:
    """From the beat of BATCH_DONE on CQ to the first beat of the next dispatch on RQ, at depth 1."""
    board.write32(regmap.LANE + regmap.Lane.DEPTH, 1)
    board.start()
    board.admit(rows=3)
    board.arrives(1)
    # Between two heartbeats.
    board.until(lambda: board.packets[-1].kind is RequestType.MEMORY_READ)
    board.run(15)
    accepted = board.done(1)
    board.arrives(2)
    return board.packets[-1].cycle - accepted


@script
def a_dispatch_is_pushed_within_20_cycles_of_the_completion(board: Board) -> None:
    assert 0 < cycles_to_push(board) <= 20


@script
def dispatches_come_with_the_record_of_their_pass(board: Board) -> None:
    board.start()
    request = board.admit(rows=3)
    head = board.arrives(1)
    assert (head.stage, head.first, head.last, head.samples, head.rows) == (1, 1, 0, 1, 3)
    words = board.record(head.buffer)
    stamp = 1 << 48
    assert words[:6] == [0, stamp] * 3
    assert words[6] == EntryChunk(start=0, seat=0, bind=1, first=1, last=1).pack() << 32 | request
    assert words[7] == 3 | stamp
    for sequence in (1, 2, 3):
        board.done(sequence)
        head = board.arrives(sequence + 1)
        assert head.stage == sequence + 1
    assert head.last
    assert records(board) == 1
    board.done(4)
    # It decodes from now on.
    head = board.arrives(5)
    assert (head.stage, head.rows) == (2, 1)
    assert board.record(head.buffer)[0] == 1
    assert records(board) == 2
    board.run(60)
    writes = sum(packet.kind is RequestType.MEMORY_WRITE for packet in board.packets)
    assert board.count(Push.PUSHED) == writes - records(board)


@script
def in_poll_nothing_is_mastered(board: Board) -> None:
    board.admit()
    board.run(300)
    assert not board.packets
    assert poll(board).sequence == 1


def falls(cause: FallCause, spoil: Callable[[Board], None]) -> None:
    """Adds a script in which a lane falls for this cause, while another one goes on, and returns."""

    def play(board: Board) -> None:
        board.start(0)
        board.start(1)
        board.admit(rows=3)
        board.arrives(1)
        board.arrives(2)
        spoil(board)
        board.reach(0, PushMode.POLL)
        status = board.status()
        assert (status.mode, status.cause) == (PushMode.POLL, cause)
        assert board.count(Push.FALLS) == board.count(Push.FALLS + Push.FALLS_STRIDE * cause) == 1
        assert len(board.committed(CommitKind.REOFFERED, 0)) == 1
        if cause != FallCause.NO_MASTERING:
            assert board.mode(1) is PushMode.PUSH
            assert board.count(Push.FALLS, lane=1) == 0
        board.link.master(True)
        board.write32(board.push(0, Push.OVERDUE), 0)

        # The host polls: both dispatches are there again, in their order.
        before = len(board.packets)
        for sequence in (1, 2):
            assert poll(board).sequence == sequence
            board.write32(regmap.POLL + regmap.Poll.POP, sequence)
        board.done(1)
        board.run(200)
        assert poll(board).sequence == 3
        assert all(packet.tag // 2 or packet.address >= board.port(1) for packet in board.packets[before:])

        # Back only after the generation has changed.
        board.answers = lambda lane, tag: [Answer()]
        board.beats = True
        board.write32(board.push(0, Push.COMMAND), PushCommand.PROBE)
        assert (board.status().mode, board.count(Push.REFUSED)) == (PushMode.POLL, 1)
        board.start(generation=2)
        board.arrives(3)
        # Its record had never been pushed since.
        assert records(board) == 2
        assert board.count(Push.RETURNS) == 2
        assert board.status().cause == cause

    SCRIPTS[f"a_lane_falls_{cause.name.lower()}_{len(SCRIPTS)}"] = play


def answering(*answers: Answer) -> Callable[[Board], None]:
    """Lane 0's reads are answered like this from now on."""

    def spoil(board: Board) -> None:
        board.answers = lambda lane, tag: [Answer()] if lane else list(answers)

    return spoil


def stops(board: Board) -> None:
    board.write32(board.push(0, Push.STALL), 60)
    board.answers = lambda lane, tag: [Answer(value=None if lane else 7)]


def overdue(board: Board) -> None:
    board.write32(board.push(0, Push.OVERDUE), 100)


falls(FallCause.COMMAND, lambda board: board.write32(board.push(0, Push.COMMAND), PushCommand.POLL))
falls(FallCause.NO_MASTERING, lambda board: board.link.master(False))
falls(FallCause.TIMEOUT, answering())
falls(FallCause.TIMEOUT, answering(Answer(changes={"error": RcError.TIMEOUT, "count": 0})))
falls(
    FallCause.UNSUPPORTED,
    answering(
        Answer(changes={"error": RcError.BAD_STATUS, "status": CompletionStatus.UNSUPPORTED_REQUEST, "count": 0})
    ),
)
falls(
    FallCause.ABORTED,
    answering(Answer(changes={"error": RcError.BAD_STATUS, "status": CompletionStatus.COMPLETER_ABORT, "count": 0})),
)
falls(FallCause.POISONED, answering(Answer(changes={"error": RcError.POISONED, "poisoned": 1})))
falls(FallCause.POISONED, answering(Answer(changes={"poisoned": 1})))
falls(FallCause.TIMEOUT, answering(Answer(taken_back=True)))
falls(FallCause.MALFORMED, answering(Answer(changes={"count": 2})))
falls(FallCause.MALFORMED, answering(Answer(changes={"completed": 0})))
falls(FallCause.STOPPED, stops)
falls(FallCause.OVERDUE, overdue)


@script
def a_completion_for_a_tag_without_a_read_changes_nothing(board: Board) -> None:
    """Each comes twice; the second one is late."""
    board.start()
    board.answers = lambda lane, tag: [Answer(), Answer(delay=12, value=0, changes={"status": 1})]
    board.run(400)
    status = board.status()
    assert (status.mode, status.cause) == (PushMode.PUSH, 0)
    assert board.count(Push.LATE) >= 5


@script
def a_tag_rests_until_a_late_completion_can_no_longer_come(board: Board) -> None:
    board.start()
    board.answers = lambda lane, tag: [Answer(delay=300)]
    board.reach(0, PushMode.POLL)
    spoilt = board.packets[-1].tag
    assert board.status().resting == 1 << spoilt % 2
    assert board.count(Push.LATE) == 0
    board.answers = lambda lane, tag: [Answer()]
    board.start(generation=2)
    later = [packet.tag for packet in board.packets if packet.kind is RequestType.MEMORY_READ]
    assert later[-1] == spoilt ^ 1
    board.until(lambda: board.count(Push.LATE) == 1)
    assert board.status().mode == PushMode.PUSH
    board.run(400)
    assert board.status().resting == 0


@script
def a_letter_is_dropped_that_had_not_begun(board: Board) -> None:
    board.start()
    board.link.stall = 1
    board.admit(rows=3)
    # The record's packet stands on RQ, the dispatch behind it.
    board.until(lambda: bool(board.link.native.get("s_axis_rq_tvalid")))
    board.run(20)
    board.write32(board.push(0, Push.COMMAND), PushCommand.POLL)
    board.run(50)
    assert board.mode(0) is PushMode.FALLING
    assert poll(board).sequence == 1
    board.link.stall = 0
    board.reach(0, PushMode.POLL)
    board.run(100)
    assert board.dispatch(1) is None
    board.start(generation=2)
    board.arrives(1)
    board.arrives(2)


@script
def falling_lasts_until_the_hard_block_has_sent_the_last_packet(board: Board) -> None:
    """Else what the host reads could overtake it."""
    board.start()
    board.write32(board.push(0, Push.PERIOD), 10_000)
    board.run(60)
    board.link.holds = True
    board.admit(rows=3)
    board.until(lambda: board.count(Push.PUSHED) == 2)
    board.write32(board.push(0, Push.COMMAND), PushCommand.POLL)
    board.run(200)
    assert board.status().mode == PushMode.FALLING
    assert board.dispatch(1) is None
    board.link.holds = False
    board.reach(0, PushMode.POLL)
    assert board.dispatch(1) is not None


@script
def a_hard_block_that_tells_nothing_is_not_waited_for_longer_than_rest(board: Board) -> None:
    board.start()
    board.write32(board.push(0, Push.REST), 300)
    board.write32(board.push(0, Push.PERIOD), 10_000)
    board.run(60)
    board.link.holds = True
    board.admit(rows=3)
    board.until(lambda: board.count(Push.PUSHED) == 2)
    began = board.cycle
    board.write32(board.push(0, Push.COMMAND), PushCommand.POLL)
    board.reach(0, PushMode.POLL)
    assert 300 * CLOCK_MHZ <= board.cycle - began < 320 * CLOCK_MHZ


@script
def the_hard_block_has_rest_from_when_it_takes_the_last_packet(board: Board) -> None:
    board.start()
    board.write32(board.push(0, Push.REST), 30)
    board.write32(board.push(0, Push.PERIOD), 10_000)
    board.run(60)
    board.link.stall, board.link.holds = 1, True
    board.admit(rows=3)
    board.until(lambda: bool(board.link.native.get("s_axis_rq_tvalid")))
    board.write32(board.push(0, Push.COMMAND), PushCommand.POLL)
    board.run(200)
    assert board.mode(0) is PushMode.FALLING
    board.link.stall = 0
    board.run(40)
    assert board.mode(0) is PushMode.FALLING
    board.reach(0, PushMode.POLL)


@script
def a_lane_is_probed_until_the_host_hands_it_over(board: Board) -> None:
    board.probe(0, generation=1)
    board.write32(board.push(0, Push.COMMAND), PushCommand.PUSH)
    assert board.count(Push.REFUSED) == 1
    board.until(lambda: not board.status().needed)
    board.admit(rows=3)
    board.run(500)
    assert board.status().mode == PushMode.PROBING
    assert poll(board).sequence == 1
    assert not records(board)
    board.write32(board.push(0, Push.COMMAND), PushCommand.PUSH)
    board.arrives(1)
    assert board.count(Push.RETURNS) == 1
    board.write32(board.push(0, Push.COMMAND), PushCommand.PUSH)
    assert board.count(Push.REFUSED) == 2


@script
def a_record_whose_dispatch_ends_while_it_is_read_is_not_pushed(board: Board) -> None:
    """The last dispatch of a pass, which the lane has from the host, ends some cycles after the lane came to PUSH."""
    for cycles in range(60):
        it = Board(board.random)
        it.probe(0, generation=1)
        it.until(lambda it=it: not it.status().needed)  # type: ignore[misc]
        it.admit(rows=3)
        for sequence in (1, 2, 3):
            it.until(lambda it=it, sequence=sequence: poll(it).sequence == sequence)  # type: ignore[misc]
            it.write32(it.poll(0, regmap.Poll.POP), sequence)
            it.done(sequence)
        it.until(lambda it=it: poll(it).sequence == 4)  # type: ignore[misc]
        it.write32(it.push(0, Push.COMMAND), PushCommand.PUSH)
        it.run(cycles)
        it.done(4)
        head = it.arrives(5)
        assert it.record(head.buffer)[1] >> 48 == 5


@script
def settings_validate(board: Board) -> None:
    refused = 0
    for register, good, bad in (
        (Push.COMPLETION_TIMEOUT, (1, 0xFFFF_FFFF), (0,)),
        (Push.PERIOD, (1,), (0,)),
        (Push.REST, (1,), (0,)),
        (Push.BEATS, (1, 255), (0, 256)),
        (Push.OVERDUE, (5, 0), ()),
        (Push.STALL, (5, 0), ()),
        (Push.PORT_ADDRESS, (0x1000, 0xFFFF_F000), (0x1800, 1)),
        (Push.HEARTBEAT_ADDRESS, (4, 0x7FC), (2, 1)),
    ):
        for value in good:
            board.write32(board.push(1, register), value)
            assert board.read32(board.push(1, register)) == value
        for value in bad:
            board.write32(board.push(1, register), value)
            refused += 1
            assert board.read32(board.push(1, register)) == good[-1]
    for command in (0, 4, 0x1_0002, PushCommand.PUSH, PushCommand.PROBE):
        # The last two, since it is in POLL and the generation still 0.
        board.write32(board.push(1, Push.COMMAND), command)
        refused += 1
    assert board.count(Push.REFUSED, lane=1) == refused
    assert board.count(Push.REFUSED) == 0
    board.write64(board.push(1, Push.PORT_ADDRESS), 0x1234_5678_9ABC_D000)
    assert board.read64(board.push(1, Push.PORT_ADDRESS)) == 0x1234_5678_9ABC_D000


@script
def what_a_lane_in_push_stands_on_does_not_change(board: Board) -> None:
    board.start()
    for register in (Push.PORT_ADDRESS, Push.HEARTBEAT_ADDRESS, Push.GENERATION):
        before = board.read32(board.push(0, register))
        board.write32(board.push(0, register), 0x5000)
        assert board.read32(board.push(0, register)) == before
    assert board.count(Push.REFUSED) == 3


@script
def interrupts_say_what_waits(board: Board) -> None:
    native = board.link.native
    for vector in Vector:
        board.write64(16 * vector, 0xFEE0_0000 + 16 * vector, TABLE_BAR)
        board.write64(16 * vector + 8, 0x40 + vector, TABLE_BAR)
    native.set("cfg_interrupt_msix_enable", 1)
    messages = {0xFEE0_0000 + 16 * vector: vector for vector in Vector}

    def said() -> list[Vector]:
        found = [packet for packet in board.packets if packet.address in messages]
        assert all(packet.words == [0x40 + messages[packet.address]] for packet in found)
        return [messages[packet.address] for packet in found]

    board.admit()
    board.until(lambda: said() == [Vector.DISPATCH])
    board.write64(16 * Vector.REJECT + 8, 1 << 32 | 0x40, TABLE_BAR)
    board.admit()
    board.run(50)
    assert said() == [Vector.DISPATCH]
    assert board.read64(PENDING_OFFSET, TABLE_BAR) == 1 << Vector.REJECT
    board.write32(16 * Vector.REJECT + 12, 0, TABLE_BAR)
    board.until(lambda: said()[1:] == [Vector.REJECT])
    assert board.read64(PENDING_OFFSET, TABLE_BAR) == 0
    native.set("cfg_interrupt_msix_mask", 1)
    board.start(1)
    board.write32(board.push(1, Push.COMMAND), PushCommand.POLL)
    board.run(50)
    assert len(said()) == 2
    native.set("cfg_interrupt_msix_mask", 0)
    board.until(lambda: said()[2:] == [Vector.FAULT])


@script
def lanes_take_turns(board: Board) -> None:
    for lane in range(PARAMS.lanes):
        board.start(lane)
    for slot, lane in ((0, 0), (1, 1)):
        board.admit(group=lane, rows=3, request=1 << 16 | slot)
    for sequence in range(1, 20):
        stages = set()
        for lane in range(PARAMS.lanes):
            stages.add(board.arrives(sequence, lane).stage)
            board.done(sequence, lane)
        assert len(stages) == 1
