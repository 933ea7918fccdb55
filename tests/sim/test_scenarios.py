"""Whole lives of many requests on the RTL, the golden model beside it."""

from __future__ import annotations

from random import Random

import pytest

from cuelight import regmap
from cuelight.regmap import CommitKind, PageReqStatus, PageSchedAttr, PageSchedCmd
from cuelight_rtl.params import Params
from cuelight_sim.golden import Golden
from cuelight_sim.group import Group
from cuelight_sim.lockstep import Lockstep
from cuelight_sim.runs import fresh_lockstep
from cuelight_sim.slots import SlotState
from cuelight_sim.steps import Event

KV_BLOCKS = 5000
STAGE_COUNT = 7
CANCEL = 0xFFFF_FFFF


class Host:
    """Admits and cancels requests on page 0 and serves every lane, one operation at a time."""

    def __init__(self, params: Params) -> None:
        self.lockstep: Lockstep = fresh_lockstep(params)
        self.events: list[Event] = []
        self.lockstep.observe = self.events.append
        self.write32(regmap.CONTROL + regmap.Control.STAGE_COUNT, STAGE_COUNT)
        for group in self.golden.groups:
            self.write32(regmap.GROUP + group.index * regmap.GROUP_STRIDE + regmap.Group.KV_BLOCKS, KV_BLOCKS)
        self.lockstep.rest()

    @property
    def golden(self) -> Golden:
        return self.lockstep.golden

    def write32(self, offset: int, value: int) -> None:
        high = offset % 8
        self.lockstep.write(offset - high, value << 8 * high, 0xF0 if high else 0x0F)

    def command(self, request_id: int, stage: int) -> None:
        self.lockstep.write(regmap.PAGE + regmap.Page.SCHED_CMD, PageSchedCmd(stage=stage, id=request_id).pack())

    def admit(self, attributes: PageSchedAttr) -> int:
        offer = self.golden.pages[0].offer
        assert offer is not None
        request_id = self.golden.slots.next_id(offer)
        self.lockstep.write(regmap.PAGE + regmap.Page.SCHED_ATTR, attributes.pack())
        self.command(request_id, 0)
        self.lockstep.run(4)
        return request_id

    def complete(self, group: Group, finished: int = 0) -> None:
        """Reports the group's dispatch as complete and lets the device go on."""
        assert group.outstanding is not None
        sequence = group.outstanding.sequence
        entry = (
            regmap.COMPLETION + group.index * regmap.COMPLETION_STRIDE + sequence % 16 * regmap.COMPLETION_ENTRY_STRIDE
        )
        self.write32(regmap.POLL + group.index * regmap.POLL_STRIDE + regmap.Poll.POP, sequence)
        for word in range(2):
            if finished >> 32 * word & 0xFFFF_FFFF:
                self.write32(entry + 4 * word, finished >> 32 * word & 0xFFFF_FFFF)
        self.write32(entry + regmap.Completion.BATCH_DONE, sequence)
        self.lockstep.run(20)

    def finish_pass(self, group: Group) -> None:
        """Completes dispatches until the loop point is over."""
        number = group.pass_number
        while group.outstanding is not None and group.pass_number == number:
            self.complete(group)
            self.lockstep.rest()

    def pop_retirements(self) -> None:
        while self.golden.slots.retirements:
            self.write32(regmap.FIFO + regmap.Fifo.RETIRE_POP, self.golden.slots.retire_index)
            self.lockstep.run(4)


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
        for group in groups:
            if group.outstanding is not None:
                decoding = [seat for seat in group.seated if group.alive and group.alive.decode >> seat & 1]
                finished = sum(1 << seat for seat in decoding if random.random() < 0.1)
                host.complete(group, finished)
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
    assert group.alive is not None
    assert group.pass_number == 1
    host.finish_pass(group)
    host.finish_pass(group)
    host.lockstep.rest()
    assert group.pass_number == 3
    assert group.alive.decode == (1 << 16) - 1
