"""Whatever a host may do to a request, done in every state that it can find the request in (docs/device.md §3, §4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from cuelight import regmap
from cuelight.regmap import CommitKind, RejectReason, RetireReason

from .bench import Bench, bench
from .crowd import Crowd, pop_retirements
from .host import Host, set_group, set_lane
from .lane import Lane

GROUP_RESET = regmap.CONTROL + regmap.Control.GROUP_RESET
Act = Callable[[Host, int], Awaitable[None]]
House = Callable[[Bench, int], Awaitable[tuple[Lane, list[int]]]]

ACTS: dict[str, Act] = {
    "target": lambda host, request: host.command(request, 3),
    "done": Host.done,
    "park": Host.park,
    "credit": Host.credit,
    "cancel": Host.cancel,
}
WAYS: dict[str, tuple[str, ...]] = {
    "plain": (),
    "with a credit": ("credit",),
    "parking": ("park",),
    "parking with a credit": ("park", "credit"),
    "parked": ("park",),
    "cancelled": ("cancel",),
}
"""What brings a seated request to a state."""
EFFECTS = {
    "park": (2, 2, 3, 3, 3, 2),
    "credit": (3, 4, 3, 4, 2, 3),
    "cancel": (2, 2, 2, 2, 2, 3),
}
"""Effect of an act in each of these states."""


def effect(act: str, state: str, *, in_pass: bool) -> tuple[CommitKind, int]:
    """Kind and stage of the commit that an act on a seated request makes."""
    if act == "target":
        return CommitKind.REJECT, RejectReason.REQUEST_RUNNING
    if act == "done":
        return CommitKind.STAGE_DONE if in_pass else CommitKind.STAGE_DONE_IGNORED, 0
    return CommitKind[act.upper()], EFFECTS[act][list(WAYS).index(state)]


# ------------------------------------------------------------------------------------------------ houses of group 0


async def prefilling_apart(it: Bench, count: int) -> tuple[Lane, list[int]]:
    """Requests with a prompt in seats of no pass, beside a pass of an equal tier."""
    await set_lane(it, 0, regmap.Lane.DEPTH, 1)
    host = Host(it)
    await host.join(rows=1)
    await it.expect(CommitKind.DISPATCH)
    return Lane(it), [await host.join(rows=5) for _ in range(count)]


async def prefilling_in_a_pass(it: Bench, count: int) -> tuple[Lane, list[int]]:
    """The same, once that pass has ended: they are in the next one."""
    lane, requests = await prefilling_apart(it, count)
    await lane.serve_pass()
    await lane.head()
    return lane, requests


async def decoding_in_a_pass(it: Bench, count: int) -> tuple[Lane, list[int]]:
    """The same, one pass later."""
    lane, requests = await prefilling_in_a_pass(it, count)
    await lane.serve_pass()
    await lane.head()
    return lane, requests


async def decoding_apart(it: Bench, count: int) -> tuple[Lane, list[int]]:
    """Requests whose prompts came along in second passes, and which wait for the next pass 0 to decode."""
    await set_lane(it, 0, regmap.Lane.DEPTH, 1)
    host, lane = Host(it), Lane(it)
    await host.join(rows=1, tier=3)
    await lane.serve_pass()
    await it.rest()
    requests = [await host.join(rows=1) for _ in range(count)]
    left = set(requests)
    while left:
        await lane.serve()
        await it.rest()
        left -= {event.id for event in it.seen(CommitKind.ADVANCE)}
    return lane, requests


# ------------------------------------------------------------------------------------------------ rounds


async def do_all(it: Bench, requests: list[int], state: str, acts: Sequence[str] = tuple(ACTS)) -> None:
    """Each act on a request of its own, which is brought to the state before."""
    host = Host(it)
    for act, request in zip(acts, requests, strict=True):
        for way in WAYS[state]:
            await ACTS[way](host, request)
        if state != "parked":
            await ACTS[act](host, request)
    await it.settle()
    if state == "parked":
        await it.rest()
        for act, request in zip(acts, requests, strict=True):
            await ACTS[act](host, request)
        await it.settle()


def expect_all(it: Bench, requests: list[int], state: str, acts: Sequence[str] = tuple(ACTS), *, in_pass: bool) -> None:
    """Of the commits so far, the latest one that names a request has the act's effect."""
    kinds = [CommitKind[name] for name in ("REJECT", "STAGE_DONE", "STAGE_DONE_IGNORED", "PARK", "CREDIT", "CANCEL")]
    latest = {event.id: event for event in it.seen(*kinds)}
    for act, request in zip(acts, requests, strict=True):
        event = latest[request]
        assert (event.kind, event.stage) == effect(act, state, in_pass=in_pass), f"{act} of one {state}: {event}"


async def in_a_pass(it: Bench, house: House) -> None:
    """Acts on members of a pass, all of whom are reported finished at its end."""
    for state in ("plain", "with a credit", "parking", "parking with a credit", "cancelled"):
        lane, requests = await house(it, len(ACTS))
        await do_all(it, requests, state)
        expect_all(it, requests, state, in_pass=True)
        await lane.serve_pass(finished=(1 << it.params.seats) - 1)
        for _ in requests:
            await it.expect(CommitKind.RETIRE, stage=RetireReason.FINISHED)
        await pop_retirements(it)


async def apart(it: Bench, house: House) -> None:
    """Acts on seats of no pass, all of which are lost at the end."""
    for state in ("plain", "with a credit", "parked"):
        _, requests = await house(it, len(ACTS))
        it.seen()
        await do_all(it, requests, state)
        expect_all(it, requests, state, in_pass=False)
        await it.write32(GROUP_RESET, 0)
        await it.expect(CommitKind.GROUP_READY)
        await pop_retirements(it)


