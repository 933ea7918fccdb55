"""Who goes onto the device next, and what happens to those for whom there is no room."""

from __future__ import annotations

import asyncio
import functools
import gc
import threading
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np
import pytest

from cuelight.daemon.admission import Admission, Ticket
from cuelight.daemon.failures import Busy, Late
from cuelight.daemon.mailbox import Mailbox
from cuelight.daemon.settings import TierSettings
from cuelight.errors import LaneError, NeverFits, NoKvCredit
from cuelight.lanes.types import SlotRecord
from cuelight.request import Finish, Request

WAIT_S = 10.0
SEATS = 2
ROOM = SEATS + 1
"""Requests that are let onto the device: one more, so that a seat that is left is taken."""


class House:
    """What stands in for the device: it takes requests, and ends them when told to."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.cancelled: list[str] = []
        self.requests: dict[str, Request] = {}
        self.refusal: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()

    def submit(self, name: str) -> Request:
        assert self.gate.wait(WAIT_S)
        if self.refusal:
            raise self.refusal

        def cancel(request: Request) -> bool:
            self.cancelled.append(name)
            request.retire(cancelled=True)
            return True

        record = SlotRecord(request_id=0, prompt=np.zeros(1, np.int32), limit=9, block_table=np.empty(0, np.int32))
        self.requests[name] = Request(0, 0, record, 1, cancel, lambda request: None)
        self.taken.append(name)
        return self.requests[name]

    def finish(self, name: str) -> None:
        self.requests[name].deliver(1, 7, 0.0, Finish.LENGTH, 0)
        self.requests[name].retire(cancelled=False)


class Scene:
    """An admission, and tickets that enter it by name."""

    def __init__(self, **tiers: dict[str, Any]) -> None:
        self.house = House()
        named = {name.replace("_", "-"): TierSettings(**said) for name, said in tiers.items()}
        self.admission = Admission(named, SEATS, Mailbox(asyncio.get_running_loop()))
        self.tickets: dict[str, Ticket] = {}
        self.heard: list[str] = []

    def enter(self, name: str, tier: str = "standard", owner: str = "anybody", *, patient: bool = False) -> Ticket:
        ticket = Ticket(tier, owner, lambda: self.house.submit(name), lambda: self.heard.append(name), patient=patient)
        self.tickets[name] = ticket
        self.admission.enter([ticket])
        self.admission.line_up(ticket)
        return ticket

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not condition():
                await asyncio.sleep(0.001)

    async def taken(self, *names: str) -> None:
        """Wait until exactly these were taken, in this order, and nothing else is on its way."""
        await self.until(lambda: self.house.taken == list(names))
        await asyncio.sleep(0.01)
        assert self.house.taken == list(names)


def play(script: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(script())


def test_a_higher_tier_waits_only_for_its_own() -> None:
    async def script() -> None:
        scene = Scene(vip={"level": 0}, standard={"level": 1})
        for name in "abcd":
            scene.enter(name)
        await scene.taken("a", "b", "c")
        for name in "vwxy":
            scene.enter(name, "vip")
        await scene.taken("a", "b", "c", "v", "w", "x")
        assert (scene.admission.waiting("vip"), scene.admission.waiting("standard")) == (1, 1)
        scene.house.finish("a")
        await asyncio.sleep(0.02)
        # Three of a higher tier are there, so those of a lower one have to wait.
        assert scene.house.taken[-1] == "x"
        scene.house.finish("v")
        await scene.taken("a", "b", "c", "v", "w", "x", "y")
        await scene.admission.close()

    play(script)


def test_a_tier_has_its_minimum_whatever_higher_ones_take() -> None:
    async def script() -> None:
        scene = Scene(vip={"level": 0}, standard={"level": 1, "min_seats": 1})
        for name in "vwx":
            scene.enter(name, "vip")
        for name in "ab":
            scene.enter(name)
        await scene.taken("v", "w", "x", "a")
        await scene.admission.close()

    play(script)


def test_keys_take_turns_however_many_one_of_them_has_waiting() -> None:
    async def script() -> None:
        scene = Scene(standard={"level": 1})
        for index in range(6):
            scene.enter(f"a{index}", owner="a")
        await scene.taken("a0", "a1", "a2")
        scene.enter("b0", owner="b")
        scene.enter("b1", owner="b")
        for ended in ("a0", "a1", "a2"):
            scene.house.finish(ended)
            await asyncio.sleep(0.02)
        # Whoever has fewer there is next, and then the two go by turns.
        await scene.taken("a0", "a1", "a2", "b0", "a3", "b1")
        await scene.admission.close()

    play(script)


def test_a_full_queue_refuses_and_says_when_to_come_again() -> None:
    async def script() -> None:
        scene = Scene(standard={"level": 1, "queue": 2})
        for index in range(ROOM + 2):
            scene.enter(f"a{index}", owner="a")
        await scene.taken("a0", "a1", "a2")
        with pytest.raises(Busy, match=r"^2 requests wait in the tier standard, as many as may; ask again in") as told:
            scene.enter("a5", owner="a")
        assert told.value.retry_after_s > 0
        # Somebody else takes the latest place of whoever has more than they.
        scene.enter("b0", owner="b")
        await scene.until(lambda: scene.heard.count("a4") == 1)
        assert isinstance(scene.tickets["a4"].error, Busy)
        with pytest.raises(Busy):
            scene.enter("b1", owner="b")
        for ticket in (scene.tickets["a4"], scene.tickets["b1"]):
            scene.admission.leave(ticket)
        assert scene.admission.waiting("standard") == 2
        await scene.admission.close()

    play(script)


def test_a_promise_that_can_not_be_kept_is_told_at_once() -> None:
    async def script() -> None:
        late = {"level": 1, "first_token_ms": 20.0}
        scene = Scene(
            standard={**late, "when_late": "refuse"}, cached={**late, "level": 2, "when_late": "degrade",
            "cached_answer": "Later."}, patient={**late, "level": 3},
        )  # fmt: skip
        for index in range(ROOM):
            scene.enter(f"a{index}")
        await scene.taken("a0", "a1", "a2")
        with pytest.raises(Busy, match="The tier standard would have to wait"):
            scene.enter("a3")
        with pytest.raises(Late) as told:
            scene.enter("b", "cached")
        assert told.value.answer == "Later."
        scene.enter("c", "patient")
        assert scene.admission.waiting("patient") == 1
        for index in range(ROOM):
            scene.house.finish(f"a{index}")
        await scene.taken("a0", "a1", "a2", "c")
        await scene.admission.close()

    play(script)


def test_nobody_waits_longer_than_the_tier_lets_them() -> None:
    async def script() -> None:
        scene = Scene(standard={"level": 1, "wait_s": 0.05})
        for index in range(ROOM + 1):
            scene.enter(f"a{index}")
        await scene.until(lambda: scene.tickets["a3"].error is not None)
        assert isinstance(scene.tickets["a3"].error, Busy)
        assert scene.admission.waiting("standard") == 0
        await scene.admission.close()

    play(script)


def test_what_finds_no_room_goes_again_and_before_others() -> None:
    async def script() -> None:
        scene = Scene(vip={"level": 0}, standard={"level": 1})
        scene.house.refusal = NoKvCredit("No KV blocks are free.")
        for name in "ab":
            scene.enter(name)
        await asyncio.sleep(0.05)
        assert scene.admission.waiting("standard") == 2
        scene.enter("v", "vip")
        scene.house.refusal = None
        await scene.until(lambda: len(scene.house.taken) == 3)
        assert scene.house.taken.index("a") < scene.house.taken.index("b")
        await scene.admission.close()

    play(script)


@pytest.mark.parametrize("refusal", [NeverFits("It needs more."), LaneError("The lane has died."), ValueError("odd")])
def test_what_can_never_run_is_told_and_holds_nobody_up(refusal: Exception) -> None:
    async def script() -> None:
        scene = Scene(standard={"level": 1})
        scene.house.refusal = refusal
        ticket = scene.enter("a")
        await scene.until(lambda: ticket.error is not None)
        assert str(refusal).strip(".") in str(ticket.error)
        assert scene.heard == ["a"]
        scene.house.refusal = None
        for name in "bcd":
            scene.enter(name)
        await scene.taken("b", "c", "d")
        await scene.admission.close()

    play(script)


def test_leaving_is_the_same_in_every_state_and_twice() -> None:
    async def script() -> None:
        scene = Scene(standard={"level": 1})
        leave = scene.admission.leave
        held = Ticket("standard", "anybody", lambda: scene.house.submit("held"), lambda: None)
        scene.admission.enter([held])
        leave(held)
        for index in range(ROOM + 1):
            scene.enter(f"a{index}")
        waiting = scene.tickets["a3"]
        leave(waiting)
        leave(waiting)
        await scene.taken("a0", "a1", "a2")
        assert scene.admission.waiting("standard") == 0
        scene.house.finish("a0")
        await scene.until(lambda: scene.admission.under_way("standard") == 2)
        leave(scene.tickets["a0"])
        # What is just being submitted is cancelled once it is there.
        scene.house.gate.clear()
        submitting = scene.enter("b")
        await asyncio.sleep(0.01)
        leave(submitting)
        leave(submitting)
        scene.house.gate.set()
        await scene.until(lambda: scene.house.cancelled == ["b"])
        leave(scene.tickets["a1"])
        leave(scene.tickets["a1"])
        await scene.until(lambda: scene.admission.under_way("standard") == 1)
        assert scene.house.cancelled == ["b", "a1"]
        leave(scene.tickets["a1"])
        scene.house.finish("a2")
        await scene.until(lambda: scene.admission.under_way("standard") == 0)
        await scene.admission.close()

    play(script)


def test_who_is_patient_hears_of_the_last_token_and_of_the_end() -> None:
    async def script() -> None:
        scene = Scene(standard={"level": 0})

        def heard(name: str, times: int) -> bool:
            return scene.heard.count(name) == times

        scene.enter("patient", patient=True)
        scene.enter("other")
        await scene.until(lambda: scene.heard == ["other"])
        assert scene.admission.under_way("standard") == 2
        patient, other = (scene.house.requests[name] for name in ("patient", "other"))
        for position in (1, 2, 3):
            for request in (patient, other):
                request.deliver(position, 7, 0.0, None, 0)
                request.announce()
            await scene.until(functools.partial(heard, "other", position + 1))
        assert heard("patient", 0)
        patient.deliver(4, 7, 0.0, Finish.LENGTH, 0)
        patient.announce()
        await scene.until(functools.partial(heard, "patient", 1))
        # However late: nobody else has news.
        await asyncio.sleep(0.02)
        patient.retire(cancelled=False)
        await scene.until(functools.partial(heard, "patient", 2))
        assert scene.admission.under_way("standard") == 1
        await scene.admission.close()

    play(script)


def test_who_finds_no_room_at_first_leaves_nothing_to_the_garbage_collector() -> None:
    async def script() -> None:
        scene = Scene(standard={"level": 0})
        scene.house.refusal = NoKvCredit("No blocks are free; wait for some.")
        ticket = weakref.ref(scene.enter("a"))
        await scene.until(lambda: scene.admission.waiting("standard") == 1)
        scene.house.refusal = None
        await scene.taken("a")
        scene.house.finish("a")
        await scene.until(lambda: scene.admission.under_way("standard") == 0)
        scene.tickets.clear()
        await scene.until(lambda: ticket() is None)
        await scene.admission.close()

    gc.disable()
    try:
        play(script)
    finally:
        gc.enable()
