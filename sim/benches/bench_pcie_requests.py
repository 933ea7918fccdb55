"""Many requests over the link, their lanes pushed, in lockstep with the golden model; every stream pauses at random."""

from __future__ import annotations

import os

import cocotb

from cuelight.regmap import Push

from .bench import STEPS
from .pcie.bench import PcieBench, bench
from .pcie.ring_lane import Request
from .pcie.service import Service


@bench
async def requests_run_in_push(it: PcieBench) -> None:
    service, count = Service(it), int(os.environ[STEPS])
    for _ in range(count):
        rows, left = it.random.choice((1, 3, 20, 90)), it.random.choice((1, 1, 2, 3))
        service.waiting.append(Request(rows, left, group=it.random.randrange(it.params.lanes)))
    tokens = sum(request.left for request in service.waiting)
    await service.begin()
    await service.settles()
    await service.stop()
    assert len(service.finished) == count + it.params.lanes
    assert sum(request.said for request in service.finished) == tokens + 2 * it.params.lanes
    for ring in service.rings:
        assert await ring.port.count(Push.FALLS) == 0
        cocotb.log.info("lane %d: %d dispatches pushed", ring.port.lane, await ring.port.count(Push.PUSHED))
