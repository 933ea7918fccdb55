"""A host's driver: it polls, hands lanes over, and begins anew, by the rules of docs/push.md."""

from __future__ import annotations

from cuelight import regmap
from cuelight.regmap import (
    DispatchHead,
    FifoRetireHead,
    Push,
    PushCommand,
    PushMode,
    PushStatus,
    RetireReason,
)

from .board import ALL_ONES, PARAMS, Board, next_sequence
from .journal import Journal
from .lane import Lane
from .tally import Event

__all__ = ["Driver"]

_OVERDUE_US, _STALL_US = 400, 300
_BEYOND = 16
"""So far beyond the last reported dispatch nothing was pushed."""
_TRIES = 3
_PATIENCE = 100
_AT_ONCE = 3
"""Requests of a group that the device knows: fewer than it has seats and blocks."""
_NONCE = regmap.IDENTITY + regmap.Identity.BOOT_NONCE
_MAGIC = regmap.IDENTITY + regmap.Identity.MAGIC
_RECORD_WORDS = 2 * (regmap.Record.BITMAP_COUNT + PARAMS.entries)


class DeviceLost(Exception):
    """It is not the device any more that it was."""


class Driver:
    """Takes turns, in each of which it looks after one lane or what else there is.

    Parameters
    ----------
    board
        The board.
    journal
        What is to be done.
    """

    def __init__(self, board: Board, journal: Journal) -> None:
        self.board, self.journal = board, journal
        self.lanes = [Lane(board, number, journal) for number in range(PARAMS.lanes)]
        self._events = board.link.tally.events
        self.blink = 0.0
        """How probable it is that a read's completion gets lost on the host's side."""
        self._generations = [0] * PARAMS.lanes
        self._retirements = 0
        self._nonce = self._look(_NONCE)

    def turn(self, lane: Lane) -> None:
        """Look after a lane and after the journal."""
        try:
            self._confirm()
            self._serve(lane)
            if self.board.random.random() < 0.5:
                self._retire()
                self._admit()
        except DeviceLost:
            self.recover()

    # ------------------------------------------------------------------------------------------- registers

    def _read(self, offset: int) -> int:
        """A register; all ones are confirmed.

        Raises
        ------
        DeviceLost
            It does not answer, or is another one.
        """
        while True:
            value = self._look(offset)
            if value != ALL_ONES:
                return value
            for _ in range(_TRIES):
                if self._look(_MAGIC) & 0xFFFF_FFFF != regmap.Identity.MAGIC_RESET or self._look(_NONCE) != self._nonce:
                    self._events[Event.ALL_ONES] += 1
                    raise DeviceLost
            self._events[Event.BLINK] += 1

    def _confirm(self) -> None:
        """It may have been away in between, and be another one."""
        if self._read(_NONCE) != self._nonce:
            raise DeviceLost

    def _look(self, offset: int) -> int:
        value = self.board.read64(offset)
        return ALL_ONES if self.board.random.random() < self.blink else value

    def _read32(self, offset: int) -> int:
        return self._read(offset) >> 8 * (offset & 4) & 0xFFFF_FFFF

    # ------------------------------------------------------------------------------------------- lanes

    def _serve(self, lane: Lane) -> None:
        board, random = self.board, self.board.random
        mode = self._mode(lane)
        if mode in (PushMode.POLL, PushMode.PROBING):
            board.delivering.add(lane.number)
        if mode == PushMode.POLL and not lane.alive:
            self._restart(lane)
        elif not lane.alive:
            board.write32(board.push(lane.number, Push.COMMAND), PushCommand.POLL)
        elif mode in (PushMode.POLL, PushMode.PROBING):
            self._report_again(lane)
            if random.random() < 0.5:
                self._deliver(lane)
            if mode == PushMode.POLL and random.random() < 0.3:
                self._probe(lane)
            elif mode == PushMode.PROBING and not self._status(lane).needed and random.random() < 0.5:
                board.delivering.discard(lane.number)
                board.write32(board.push(lane.number, Push.COMMAND), PushCommand.PUSH)

    def _status(self, lane: Lane) -> PushStatus:
        return PushStatus.unpack(self._read32(self.board.push(lane.number, Push.STATUS)))

    def _mode(self, lane: Lane) -> PushMode:
        return PushMode(self._status(lane).mode)

    def _oldest(self, lane: Lane) -> int:
        return self._read32(_lane(lane, regmap.Lane.OLDEST))

    def _report_again(self, lane: Lane) -> None:
        """What the lane has reported and the device does not know."""
        while (oldest := self._oldest(lane)) in lane.done:
            lane.report(oldest)
            self._events[Event.RESENT] += 1

    def _deliver(self, lane: Lane) -> None:
        """Take the head of the poll window, and bring it to the lane with its record."""
        board, number = self.board, lane.number
        head_at = board.poll(number, regmap.Poll.DISPATCH)
        raw = self._read(head_at)
        head = DispatchHead.unpack(raw)
        if not head.sequence:
            return
        record = [self._read(board.poll(number, regmap.Poll.RECORD + 8 * index)) for index in range(_RECORD_WORDS)]
        second = self._read(head_at + regmap.Dispatch.PASS)
        if self._read(head_at) != raw:
            return
        board.store(board.record_address(head.buffer, number), record)
        board.store(board.place(head.sequence, number), [raw, second, 0, (head.sequence & 0xFFFF) << 48])
        board.write32(board.poll(number, regmap.Poll.POP), head.sequence)
        self._events[Event.POLLED] += 1

    def _probe(self, lane: Lane) -> None:
        board, number = self.board, lane.number
        self._generations[number] += 1
        for register, value in ((Push.OVERDUE, _OVERDUE_US), (Push.STALL, _STALL_US)):
            board.write32(board.push(number, register), value)
        board.probe(number, self._generations[number])

    def _restart(self, lane: Lane) -> None:
        """A new process in the place of a dead one; its group begins anew."""
        board, number = self.board, lane.number
        self._events[Event.RESTARTED] += 1
        board.gone.discard(number)
        board.write32(regmap.CONTROL + regmap.Control.GROUP_RESET, number)
        for _ in range(_PATIENCE):
            if not self.journal.known(number):
                break
            self._retire()
        self._confirm()
        assert not self.journal.known(number), "a group that is reset does not lose its requests"
        sequence = self._read32(_lane(lane, regmap.Lane.SEQUENCE))
        self._confirm()
        board.clear(number)
        lane.begin(sequence)

    # ------------------------------------------------------------------------------------------- requests

    def _retire(self) -> None:
        """Take the head of the retirement FIFO."""
        head = FifoRetireHead.unpack(self._read(regmap.FIFO + regmap.Fifo.RETIRE_HEAD))
        if not head.valid:
            return
        assert head.index == self._retirements & 0xFFFF
        request = self.journal.find(head.id)
        assert request.complete or head.reason == RetireReason.LANE_LOST
        self.journal.lose(request)
        self.board.write32(regmap.FIFO + regmap.Fifo.RETIRE_POP, self._retirements)
        self._retirements += 1

    def _admit(self) -> None:
        """Ask for what waits, as far as the device has an offer for it."""
        for request in self.journal.waiting():
            if len(self.journal.known(request.group)) == _AT_ONCE or not self.lanes[request.group].alive:
                continue
            offer = self._read32(regmap.PAGE + regmap.Page.OFFER_ID)
            if not offer:
                return
            # Another device may offer what a request of the old one has.
            self._confirm()
            rows = request.prompt + len(request.tokens)
            request.id = offer
            self.board.admit(request.group, rows, tier=request.tier, request=offer)
            self._events[Event.ADMITTED] += 1

    # ------------------------------------------------------------------------------------------- devices

    def recover(self) -> None:
        """Open the device anew: reset it, go on beyond what it may have pushed, and ask again for what is not over."""
        board = self.board
        self._events[Event.RECOVERED] += 1
        board.until(lambda: board.link.up)
        board.link.reset_function(loses=board.random.random() < 0.5)
        self._nonce = self._look(_NONCE)
        board.set_up()
        self.journal.forget()
        self._retirements = 0
        self._generations = [0] * len(self.lanes)
        for lane in self.lanes:
            if not lane.alive:
                # A new process has memory that the device reaches.
                board.gone.discard(lane.number)
            sequence = lane.expected
            for _ in range(_BEYOND):
                sequence = next_sequence(sequence)
            self.set_sequence(lane, sequence)

    def set_sequence(self, lane: Lane, sequence: int) -> None:
        """Have a lane begin with this dispatch, on a device that has nothing for it."""
        self.board.write32(_lane(lane, regmap.Lane.SEQUENCE), sequence)
        lane.begin(sequence)


def _lane(lane: Lane, register: int) -> int:
    return regmap.LANE + regmap.LANE_STRIDE * lane.number + register