async def apart_for_an_instant(it: Bench, house: House) -> None:
    """The same in states that the core ends as soon as it gets to it: it is held up by another group."""
    for state in ("parking", "parking with a credit", "cancelled"):
        crowd = Crowd(it)
        await crowd.gather()
        _, requests = await house(it, len(ACTS))
        it.seen()
        for finished, half in ((False, slice(3)), (True, slice(3, None))):
            acts = tuple(ACTS)[half]
            await crowd.hold(finished=finished)
            it.seen()
            await do_all(it, requests[half], state, acts)
            assert crowd.holds
            expect_all(it, requests[half], state, acts, in_pass=False)
            if not finished:
                await crowd.go_on()
        it.bus.pause = (0, 0, 0, 1, 2, 7)
        await it.write32(GROUP_RESET, 0)
        await it.expect(CommitKind.GROUP_READY)
        await pop_retirements(it)


@bench
async def acts_on_prompts_in_a_pass(it: Bench) -> None:
    await in_a_pass(it, prefilling_in_a_pass)


@bench
async def acts_on_decoding_seats_in_a_pass(it: Bench) -> None:
    await in_a_pass(it, decoding_in_a_pass)


@bench
async def acts_on_prompts_in_no_pass(it: Bench) -> None:
    await apart(it, prefilling_apart)


@bench
async def acts_on_decoding_seats_in_no_pass(it: Bench) -> None:
    await apart(it, decoding_apart)


@bench
async def acts_on_prompts_that_are_about_to_park_or_leave(it: Bench) -> None:
    await apart_for_an_instant(it, prefilling_apart)


@bench
async def acts_on_decoding_seats_that_are_about_to_park_or_leave(it: Bench) -> None:
    await apart_for_an_instant(it, decoding_apart)


# ------------------------------------------------------------------------------------------------ without a seat


@bench
async def acts_on_queued_requests(it: Bench) -> None:
    host = Host(it)
    await set_group(it, 0, regmap.Group.SEATS, 1)
    await host.join(rows=1)
    for credits in (0, 1):
        effects = {
            "target": (CommitKind.REJECT, RejectReason.REQUEST_RUNNING),
            "done": (CommitKind.STAGE_DONE_IGNORED, 0),
            "park": (CommitKind.PARK, (1, 4)[credits]),
            "credit": (CommitKind.CREDIT, (3, 4)[credits]),
            "cancel": (CommitKind.CANCEL, 1),
        }
        for act, (kind, stage) in effects.items():
            request = await host.join(rows=1)
            for _ in range(credits):
                await host.credit(request)
                await it.expect(CommitKind.CREDIT, id=request, stage=3)
            await ACTS[act](host, request)
            await it.expect(kind, id=request, stage=stage)


@bench
async def acts_on_requests_parked_without_a_seat(it: Bench) -> None:
    host = Host(it)
    await set_group(it, 0, regmap.Group.SEATS, 1)
    await host.join(rows=1)
    for act, kind, stage in (
        ("target", CommitKind.REJECT, RejectReason.REQUEST_RUNNING),
        ("done", CommitKind.STAGE_DONE_IGNORED, 0),
        ("park", CommitKind.PARK, 3),
        ("credit", CommitKind.CREDIT, 1),
        ("cancel", CommitKind.CANCEL, 1),
    ):
        request = await host.join(rows=1)
        await host.park(request)
        await it.expect(CommitKind.PARK, id=request, stage=1)
        await ACTS[act](host, request)
        await it.expect(kind, id=request, stage=stage)


@bench
async def acts_on_manual_requests(it: Bench) -> None:
    host = Host(it)
    for waits in (False, True):
        for act, kind, stage in (
            ("target", *((CommitKind.RETARGET, 3) if waits else (CommitKind.REJECT, RejectReason.REQUEST_RUNNING))),
            ("done", CommitKind.STAGE_DONE_IGNORED if waits else CommitKind.STAGE_DONE, 0),
            ("park", CommitKind.PARK, 0),
            ("credit", CommitKind.CREDIT, 0),
            ("cancel", CommitKind.CANCEL, 0),
        ):
            request = await host.admit(stage=1)
            if waits:
                await host.done(request)
                await it.expect(CommitKind.STAGE_DONE, id=request)
            await ACTS[act](host, request)
            await it.expect(kind, id=request, stage=stage)


@bench
async def acts_on_requests_that_have_retired_or_are_gone(it: Bench) -> None:
    host = Host(it)
    request = await host.join(rows=1)
    await host.cancel(request)
    await it.write32(GROUP_RESET, 0)
    await it.expect(CommitKind.RETIRE, id=request)
    ignored = (("done", CommitKind.STAGE_DONE_IGNORED), ("park", CommitKind.PARK), ("credit", CommitKind.CREDIT))
    for act in ("target", "cancel"):
        await ACTS[act](host, request)
        await it.expect(CommitKind.REJECT, id=request, stage=RejectReason.ALREADY_RETIRED)
    for act, kind in ignored:
        await ACTS[act](host, request)
        await it.expect(kind, id=request, stage=0)
    await pop_retirements(it)
    await host.cancel(request)
    await it.expect(CommitKind.REJECT, id=request, stage=RejectReason.STALE_EPOCH)
    for act, kind in ignored:
        await ACTS[act](host, request)
        await it.expect(kind, id=request, stage=0)
