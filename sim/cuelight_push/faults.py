"""Random schedules of faults: whatever happens, each dispatch has its effect once, and service comes back."""

from __future__ import annotations

from collections import Counter
from random import Random

from cuelight import regmap
from cuelight.regmap import CommitKind, DispatchHead, FallCause, Push, PushCommand, PushMode
from cuelight_rtl.bus.pcie_usp.streams import CompletionStatus, RcError

from .board import PARAMS, Answer, Board

__all__ = ["play"]

_LANES = range(PARAMS.lanes)
_MORE = 8
"""Dispatches that each lane must still get when all faults are over."""
_ROUNDS = 3000
_HEALTHY = {Push.OVERDUE: 400, Push.STALL: 300}
_BAD = (
    {"error": RcError.BAD_STATUS, "status": CompletionStatus.UNSUPPORTED_REQUEST, "count": 0},
    {"error": RcError.BAD_STATUS, "status": CompletionStatus.COMPLETER_ABORT, "count": 0},
    {"error": RcError.POISONED, "poisoned": 1},
    {"error": RcError.TIMEOUT, "count": 0},
    {"error": RcError.BAD_LENGTH, "count": 3},
    {"error": RcError.BAD_TAG, "tag": 9},
    {"tag": 1},
)


class _Lane:
    """A lane that executes in the order of sequences, from its ring, and a host that polls for it out of PUSH."""

    def __init__(self, board: Board, number: int) -> None:
        self.board, self.number = board, number
        self.generation = 0
        self.expected = 1
        self.stages: list[int] = []
        """Of everything that had its effect."""

    def begin(self) -> None:
        """Ask for PUSH."""
        board = self.board
        self.generation += 1
        for register, value in _HEALTHY.items():
            board.write32(board.push(self.number, register), value)
        board.ask(self.number, self.generation)

    def execute(self) -> None:
        """Execute what is next, if it is there, and report it, now and then twice."""
        board = self.board
        head = board.dispatch(self.expected, self.number)
        if head is None:
            return
        if head.first:
            units = board.record(head.buffer, self.number)[1:6:2]
            assert {unit >> 48 for unit in units} == {head.sequence & 0xFFFF}, "the record is another pass's"
        self.stages.append(head.stage)
        self.expected += 1
        for _ in range(1 + (board.random.random() < 0.2)):
            board.done(head.sequence, self.number)

    def poll(self) -> None:
        """What the host does out of PUSH: it takes the head, and brings it to the lane with its record."""
        board, window = self.board, regmap.POLL + regmap.POLL_STRIDE * self.number
        raw = board.read64(window + regmap.Poll.DISPATCH)
        head = DispatchHead.unpack(raw)
        if not head.sequence:
            return
        record = board.port(self.number) + regmap.LanePort.RECORD + regmap.LanePort.RECORD_STRIDE * head.buffer
        place = board.port(self.number) + regmap.LanePort.RING + regmap.LanePort.RING_STRIDE * (head.sequence % 16)
        words = [board.read64(window + regmap.Poll.RECORD + 8 * index) for index in range(10)]
        second = board.read64(window + regmap.Poll.DISPATCH + regmap.Dispatch.PASS)
        if board.read64(window + regmap.Poll.DISPATCH) != raw:
            return
        board.store(record, words)
        board.store(place, [raw, second, 0, (head.sequence & 0xFFFF) << 48])
        board.write32(window + regmap.Poll.POP, head.sequence)


