"""Random hosts, lanes and operators in lockstep with the golden model, over the simulated bus."""

from __future__ import annotations

import os

from cocotb.task import bridge

from cuelight_sim.driver import Driver

from .bench import Bench, bench

STEPS = "BENCH_STEPS"
"""Environment variable with the number of random actions of each bench."""


@bench
async def random_actors(it: Bench) -> None:
    def act() -> None:
        driver = Driver(it.random, it.lockstep, it.coverage)
        driver.settle()
        driver.steps(int(os.environ.get(STEPS, "150")))
        it.lockstep.compare_window()
        driver.drain()

    await bridge(act)()
