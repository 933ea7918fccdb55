"""Which state the core's machine is in, cycle by cycle: the RTL in Amaranth's own simulator, fed with known writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Fragment
from amaranth.sim import Simulator

from cuelight_rtl.model import Commit, Request
from cuelight_rtl.params import Params
from cuelight_rtl.scheduler import Scheduler

__all__ = ["steps_of", "trace_states"]

_CLOCK_S = 1e-8


def trace_states(
    params: Params, requests: Sequence[tuple[int, Request]], cycles: int
) -> tuple[list[str], list[tuple[int, int, int]]]:
    """Simulates a scheduler from reset.

    Parameters
    ----------
    params
        Sizes; small ones, since this is about a thousand times slower than `cuelight_rtl.model.Model`.
    requests
        Transactions and the cycle in which each is accepted, ascending.
    cycles
        How long.

    Returns
    -------
    states
        Name of the core's state in each cycle.
    commits
        (cycle, port, kind) of each commit, to be compared with `steps_of` a model that took the same requests.

    Raises
    ------
    ValueError
        The device was not ready for a request in its cycle.
    """
    scheduler = Scheduler(params)
    fragment = Fragment.get(scheduler, None)
    machine = _find_machine(fragment)
    names = {number: name for name, number in machine.encoding.items()}
    due = dict(requests)
    states: list[str] = []
    commits: list[tuple[int, int, int]] = []

    async def watch(context: Any) -> None:
        bus = scheduler.bus
        for cycle in range(cycles):
            request = due.get(cycle)
            context.set(bus.valid, request is not None)
            if request is not None:
                for port, value in zip((bus.address, bus.write, bus.data, bus.strobe), request, strict=True):
                    context.set(port, int(value))
                if not context.get(bus.ready):
                    raise ValueError(f"the device takes no request in cycle {cycle}")
            states.append(names[context.get(machine.state)])
            for port, commit in enumerate(scheduler.commits):
                if context.get(commit.valid):
                    commits.append((cycle, port, context.get(commit.kind)))
            await context.tick()

    simulator = Simulator(fragment)
    simulator.add_clock(_CLOCK_S)
    simulator.add_testbench(watch)
    simulator.run()
    return states, commits


def _find_machine(fragment: Any) -> Any:
    """The state machine of the core."""
    for child, name, *_ in fragment.subfragments:
        if name == "core":
            return child.generated["fsm"]
    raise LookupError("the scheduler has no core")


def steps_of(commits: Sequence[Commit]) -> list[tuple[int, int, int]]:
    """Commits of a model, as `trace_states` gives them."""
    return [(commit.cycle, commit.port, commit.kind) for commit in commits]
