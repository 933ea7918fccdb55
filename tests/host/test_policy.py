"""Tiers, costs and depth from the driver: what the device is told, and what comes of it."""

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from cuelight import Cost, Device, Finish, Request, Tier
from cuelight.errors import CuelightError, DeviceBusy, InvalidArgument, NoKvCredit, UnknownGroup
from cuelight.lanes.port import LanePort
from cuelight.policy import open_tiers
from cuelight.regmap import PAGE, Page, PageSchedAttr, PageSchedCmd

from .checks import WAIT_S, assert_at_rest, until, vanish
from .lane import STAGES, expected_tokens, lane_of

POSITIONS = 16
BLOCKS = 8
GRANTED = (Tier(), Tier(kv_floor=1, seat_floor=1), Tier(min_rows=512), Tier(min_seats=1, min_rows=16, kv_floor=3))


def configure(device: Device, **settings: Any) -> None:
    device.configure(**{"stages": STAGES, "kv_blocks": BLOCKS, "block_positions": POSITIONS} | settings)


@pytest.fixture
def device() -> Iterator[Device]:
    with Device.open("twin", lanes=2, slots=64, seats=16, context=256, blocks=16, tiers=GRANTED) as device:
        configure(device)
        yield device


def check(request: Request, prompt: list[int]) -> None:
    assert [token.token for token in request.result(WAIT_S)] == expected_tokens(prompt, request.max_new_tokens)
    assert request.finish is Finish.LENGTH


def test_tiers_and_costs_are_read_back_and_change_while_requests_live(device: Device) -> None:
    assert device.status().tiers == GRANTED
    request = device.submit([1], 1)
    device.set_tiers(GRANTED[:2])
    assert device.status().tiers == (*GRANTED[:2], Tier(), Tier())
    assert [group.cost for group in device.status().groups] == [Cost(), Cost()]
    costs = Cost(budget=0, decode_row=0xFFFF, c0=0xFFFF, c1=1), Cost(budget=7)
    device.set_cost(costs[1])
    device.set_cost(costs[0], group=0)
    assert tuple(group.cost for group in device.status().groups) == costs
    with lane_of(device):
        check(request, [1])
        assert_at_rest(device)
    configure(device, tiers=GRANTED, depth=1)
    status = device.status()
    assert status.tiers == GRANTED
    assert [lane.depth for lane in status.lanes] == [1, 1]
    assert status.counters.config_ignored == 0


@pytest.mark.parametrize(
    ("tiers", "sentence"),
    [
        ([Tier(min_seats=17)], "min_seats of tier 0 must be 0 to 16, not 17."),
        ([Tier(), Tier(min_rows=513)], "min_rows of tier 1 must be 0 to 512, not 513."),
        ([Tier(kv_floor=-1)], "kv_floor of tier 0 must be 0 to 65535, not -1."),
        ([Tier(seat_floor=17)], "seat_floor of tier 0 must be 0 to 16, not 17."),
        ([Tier(kv_floor=1.5)], "kv_floor of tier 0 must be 0 to 65535, not 1.5."),  # type: ignore[arg-type]
        ([Tier()] * 5, "The device has 4 tiers, not 5; leave some out."),
    ],
)
def test_tiers_that_cannot_be_are_refused_with_their_range(device: Device, tiers: list[Tier], sentence: str) -> None:
    for call in (device.set_tiers, lambda tiers: configure(device, tiers=tiers)):
        with pytest.raises(InvalidArgument) as refusal:
            call(tiers)
        assert str(refusal.value) == sentence
    assert device.status().tiers == GRANTED
    with pytest.raises(InvalidArgument):
        Device.open("twin", seats=16, tiers=tiers)


def test_what_the_device_refuses_is_told(device: Device) -> None:
    read32, write64 = device.transport.read32, device.transport.write64
    # A request of which the driver does not know.
    request_id = read32(PAGE + Page.OFFER_ID)
    write64(PAGE + Page.SCHED_ATTR, PageSchedAttr(automatic=1, rows=1).pack())
    write64(PAGE + Page.SCHED_CMD, PageSchedCmd(stage=0, id=request_id).pack())
    with pytest.raises(DeviceBusy, match=r"refused to set stages .* to 5; configure it while no request lives"):
        configure(device, stages=5)
    device.restart_group(0)
    until(lambda: device.status().active == 0)
    configure(device, stages=5)
    assert device.status().stages == 5


@pytest.mark.parametrize(
    ("cost", "group", "error"),
    [
        (Cost(budget=1 << 32), None, InvalidArgument),
        (Cost(decode_row=1 << 16), 0, InvalidArgument),
        (Cost(c0=-1), 0, InvalidArgument),
        (Cost(c1=1 << 16), 0, InvalidArgument),
        (Cost(), 2, UnknownGroup),
    ],
)
def test_costs_that_cannot_be_are_refused(
    device: Device, cost: Cost, group: int | None, error: type[CuelightError]
) -> None:
    with pytest.raises(error):
        device.set_cost(cost, group)
    assert device.status().groups[0].cost == Cost()


def test_a_cost_budget_bounds_the_chunks_of_a_pass(device: Device) -> None:
    prompt = list(range(100))
    device.set_cost(Cost(budget=160, c0=10), group=0)
    with lane_of(device) as lane:
        check(device.submit(prompt, 2), prompt)
        assert [chunk.rows for chunk in lane.chunks] == [16] * 6 + [4]
        device.set_cost(Cost(budget=5))
        check(device.submit(prompt[1:], 2), prompt[1:])
        assert lane.chunks[-1].rows == 99


