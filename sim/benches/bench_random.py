"""Random hosts, lanes and operators in lockstep with the golden model, over the simulated bus."""

from __future__ import annotations

import os

from cocotb.task import bridge

from cuelight_sim.driver import Driver
from cuelight_sim.runs import fresh_lockstep, note_shortest
from cuelight_sim.steps import Divergence

from .bench import STEPS, Bench, bench

STEPS_PER_RESET = 400


@bench
async def random_actors(it: Bench) -> None:
    """Acts, with resets of the device in whatever state it is, and leaves it empty at the end."""
    left = int(os.environ[STEPS])
    while left > 0:
        last = left <= STEPS_PER_RESET
        await bridge(act)(it, min(left, STEPS_PER_RESET), last)
        left -= STEPS_PER_RESET
        if not last:
            await it.reset()


def act(it: Bench, steps: int, last: bool) -> None:
    driver = Driver(it.random, it.lockstep)
    try:
        driver.settle()
        driver.steps(steps)
        if last:
            it.lockstep.compare_window()
            driver.drain()
    except Divergence as divergence:
        note_shortest(divergence, it.lockstep.script, lambda: fresh_lockstep(it.params, it.golden.nonce))
        raise
