"""What goes wrong with links, memory, lanes and hosts, one thing after the other, and how often it did."""

from __future__ import annotations

from collections.abc import Callable

from cuelight.regmap import LanePort, Poll, Push, PushCommand
from cuelight_rtl.bus.pcie_usp.streams import CompletionStatus, RcError, RequestType

from .board import PARAMS, Board
from .driver import Driver
from .link import Answer, Packet
from .tally import Event

__all__ = ["Faults"]

_LANES = range(PARAMS.lanes)
_PORT_BYTES = 0x1_0000
_LONG_READ = 255
"""Tag of a read that nobody waits for."""
_RESTS = 400
"""Cycles of REST; nothing comes later than that (docs/push.md)."""
_HOLDS = 200
"""Cycles at most that a packet is kept in the hard block: fewer than REST has."""
_BAD: dict[Event, tuple[dict[str, int], ...]] = {
    Event.UNSUPPORTED: (
        {"error": RcError.BAD_STATUS, "status": CompletionStatus.UNSUPPORTED_REQUEST, "count": 0},
        {"status": CompletionStatus.RETRY, "count": 0},
    ),
    Event.ABORTED: ({"error": RcError.BAD_STATUS, "status": CompletionStatus.COMPLETER_ABORT, "count": 0},),
    Event.POISONED: ({"error": RcError.POISONED, "poisoned": 1}, {"poisoned": 1}),
    Event.HARD_TIMEOUT: ({"error": RcError.TIMEOUT, "count": 0},),
    Event.LENGTH: ({"error": RcError.BAD_LENGTH, "count": 3}, {"count": 2}, {"count": 0}, {"completed": 0}),
    Event.OTHER_ERROR: ({"error": RcError.MISMATCH}, {"error": RcError.BAD_ADDRESS}),
}


