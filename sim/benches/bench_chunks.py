"""How many rows of whose prompt a pass takes along, and who is left out (docs/device.md §6, step 7)."""

from __future__ import annotations

from cuelight import regmap
from cuelight.regmap import CommitKind, GroupCostChunk
from cuelight_sim.situations import situation

from .bench import Bench, bench
from .crowd import to_the_last
from .details import chunk
from .host import Host, set_group, set_tier
from .lane import Lane

ROWS, SEATS = regmap.Group.ROWS, regmap.Group.SEATS
MIN_ROWS = regmap.Tier.MIN_ROWS
LOW = 3


async def beside(it: Bench, *prompts: dict[str, int], ends: bool = False) -> list[int]:
    """Prompts that come while a pass is alive, and are in the next one with whoever is left of it.

    Parameters
    ----------
    ends
        Nobody is left: the next pass has no decode row.
    """
    host, lane = Host(it), Lane(it)
    await host.join(rows=1)
    await lane.head()
    requests = [await host.join(**prompt) for prompt in prompts]
    await lane.serve_pass(finished=int(ends))
    await it.rest()
    return requests


async def chunks(it: Bench) -> dict[int, int]:
    """Rows of each request that has got some."""
    await it.rest()
    return {event.id: event.detail >> 20 & 0x3FF for event in it.seen(CommitKind.CHUNK)}


@bench
async def a_budget_of_512_rows(it: Bench) -> None:
    await set_group(it, 0, ROWS, 512)
    lane = Lane(it)
    request = await Host(it).join(rows=1000)
    await it.expect(CommitKind.CHUNK, id=request, detail=chunk(0, 512, first=True))
    await lane.serve_pass()
    await it.expect(CommitKind.CHUNK, id=request, detail=chunk(512, 488, last=True))


@bench
async def chunks_are_powers_of_two_down_to_8(it: Bench) -> None:
    """And the budget's last rows, fewer than 8, stay unused."""
    await set_group(it, 0, ROWS, 256)
    prompts = await beside(it, *[{"rows": 600}] * 9)
    taken = await chunks(it)
    assert [taken.get(prompt, 0) for prompt in prompts] == [128, 64, 32, 16, 8, 0, 0, 0, 0]


@bench
async def the_first_chunk_of_a_pass_is_8_rows_at_least(it: Bench) -> None:
    """Though lower tiers are to have all the rows, or it costs more than there is."""
    await set_tier(it, LOW, MIN_ROWS, 512)
    high, low = await beside(it, {"rows": 600}, {"rows": 600, "tier": LOW}, ends=True)
    taken = await chunks(it)
    assert taken[high] == 8
    # 248 rows are left, and of a lower tier nobody is.
    assert taken[low] == 128


@bench
async def the_first_chunk_of_a_pass_may_cost_more_than_there_is(it: Bench) -> None:
    await set_group(it, 0, regmap.Group.COST, 100)
    await set_group(it, 0, regmap.Group.COST_CHUNK, GroupCostChunk(c0=50).pack())
    first, second = await beside(it, {"rows": 600}, {"rows": 600}, ends=True)
    taken = await chunks(it)
    assert (taken[first], taken.get(second, 0)) == (8, 0)


@bench
async def rows_kept_for_a_lower_tier_are_no_higher_ones(it: Bench) -> None:
    await set_tier(it, LOW, MIN_ROWS, 512)
    high, low = await beside(it, {"rows": 600}, {"rows": 600, "tier": LOW})
    taken = await chunks(it)
    assert (taken.get(high, 0), taken[low]) == (0, 128)


@bench
async def a_prompt_that_costs_too_much_does_not_stop_a_lower_tier(it: Bench) -> None:
    await set_group(it, 0, regmap.Group.COST, 100)
    await set_group(it, 0, regmap.Group.COST_CHUNK, GroupCostChunk(c1=50).pack())
    far, near = await beside(it, {"rows": 600, "start": 4096}, {"rows": 600, "tier": LOW})
    taken = await chunks(it)
    assert (taken.get(far, 0), taken[near]) == (0, 128)


async def credit_while_forming(it: Bench, parked: int) -> None:
    """CREDIT of one whose prompt is parked, while a pass of many chunks is formed."""
    lane = Lane(it)
    last = await to_the_last(lane)
    it.bus.pause = (0,)
    await lane.done(last.sequence)
    await it.expect(CommitKind.PLAN)
    await Host(it).credit(parked)
    await it.settle()
    assert situation(it.golden.groups[0]) == "forming"
    it.bus.pause = (0, 1)


async def one_parked(it: Bench, tier: int) -> tuple[int, list[int]]:
    """A prompt that is parked, and 14 that are to come along in the next pass."""
    host = Host(it)
    await host.join(rows=1)
    parked = await host.join(rows=20, tier=tier)
    await it.rest()
    await host.park(parked)
    await it.expect(CommitKind.PARKED, stage=1, detail=0)
    return parked, [await host.join(rows=2) for _ in range(14)]


@bench
async def who_is_credited_while_a_pass_is_formed_may_come_along(it: Bench) -> None:
    """It stands in front of its tier's list."""
    parked, others = await one_parked(it, tier=0)
    await credit_while_forming(it, parked)
    await it.rest()
    entries = [event.id for event in it.seen(CommitKind.CHUNK)]
    assert set(entries) == {parked, *others}
    assert entries[-1] != parked


@bench
async def who_is_credited_while_a_pass_is_formed_may_find_no_rows(it: Bench) -> None:
    await set_group(it, 0, ROWS, it.params.seats + 16)
    parked, others = await one_parked(it, tier=LOW)
    await credit_while_forming(it, parked)
    # After 12 chunks of 2 rows, fewer than 8 of 31 are left.
    taken = await chunks(it)
    assert [taken.get(other, 0) for other in others] == [2] * 12 + [0] * 2
    assert parked not in taken
