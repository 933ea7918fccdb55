"""Random schedules of faults: whatever happens, each request gets its tokens once, and service comes back."""

from __future__ import annotations

import traceback
from pathlib import Path
from random import Random

from cuelight import regmap
from cuelight.regmap import CommitKind, Push, PushMode

from .board import PARAMS, Board
from .driver import Driver
from .faults import Faults
from .journal import Journal, Request
from .lane import Lane
from .tally import Event, Tally

__all__ = ["attempt", "play"]

_TURNS = 60
_ROUNDS = 3000
_LIMITS = (1, 2, 4, 8)
_PROMPTS = (1, 5, 20, 40)
_SEQUENCES = (1, 0xFFF0, 0xFFFF_FFF0)


def play(seed: int) -> Tally:
    """Play one schedule.

    Parameters
    ----------
    seed
        Makes every choice.

    Returns
    -------
    Tally
        What there was.

    Raises
    ------
    AssertionError
        A token was lost or came twice, a stage was skipped or run twice; something was mastered for a lane in POLL, or
        was no packet of PCI Express; or service does not come back.
    """
    random = Random(seed)
    board = Board(random)
    journal = Journal()
    driver = Driver(board, journal)
    faults = Faults(board, driver)
    board.link.native.set("cfg_max_payload", random.randrange(3))
    for each in driver.lanes:
        driver.set_sequence(each, random.choice(_SEQUENCES))
    for _ in range(_TURNS):
        if random.random() < 0.2:
            faults.strike()
        if random.random() < 0.3:
            _ask(journal, random, random.randrange(PARAMS.lanes))
        _turn(board, driver, random.choice(driver.lanes))
    faults.end()
    _finish(board, driver)
    # Service is back: requests that come now are pushed from their first dispatch on.
    pushed = [board.count(Push.PUSHED, lane) for lane in range(PARAMS.lanes)]
    for lane in range(PARAMS.lanes):
        _ask(journal, random, lane)
    _finish(board, driver)
    for lane, before in enumerate(pushed):
        assert board.count(Push.PUSHED, lane) >= before + 4, "lanes in PUSH are not pushed to"
    return _account(board, driver)


def attempt(seed: int) -> tuple[Tally, str]:
    """Play one schedule; what there was, and what is wrong if something is."""
    try:
        return play(seed), ""
    except AssertionError as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return Tally(), f"{error or where.line} ({Path(where.filename).name}:{where.lineno})"


def _ask(journal: Journal, random: Random, group: int) -> None:
    journal.add(Request(group, random.randrange(4), random.choice(_PROMPTS), random.choice(_LIMITS)))


def _turn(board: Board, driver: Driver, lane: Lane) -> None:
    driver.turn(lane)
    lane.run()
    board.run(board.random.choice((0, 1, 5, 20, 60)))


def _finish(board: Board, driver: Driver) -> None:
    """Without faults, until everything is over and every lane is in PUSH. Lanes are in time, so none is OVERDUE."""
    for _ in range(_ROUNDS):
        for lane in driver.lanes:
            _turn(board, driver, lane)
        if driver.journal.over and all(board.mode(lane.number) is PushMode.PUSH for lane in driver.lanes):
            return
    raise AssertionError("service does not come back")


def _account(board: Board, driver: Driver) -> Tally:
    link = board.link
    for request in driver.journal.requests:
        first = request.prompt
        assert request.tokens == list(range(first, first + request.limit)), "a request is not complete"
    assert not board.read32(regmap.COUNTERS + regmap.Counters.REJECTED), "the device refused what it should take"
    for lane in driver.lanes:
        falls = [board.count(Push.FALLS + Push.FALLS_STRIDE * cause, lane.number) for cause in range(10)]
        assert falls[0] == sum(falls[1:])
    tally = link.tally
    for commit in link.commits:
        tally.events[Event.REPEATED] += commit.kind is CommitKind.REOFFERED
        tally.events[Event.IGNORED] += commit.kind is CommitKind.COMPLETE_IGNORED
    tally.cycles = board.cycle
    return tally
