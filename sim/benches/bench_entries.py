"""More seats than a pass has entries (docs/device.md §6, step 7)."""

from __future__ import annotations

from cuelight import regmap
from cuelight.regmap import CommitKind

from .bench import Bench, bench
from .details import chunk, plan
from .host import Host
from .lane import Lane

LOW = 3


async def entries(it: Bench) -> list[tuple[int, int]]:
    """Requests of the entries of a pass that was formed just now, and their details."""
    await it.rest()
    return [(event.id, event.detail) for event in it.seen(CommitKind.CHUNK)]


@bench
async def prompts_beyond_sixteen_wait_for_the_next_pass(it: Bench) -> None:
    await it.write32(regmap.CONTROL + regmap.Control.STAGE_COUNT, 4)
    host, lane = Host(it), Lane(it)
    requests = [await host.join(rows=1) for _ in range(20)]
    await it.rest()
    it.seen()
    for some in (requests[1:17], requests[17:]):
        await lane.serve_pass()
        detail = chunk(0, 1, first=True, last=True)
        assert await entries(it) == [(request, detail) for request in some]


@bench
async def seats_to_bind_beyond_sixteen_wait_for_the_next_pass(it: Bench) -> None:
    """All of a house were paused for higher tiers, and come back at once."""
    await it.write32(regmap.CONTROL + regmap.Control.STAGE_COUNT, 4)
    host, lane, seats = Host(it), Lane(it), it.params.seats
    low = [await host.join(rows=1, tier=LOW) for _ in range(seats)]
    for _ in range(4):
        await lane.serve_pass()
    for _ in range(seats - 1):
        await host.join(rows=1)
    for _ in range(4):
        await lane.serve_pass()
    await lane.serve_pass(finished=(1 << seats) - 1)
    # The one that kept its seat has finished with them.
    for bound in (16, seats - 1):
        await it.rest()
        events = it.seen(CommitKind.PLAN, CommitKind.CHUNK)
        plans = [event for event in events if event.kind == CommitKind.PLAN]
        assert plans[-1].detail == plan(seats - 1)
        assert {event.detail for event in events if event.id in low} == {chunk(1, 0)}
        group = it.golden.groups[0]
        assert sum(request.bound for request in group.seated.values()) == bound
        await lane.serve_pass()