class Faults:
    """What is wrong at the moment.

    Parameters
    ----------
    board
        Whose heartbeat reads are answered by `answers`.
    driver
        The host, and its lanes.
    """

    def __init__(self, board: Board, driver: Driver) -> None:
        self.board, self.driver = board, driver
        self._events = board.link.tally.events
        self._answers: dict[int, Callable[[int], list[Answer]]] = {}
        """For lanes whose heartbeat reads are answered in another way than they should, by tag."""
        board.answers = self.answers
        self._kinds = (
            *(self._drop, self._delay, self._double, self._spoil, self._mix_up_tags, self._stop_heartbeat),
            *(self._lose_writes, self._lose_a_write, self._lose_memory, self._kill_lane, self._lose_reports),
            *(self._command, self._stop_mastering, self._stall, self._blink, self._stop_driver, self._report_old),
            *(self._cut_link, self._reset_function),
        )

    def answers(self, lane: int, tag: int) -> list[Answer]:
        """How a heartbeat read is answered."""
        if lane in self.board.gone:
            self._events[Event.UNREACHED] += 1
            return self.board.random.choice(([], [self._bad(Event.UNSUPPORTED)], [self._bad(Event.ABORTED)]))
        if lane in self._answers:
            return self._answers[lane](tag)
        return [Answer(delay=self.board.random.choice((3, 10, 30)))]

    def strike(self) -> None:
        """Something else is wrong from now on."""
        self.end()
        self.board.random.choice(self._kinds)()

    def end(self) -> None:
        """Nothing is wrong any more; what is dead or lost stays so."""
        board = self.board
        self._answers = {}
        board.gone = {lane.number for lane in self.driver.lanes if not lane.alive}
        board.loses = lambda packet: False
        board.link.stall = board.link.reply_stall = self.driver.blink = 0.0
        board.link.cut = None
        for lane in self.driver.lanes:
            lane.lost_reports = 0.0
        board.link.master(True)

    def _lane(self) -> int:
        return self.board.random.choice(_LANES)

    # ------------------------------------------------------------------------------------------- completions

    def _answer(self, what: Event, answers: Callable[[int], list[Answer]]) -> None:
        """A lane's reads are answered like this, each of which is counted."""

        def counted(tag: int) -> list[Answer]:
            self._events[what] += 1
            return answers(tag)

        self._answers[self._lane()] = counted

    def _drop(self) -> None:
        if self.board.random.random() < 0.7:
            self._answer(Event.DROPPED, lambda tag: [])
        else:
            self._answer(Event.TAKEN_BACK, lambda tag: [Answer(taken_back=True)])

    def _delay(self) -> None:
        delay = self.board.random.choice((85, 100, 300, _RESTS - 10))
        self._answer(Event.DELAYED, lambda tag: [Answer(delay=delay)])

    def _double(self) -> None:
        later = self.board.random.choice((11, 40, 90, 300))
        self._answer(Event.DOUBLED, lambda tag: [Answer(), Answer(delay=later, value=0)])

    def _bad(self, what: Event) -> Answer:
        return Answer(delay=self.board.random.choice((3, 10, 30)), changes=dict(self.board.random.choice(_BAD[what])))

    def _spoil(self) -> None:
        what = self.board.random.choice(list(_BAD))
        self._answer(what, lambda tag: [self._bad(what)])

    def _mix_up_tags(self) -> None:
        change = self.board.random.choice((1, 2, 3, 8))
        error = self.board.random.choice((RcError.NONE, RcError.BAD_TAG))
        self._answer(Event.TAG, lambda tag: [Answer(changes={"tag": tag ^ change, "error": error})])

    def _stop_heartbeat(self) -> None:
        self._answer(Event.STILL, lambda tag: [Answer(value=5)])

    # ------------------------------------------------------------------------------------------- memory and lanes

    def _loses(self, what: Event, loses: Callable[[Packet], bool]) -> None:
        def counted(packet: Packet) -> bool:
            lost = packet.kind is RequestType.MEMORY_WRITE and loses(packet)
            self._events[what] += lost
            return lost

        self.board.loses = counted

    def _lose_writes(self) -> None:
        share = self.board.random.choice((0.2, 0.5, 1.0))
        self._loses(Event.WRITE_LOST, lambda packet: self.board.random.random() < share)

    def _lose_a_write(self) -> None:
        what, first, behind = self.board.random.choice(
            (
                (Event.RECORD_LOST, LanePort.RECORD, LanePort.TOKEN_RING),
                (Event.DISPATCH_LOST, LanePort.RING, LanePort.DONE),
            )
        )
        self._loses(what, lambda packet: first <= packet.address % _PORT_BYTES < behind)

    def _lose_memory(self) -> None:
        self._events[Event.OUT_OF_REACH] += 1
        self.board.gone.add(self._lane())

    def _kill_lane(self) -> None:
        lane = self.driver.lanes[self._lane()]
        self._events[Event.LANE_GONE] += lane.alive
        lane.die()
        self.board.clear(lane.number)
        self.board.gone.add(lane.number)

    def _lose_reports(self) -> None:
        for lane in self.driver.lanes:
            lane.lost_reports = 0.5

    def _report_old(self) -> None:
        """What an earlier lane, or a lane of an earlier device, had still to say."""
        lane = self.driver.lanes[self._lane()]
        sequence = (lane.expected - self.board.random.choice((3, 16, 17, 32))) & 0xFFFF_FFFF
        self._events[Event.OLD_DONE] += 1
        self.board.done(sequence, lane.number)

    # ------------------------------------------------------------------------------------------- host and link

    def _command(self) -> None:
        self._events[Event.COMMAND] += 1
        self.board.write32(self.board.push(self._lane(), Push.COMMAND), PushCommand.POLL)

    def _stop_mastering(self) -> None:
        self._events[Event.NO_MASTERING] += 1
        self.board.link.master(False)

    def _stall(self) -> None:
        self._events[Event.NO_ROOM] += 1
        self.board.link.stall = self.board.random.choice((0.5, 0.9, 1.0))
        self.board.link.reply_stall = self.board.random.choice((0.0, 0.5, 0.9))

    def _blink(self) -> None:
        self.driver.blink = 0.1

    def _stop_driver(self) -> None:
        self._events[Event.NO_DRIVER] += 1
        for _ in range(20):
            for lane in self.driver.lanes:
                lane.run()
            self.board.run(40)

    def _into_a_packet(self) -> None:
        """Let cycles pass until a packet has begun, mostly."""
        link, random = self.board.link, self.board.random
        lane = self.driver.lanes[self._lane()]
        # Long ones of the host's: a completion entry that completes nothing, and a part of a record.
        link.request(RequestType.MEMORY_WRITE, self.board.entry(0, lane.number), [0] * 16)
        link.request(RequestType.MEMORY_READ, self.board.poll(lane.number, Poll.RECORD), count=16, tag=_LONG_READ)
        link.holds = random.random() < 0.3
        wanted = random.choice(("RQ", "CQ", "CC", "anywhere"))
        link.stall = link.reply_stall = 0.6
        end = link.cycle + _HOLDS
        while link.cycle < end and link.inside != wanted:
            lane.run()
            self.board.run()
        link.stall = link.reply_stall = 0.0
        link.holds = False

    def _cut_link(self) -> None:
        if self.board.random.random() < 0.5:
            # In whatever the driver does then.
            self.board.link.cut = (
                self.board.cycle + self.board.random.randrange(400),
                self.board.random.choice((1, 200)),
            )
            return
        self._into_a_packet()
        for _ in range(self.board.random.choice((1, 1, 3))):
            self.board.link.go_down(self.board.random.choice((1, 20, 200)))
            self.board.run(self.board.random.choice((0, 25, 230)))

    def _reset_function(self) -> None:
        """By somebody else: the driver finds a device that is another one."""
        self._into_a_packet()
        if self.board.link.up:
            self.board.link.reset_function(loses=self.board.random.random() < 0.5)