@pytest.mark.parametrize("depth", [1, 2])
def test_a_lane_holds_as_many_dispatches_as_its_depth(device: Device, depth: int) -> None:
    configure(device, depth=depth)
    request = device.submit([1], 1)
    with LanePort(device.segment.path, 0) as port:
        assert port.wait(WAIT_S) is not None
        assert (port.wait(0.2) is not None) == (depth == 2)
    request.cancel()
    device.reset_group(0, InvalidArgument("Enough of it."))


def test_a_minimum_of_seats_is_kept_from_higher_tiers(device: Device) -> None:
    configure(device, seats=2, kv_blocks=40)
    low = [device.submit([turn], 30, tier=3) for turn in range(2)]
    high = [device.submit([9, turn], 30) for turn in range(4)]
    with lane_of(device):
        for request, prompt in zip((*low, *high), ([0], [1], *([9, turn] for turn in range(4))), strict=True):
            check(request, prompt)
        assert_at_rest(device)
    # One seat was taken from them, the other was theirs.
    assert device.status().counters.pauses == 1


def test_a_request_above_its_tiers_floor_waits_on_the_host_and_nobody_higher_behind_it(device: Device) -> None:
    with pytest.raises(NoKvCredit, match="tier 3 leaves 3 to others"):
        # Never, so at once.
        device.submit([1] * 80, 10, tier=3)
    held = device.submit([1] * 60, 20, tier=3)
    with pytest.raises(NoKvCredit, match=r"3 of 8 KV blocks free, .* leaves 3 to others than tier 3"):
        device.submit([2], 1, tier=3, timeout_s=0.1)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(device.submit, [2], 1, tier=3)
        until(lambda: device.snapshot().waiting == (0, 0, 0, 1))
        high = device.submit([3] * 40, 1, timeout_s=0)
        assert not waiting.done()
        with lane_of(device):
            check(waiting.result(WAIT_S), [2])
            check(high, [3] * 40)
            check(held, [1] * 60)
            assert_at_rest(device)
    assert device.status().counters.rejected == 0


def test_who_took_room_first_and_is_admitted_last_waits_again(device: Device) -> None:
    with ThreadPoolExecutor(2) as pool:
        with device._link.commands.lock:
            low = pool.submit(device.submit, [1] * 60, 4, tier=3)
            until(lambda: device._room.free_blocks(0) == 4)
            high = pool.submit(device.submit, [2] * 60, 4)
            until(lambda: device._room.free_blocks(0) == 0)
        first = high.result(WAIT_S)
        until(lambda: device.snapshot().waiting == (0, 0, 0, 1))
        with lane_of(device):
            check(first, [2] * 60)
            check(low.result(WAIT_S), [1] * 60)
            assert_at_rest(device)
    assert device.status().counters.rejected == 0


def test_no_admission_meets_a_floor_on_the_device(device: Device) -> None:
    """Requests of all tiers take room in one order and are admitted in another, while floors move."""

    def work(seed: int) -> None:
        chance = random.Random(seed)
        for turn in range(40):
            prompt = [seed, turn] * chance.randrange(1, 30)
            if chance.random() < 0.2:
                device.set_tiers([Tier(kv_floor=chance.randrange(3)) for _ in range(4)])
            check(device.submit(prompt, 2, tier=chance.randrange(4)), prompt)

    with lane_of(device), ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(work, seed) for seed in range(6)]:
            done.result(2 * WAIT_S)
        assert_at_rest(device)
    assert device.status().counters.rejected == 0


def test_a_fresh_device_is_told_the_same_and_takes_back_what_is_below_a_floor(device: Device) -> None:
    device.set_cost(Cost(budget=1000, c0=1), group=1)
    low = device.submit([1] * 60, 20, tier=3)
    high = [device.submit([2], 15) for _ in range(3)]
    # None of its tier would be admitted now.
    granted = (*GRANTED[:3], Tier(kv_floor=BLOCKS))
    device.set_tiers(granted)
    old = device.transport
    vanish(old)
    # The floor is lifted while it is admitted again.
    until(lambda: device.transport is not old and (status := device.status()).active == 4 and status.tiers == granted)
    status = device.status()
    assert [group.cost for group in status.groups] == [Cost(), Cost(budget=1000, c0=1)]
    with lane_of(device):
        check(low, [1] * 60)
        for request in high:
            check(request, [2])
        assert_at_rest(device)


def test_a_seat_floor_keeps_a_seat_for_a_higher_tier(device: Device) -> None:
    """Without it the higher one would have to wait for the end of a pass, and pause somebody."""
    configure(device, seats=3, kv_blocks=40)
    device.set_tiers([Tier(), Tier(), Tier(), Tier(seat_floor=1)])
    low = [device.submit([turn], 20, tier=3) for turn in range(6)]
    until(lambda: device.status().groups[0].seated == 2)
    high = device.submit([9], 5)
    until(lambda: device.status().groups[0].seated == 3)
    with lane_of(device):
        check(high, [9])
        for turn, request in enumerate(low):
            check(request, [turn])
        assert_at_rest(device)
    assert device.status().counters.pauses == 0


def test_tiers_that_nobody_set_leave_higher_ones_a_way_in() -> None:
    assert open_tiers(4, seats=64, kv_blocks=128, most_blocks=64) == (
        Tier(),
        Tier(kv_floor=8, seat_floor=1),
        Tier(kv_floor=16, seat_floor=2),
        Tier(kv_floor=24, seat_floor=3),
    )
    # A request of the whole context is admitted, and a small house has no seat to spare.
    assert open_tiers(4, seats=7, kv_blocks=64, most_blocks=64) == (Tier(),) * 4
