"""A device that plays the golden model's own legal steps: what tests of lockstep itself drive."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from cuelight.regmap import CommitKind
from cuelight_rtl.model import Commit
from cuelight_sim.golden import Golden
from cuelight_sim.state import Sizes
from cuelight_sim.steps import Event, Step


class Player:
    """Has the interface of `cuelight_rtl.model.Model`."""

    def __init__(self, sizes: Sizes, nonce: int = 1, seed: int = 0) -> None:
        self.golden = Golden(sizes, nonce)
        self.accepted_at = 0
        self.commits: list[Commit] = []
        self.twist: Callable[[Commit], Commit] = lambda commit: commit
        """Changes what the commit ports show, not what is done."""
        self._random = Random(seed)
        self._turn = 0
        self._now = 0

    def step(self, cycles: int) -> None:
        for _ in range(cycles):
            self._cycle()

    def _cycle(self) -> None:
        self._now += 1
        for steps in (self._core_steps(), self._lane_steps(), self.golden._offers()[:1]):
            if steps and self._random.random() < 0.7:
                self._do(self._random.choice(steps))

    def write(self, offset: int, value: int, width: int = 4, strobe: int | None = None) -> None:
        if self._random.random() < 0.5:
            self._cycle()
        self._now += 1
        self.accepted_at = self._now
        self.golden.write(offset, value, 0xFF if strobe is None else strobe)
        self._now += 1
        if self._random.random() < 0.5:
            self._cycle()
        while (duty := self.golden._bus.transaction.duty) is not None and (steps := duty.steps()):
            self._do(steps[0])
        if self.golden._bus.following is not None:
            self._do(self.golden._bus.following)
        while steps := self.golden._withdrawals():
            self._do(self._random.choice(steps))
        self.golden.written()

    def read(self, offset: int, width: int = 4) -> int:
        return sum(self.golden.read(offset + 4 * word).value << 32 * word for word in range(width // 4))

    def run_until_idle(self, limit: int = 100_000) -> None:
        for _ in range(limit):
            if not self._core_steps() and not self._lane_steps() and not self.golden._offers():
                self.golden.check_rest()
                return
            self._cycle()
        raise AssertionError("never idle")

    def _core_steps(self) -> list[Step]:
        count = len(self.golden.groups)
        for offset in range(count):
            group = self.golden.groups[(self._turn + offset) % count]
            steps = self.golden._background(group)
            if steps:
                return steps
        return []

    def _lane_steps(self) -> list[Step]:
        self.golden.cycle = self._now
        return [step for lane in self.golden.lanes for step in self.golden._dispatches(lane)]

    def _do(self, step: Step) -> None:
        event = step.event
        commit = Commit(self._now, self._port(event), *event)
        self.golden.commit(commit)
        self.commits.append(self.twist(commit))
        if event.kind == CommitKind.SEAT or event.kind == CommitKind.RETIRE or event.kind == CommitKind.FORM:
            self._turn = (event.lane + 1) % len(self.golden.groups)

    def _port(self, event: Event) -> int:
        lanes = len(self.golden.groups)
        return next(port for port in (0, 1 + event.lane, 1 + lanes) if _accepts(self.golden, port, event))


def _accepts(golden: Golden, port: int, event: Event) -> bool:
    try:
        golden._check_port(port, event)
    except AssertionError:
        return False
    return True


@pytest.fixture
def player() -> type[Player]:
    return Player
