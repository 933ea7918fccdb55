"""That broken promises are noticed: by the watch, told of commits that no device may make, and by tighter limits."""

from __future__ import annotations

import pytest

from cuelight import regmap
from cuelight.regmap import CommitKind, PageSchedAttr
from cuelight_rtl.model import Commit
from cuelight_rtl.params import Params
from cuelight_sim import loop_waits, seat_waits, waits
from cuelight_sim.golden import Golden
from cuelight_sim.seat_waits import SeatWaits
from cuelight_sim.shares import Shares
from cuelight_sim.slots import Request
from cuelight_sim.steps import Divergence
from cuelight_sim.watch import Watch

from .host import Host

SMALL = Params(slots=64, seats=16, lanes=2, stages=8)
VIP, LOW = 0, 3


class Told:
    """A watch over a device of 16 seats a group whose commits are made up."""

    def __init__(self) -> None:
        self.golden = Golden(SMALL)
        self.watch = Watch(self.golden)

    def __call__(self, kind: CommitKind, *, stage: int = 0, id: int = 0, detail: int = 0) -> None:
        self.watch.observe(Commit(0, 0, kind, 0, stage, id, detail))

    def admit(self, request: int, tier: int) -> None:
        self(CommitKind.ADMIT, stage=8 | tier << 4, id=request)

    def seat(self, request: int, tier: int, seat: int) -> None:
        self.admit(request, tier)
        self(CommitKind.SEAT, stage=seat, id=request, detail=tier)


@pytest.fixture
def told() -> Told:
    return Told()


def test_equal_tiers_must_not_displace_each_other(told: Told) -> None:
    for seat in range(16):
        told.seat(seat, LOW, seat)
    told.admit(20, LOW)
    with pytest.raises(Divergence, match="tier 3 makes room for tier 3, which is not higher"):
        told(CommitKind.PAUSE, stage=0, id=0, detail=LOW)


def test_minimum_seats_must_be_kept(told: Told) -> None:
    told.golden.tiers[LOW].min_seats = 16
    for seat in range(16):
        told.seat(seat, LOW, seat)
    told.admit(20, VIP)
    with pytest.raises(Divergence, match="tier 3 is left with less than its minimum of seats"):
        told(CommitKind.PAUSE, stage=0, id=0, detail=LOW)


def test_minimum_seats_must_be_given_first(told: Told) -> None:
    told.golden.tiers[LOW].min_seats = 1
    told.admit(1, VIP)
    told.admit(2, LOW)
    with pytest.raises(Divergence, match=r"tier 0 gets a seat, \[3\] was to have it"):
        told(CommitKind.SEAT, id=1)


def test_a_seat_must_not_be_given_twice(told: Told) -> None:
    told.seat(1, VIP, 0)
    told.admit(2, VIP)
    with pytest.raises(Divergence, match="seat 0 of group 0 is given away twice"):
        told(CommitKind.SEAT, id=2)


def test_a_vip_must_not_wait_while_a_lower_tier_could_make_room(told: Told) -> None:
    for seat in range(16):
        told.seat(seat, LOW, seat)
    told.admit(20, VIP)
    with pytest.raises(Divergence, match="tier 0 waits while seat 0 of group 0 could make room"):
        told(CommitKind.PLAN, id=1)


def test_nobody_must_wait_while_a_seat_is_free(told: Told) -> None:
    told.admit(1, LOW)
    with pytest.raises(Divergence, match="a pass of group 0 is formed while tier 3 waits for one of 16 free seats"):
        told(CommitKind.PLAN, id=1)


def test_kv_credit_must_return(told: Told) -> None:
    told.golden.groups[0].kv_blocks = 5
    with pytest.raises(Divergence, match="group 0 has 0 free KV blocks of 5, its requests 0"):
        told.watch.rest()


@pytest.mark.parametrize(("tier", "minimum", "least"), [(VIP, 0, 100), (LOW, 64, 64)])
def test_a_tier_must_get_its_rows(tier: int, minimum: int, least: int) -> None:
    golden = Golden(SMALL)
    group, shares = golden.groups[0], Shares(golden)
    golden.tiers[LOW].min_rows = minimum
    for other in {VIP, tier}:
        waiting = Request(other, 0, other, 0, 0, 0, rows_left=100 if other == tier else 0, seat=other)
        group.seated[other] = waiting
        group.prefilling[other].append(waiting)
    shares.observe(Commit(0, 0, CommitKind.PLAN, 0, 0, 1, 1 << 16))
    with pytest.raises(Divergence, match=f"tier {tier} of group 0 gets 0 rows of pass 1, though at least {least}"):
        shares.observe(Commit(0, 0, CommitKind.FORM, 0, 0, 1, 0))


def test_a_queued_request_must_not_be_overtaken() -> None:
    golden = Golden(SMALL)
    group, waits_of_seats = golden.groups[0], SeatWaits(golden)
    for slot in range(2):
        request = Request(slot, 0, LOW, 0, 0, 0, rows_left=8)
        golden.slots.request[slot] = request
        group.queues[LOW].append(request)
        waits_of_seats.observe(Commit(0, 0, CommitKind.ADMIT, 0, 8 | LOW << 4, slot, 0))
    group.seated[0] = group.queues[LOW].pop()
    with pytest.raises(Divergence, match="request 0x0 of group 0 waits while 1 others get seats, 0 at most may"):
        waits_of_seats.observe(Commit(0, 0, CommitKind.SEAT, 0, 0, 1, LOW))


def run_two_passes() -> None:
    host = Host(SMALL)
    for rows in (300, 8):
        host.admit(PageSchedAttr(automatic=1, rows=rows))
    host.lockstep.rest()
    host.finish_pass(host.golden.groups[0])
    host.write32(regmap.CONTROL + regmap.Control.PAGE_ENABLE, 1)


@pytest.mark.parametrize(
    ("name", "cycles", "complaint"),
    [
        ("waits.COMMAND", 2, "a write took [34] cycles, 2 at most"),
        ("waits.STEP", 1, "[A-Z_]+ took [0-9]+ cycles"),
        ("waits.DISPATCH", 0, "the dispatch of lane 0 took 1 cycles, 0 at most"),
        ("loop_waits.LOOP", -20, "the next pass of group 0 was formed after"),
        ("seat_waits.LEFT", -1, "a seat of group 0 stays free for a request that waits, 0 steps long"),
    ],
)
def test_a_wait_beyond_its_limit_is_noticed(
    monkeypatch: pytest.MonkeyPatch, name: str, cycles: int, complaint: str
) -> None:
    module, _, limit = name.partition(".")
    modules = {"waits": waits, "loop_waits": loop_waits, "seat_waits": seat_waits}
    monkeypatch.setattr(modules[module], limit, cycles)
    with pytest.raises(Divergence, match=complaint):
        run_two_passes()


def test_two_passes_keep_all_limits() -> None:
    run_two_passes()