class _Faults:
    """What is wrong at the moment."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.spoilt: dict[int, list[Answer]] = {}

    def answers(self, lane: int, tag: int) -> list[Answer]:
        delay = self.board.random.choice((3, 10, 30))
        return self.spoilt.get(lane, [Answer(delay=delay)])

    def strike(self) -> None:
        """Something else is wrong from now on, or nothing."""
        board, random = self.board, self.board.random
        lane = random.choice(_LANES)
        self.spoilt = {}
        board.gone = set()
        board.native.set("mastering", 1)
        match random.randrange(8):
            case 0:
                self.spoilt[lane] = []
            case 1:
                self.spoilt[lane] = [Answer(delay=random.choice((70, 100, 300)))]
            case 2:
                self.spoilt[lane] = [Answer(changes=dict(random.choice(_BAD)))]
            case 3:
                self.spoilt[lane] = [Answer(), Answer(delay=random.choice((11, 40, 90)))]
            case 4:
                self.spoilt[lane] = [Answer(value=5)]
            case 5:
                board.gone = {lane}
                self.spoilt[lane] = random.choice(([], [Answer(changes=dict(_BAD[0]))], [Answer()]))
            case 6:
                board.write32(board.push(lane, Push.COMMAND), PushCommand.POLL)
            case 7:
                board.native.set("mastering", random.choice((0, 1)))

    def end(self) -> None:
        self.spoilt, self.board.gone, self.board.stall = {}, set(), 0.0
        self.board.native.set("mastering", 1)


def play(seed: int, steps: int = 60) -> Counter[str]:
    """Play one schedule.

    Parameters
    ----------
    seed
        Makes every choice.
    steps
        Things that happen before all faults end.

    Returns
    -------
    Counter of str
        Falls by cause, and what else there was.

    Raises
    ------
    AssertionError
        A dispatch was lost, or had its effect twice or out of turn; something was mastered for a lane in POLL; or
        service does not come back.
    """
    random = Random(seed)
    board = Board(random)
    faults, lanes = _Faults(board), [_Lane(board, lane) for lane in _LANES]
    board.answers = faults.answers
    board.stall = random.choice((0.0, 0.3, 0.7))
    for slot, lane in enumerate(lanes):
        lane.begin()
        board.admit(slot, group=lane.number, rows=random.choice((1, 20)))
    for _ in range(steps):
        if random.random() < 0.2:
            faults.strike()
        _go_on(board, lanes)
    faults.end()
    wanted = [lane.expected + _MORE for lane in lanes]
    for _ in range(_ROUNDS):
        _go_on(board, lanes)
        if all(lane.expected >= most for lane, most in zip(lanes, wanted, strict=True)) and all(
            board.mode(lane) is PushMode.PUSH for lane in _LANES
        ):
            break
    else:
        raise AssertionError("service does not come back")
    # What was reported last shows.
    board.run(5)
    return _account(board, lanes)


def _go_on(board: Board, lanes: list[_Lane]) -> None:
    random = board.random
    lane = random.choice(lanes)
    mode = board.mode(lane.number)
    if mode in (PushMode.POLL, PushMode.PROBING) and random.random() < 0.5:
        lane.poll()
    if mode is PushMode.POLL and random.random() < 0.2:
        lane.begin()
    lane.execute()
    board.run(random.choice((0, 1, 5, 20, 60)))


def _account(board: Board, lanes: list[_Lane]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for lane in lanes:
        number = lane.number
        completed = [what for _, kind, at, what in board.commits if (kind, at) == (CommitKind.COMPLETE, number)]
        assert completed == list(range(1, lane.expected)), "not each dispatch was completed once, in order"
        for before, stage in zip(lane.stages, lane.stages[1:], strict=False):
            assert stage == before + 1 or (before == 4 and stage in (1, 2)) or (before == 3 and stage in (1, 2, 4))
        falls = [board.count(Push.FALLS + Push.FALLS_STRIDE * cause, number) for cause in range(10)]
        assert falls[0] == sum(falls[1:])
        offered = [kind for _, kind, at, _ in board.commits if at == number].count(CommitKind.REOFFERED)
        assert offered <= falls[0]
        counts.update({cause.name: falls[cause] for cause in FallCause})
        counts.update(
            reoffered=offered,
            returns=board.count(Push.RETURNS, number),
            late=board.count(Push.LATE, number),
            pushed=board.count(Push.PUSHED, number),
            dispatches=lane.expected - 1,
        )
    return counts
