"""Whole lives of many requests on the RTL, the golden model beside it."""

from __future__ import annotations

from random import Random

import pytest

from cuelight import regmap
from cuelight.regmap import CommitKind, PageReqStatus, PageSchedAttr
from cuelight_rtl.params import Params
from cuelight_sim.slots import SlotState

from .host import CANCEL, KV_BLOCKS, Host


def test_a_thousand_requests_with_cancels_leave_nothing_behind() -> None:
    host = Host(Params())
    random = Random(7)
    slots, groups = host.golden.slots, host.golden.groups
    admitted = 0
    living: list[int] = []
    while admitted < 1000 or any(not group.empty for group in groups):
        if admitted < 1000 and host.golden.pages[0].offer is not None and random.random() < 0.6:
            group = random.choice(groups)
            attributes = PageSchedAttr(
                automatic=1,
                tier=random.randrange(4),
                group=group.index,
                kv_blocks=min(random.randrange(20), group.kv_free),
                rows=random.choice((1, 9, 40, 300)),
            )
            living.append(host.admit(attributes))
            admitted += 1
        if random.random() < 0.1:
            request_id = random.choice(living)
            if slots.holds(request_id) and slots.state[request_id & 0xFFFF] is not SlotState.RETIRED:
                host.command(request_id, CANCEL)
        for lane in host.golden.lanes:
            if lane.outstanding is not None:
                finished = sum(1 << seat for seat in range(64) if random.random() < 0.1)
                host.complete(lane, finished & lane.outstanding.run.decode)
        if random.random() < 0.2:
            host.pop_retirements()
        if random.random() < 0.01:
            host.lockstep.rest()
    host.pop_retirements()
    host.lockstep.rest()
    device = host.lockstep.device
    assert PageReqStatus.unpack(device.read(regmap.PAGE + regmap.Page.REQ_STATUS)).active == 0
    assert sum(state is SlotState.FREE for state in slots.state) == 1024
    counters = regmap.COUNTERS
    assert device.read(counters + regmap.Counters.ADMITTED) == 1000
    assert device.read(counters + regmap.Counters.RETIRED) == 1000
    assert {event.stage for event in host.events if event.kind == CommitKind.RETIRE} == {1, 2}
    for group in groups:
        base = regmap.GROUP + group.index * regmap.GROUP_STRIDE
        assert device.read(base + regmap.Group.KV_FREE) == KV_BLOCKS
        assert device.read(base + regmap.Group.OCCUPANCY, 8) == 0


@pytest.mark.parametrize("rows", [1, 8])
def test_16_staggered_arrivals_share_one_pass_after_two(rows: int) -> None:
    host = Host(Params())
    group = host.golden.groups[0]
    host.admit(PageSchedAttr(automatic=1, rows=rows))
    host.lockstep.run(100)
    for _ in range(15):
        host.admit(PageSchedAttr(automatic=1, rows=rows))
        host.lockstep.run(37)
    assert group.pass_number == 1
    host.finish_pass(group)
    host.finish_pass(group)
    host.lockstep.rest()
    assert group.pass_number == 3
    assert group.alive[0].decode == (1 << 16) - 1
