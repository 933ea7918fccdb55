"""Long random runs of the RTL in lockstep with the golden model.

python -c "from cuelight_sim.runs import *; print(run_random(1, 50_000, Params()).table())"
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from cuelight_rtl.model import NS_PER_CYCLE, Model
from cuelight_rtl.params import Params

from .coverage.model import Coverage
from .driver import Driver
from .golden import Golden
from .lockstep import Device, Lockstep, Operation, shrink
from .loop_waits import LoopWaits
from .seat_waits import SeatWaits
from .shares import Shares
from .steps import Divergence
from .waits import Waits
from .watch import Watch

__all__ = ["Params", "fresh_lockstep", "note_shortest", "run_random", "watched"]

_STEPS_PER_RESET = 2000


def fresh_lockstep(params: Params, nonce: int = 1) -> Lockstep:
    """The compiled model and the golden one just after reset, and all that is promised of the RTL watched."""
    return watched(Model(params, nonce), params, nonce)


def watched(device: Device, params: Params, nonce: int, ns_per_cycle: int = NS_PER_CYCLE) -> Lockstep:
    """A device just after reset beside its golden model, and all that is promised of the RTL watched."""
    golden = Golden(params, nonce, ns_per_cycle)
    observers = (Watch(golden), Shares(golden), Waits(golden), LoopWaits(golden), SeatWaits(golden))
    return Lockstep(device, golden, observers)


def run_random(
    seed: int,
    steps: int,
    params: Params,
    coverage: Coverage | None = None,
    fresh: Callable[[Params, int], Lockstep] = fresh_lockstep,
    *,
    shortest: bool = True,
) -> Coverage:
    """Does ``steps`` random actions, with a reset of the models now and then.

    Parameters
    ----------
    seed
        Makes the run repeatable.
    steps
        Actions; most of them are several writes.
    params
        Sizes of the device.
    coverage
        Counts go here; a new one where it is left out.
    fresh
        Makes the models.
    shortest
        Look for a short script where they disagree, which takes minutes.

    Raises
    ------
    Divergence
        The models disagree. Its notes have the seed and the shortest script found on which they do.
    TimeoutError
        The device never takes a write, or never rests.
    """
    coverage = coverage or Coverage()
    random = Random(seed)
    nonce = 0
    while steps > 0:
        nonce += 1
        lockstep = fresh(params, nonce)
        coverage.watch(lockstep)
        driver = Driver(random, lockstep)
        try:
            driver.settle()
            driver.steps(min(steps, _STEPS_PER_RESET))
            lockstep.compare_window()
            driver.drain()
        except Divergence as divergence:
            divergence.add_note(f"seed {seed}, {params.tag}")
            if shortest:
                note_shortest(divergence, lockstep.script, lambda nonce=nonce: fresh(params, nonce))  # type: ignore[misc]
            raise
        steps -= _STEPS_PER_RESET
    return coverage


def note_shortest(divergence: Divergence, script: list[Operation], fresh: Callable[[], Lockstep]) -> None:
    """Adds to a divergence the shortest script found on which fresh models disagree in the same way.

    Parameters
    ----------
    divergence
        What came of ``script``, on these models or on others that differ in the cycles between writes.
    script
        Operations from the reset on.
    fresh
        Makes models just after reset.
    """
    shortest = shrink(script, fresh)
    if shortest:
        divergence.add_note("minimal script:\n  " + "\n  ".join(map(str, shortest)))
    else:
        divergence.add_note("the compiled model agrees on this script: it takes the very cycles of the simulation")
