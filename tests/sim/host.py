"""A host and its lanes that do as they are told, on the RTL with the golden model beside it."""

from __future__ import annotations

from cuelight import regmap
from cuelight.regmap import PageSchedAttr, PageSchedCmd
from cuelight_rtl.params import Params
from cuelight_sim.golden import Golden
from cuelight_sim.group import Group
from cuelight_sim.lane import Lane
from cuelight_sim.lockstep import Lockstep
from cuelight_sim.runs import fresh_lockstep
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

    def complete(self, lane: Lane, finished: int = 0) -> None:
        """Reports a lane's oldest dispatch as complete and lets the device go on."""
        assert lane.outstanding is not None
        sequence = lane.outstanding.sequence
        entry = (
            regmap.COMPLETION + lane.index * regmap.COMPLETION_STRIDE + sequence % 16 * regmap.COMPLETION_ENTRY_STRIDE
        )
        self.write32(regmap.POLL + lane.index * regmap.POLL_STRIDE + regmap.Poll.POP, sequence)
        for word in range(2):
            if finished >> 32 * word & 0xFFFF_FFFF:
                self.write32(entry + 4 * word, finished >> 32 * word & 0xFFFF_FFFF)
        self.write32(entry + regmap.Completion.BATCH_DONE, sequence)
        self.lockstep.run(20)

    def finish_pass(self, group: Group, finished: int = 0) -> None:
        """Completes dispatches until the loop point of pass 0 is over, and reports seats as finished in each."""
        run = group.alive.get(0)
        while run is not None and group.alive.get(0) is run:
            lane = next(lane for lane in group.lanes if lane.dispatches)
            self.complete(lane, finished)
            self.lockstep.rest()

    def set_tier(self, tier: int, register: int, value: int) -> None:
        self.write32(regmap.TIER + tier * regmap.TIER_STRIDE + register, value)

    def set_lane(self, lane: int, register: int, value: int) -> None:
        self.write32(regmap.LANE + lane * regmap.LANE_STRIDE + register, value)

    def set_group(self, group: Group, register: int, value: int) -> None:
        self.write32(regmap.GROUP + group.index * regmap.GROUP_STRIDE + register, value)

    def park(self, request_id: int) -> None:
        self.write32(regmap.PAGE + regmap.Page.PARK, request_id)

    def credit(self, request_id: int) -> None:
        self.write32(regmap.PAGE + regmap.Page.CREDIT, request_id)

    def pop_retirements(self) -> None:
        while self.golden.slots.retirements:
            self.write32(regmap.FIFO + regmap.Fifo.RETIRE_POP, self.golden.slots.retire_index)
            self.lockstep.run(4)
