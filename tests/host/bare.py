"""A device driven by its registers and ports alone, as the driver's lower half sees it."""

from __future__ import annotations

import time
from collections.abc import Callable

from cuelight import regmap
from cuelight.lanes.port import LanePort
from cuelight.lanes.types import Dispatch
from cuelight.regmap import FifoRetireHead, PageSchedAttr, PageSchedCmd
from cuelight.transports.base import Transport

SLOTS, SEATS = 64, 16
STAGES = 4
CANCEL = 0xFFFF_FFFF
WAIT_S = 30.0


def configure(transport: Transport) -> None:
    transport.write32(regmap.CONTROL + regmap.Control.STAGE_COUNT, STAGES)
    for group in range(2):
        transport.write32(regmap.GROUP + group * regmap.GROUP_STRIDE + regmap.Group.KV_BLOCKS, 1000)


def command(transport: Transport, request_id: int, stage: int, page: int = 0) -> None:
    transport.write64(
        regmap.PAGE + page * regmap.PAGE_STRIDE + regmap.Page.SCHED_CMD, PageSchedCmd(stage, request_id).pack()
    )


def admit(transport: Transport, group: int = 0, rows: int = 1, tier: int = 0) -> int:
    request_id = transport.read32(regmap.PAGE + regmap.Page.OFFER_ID)
    assert request_id
    attributes = PageSchedAttr(automatic=1, group=group, kv_blocks=1, rows=rows, tier=tier).pack()
    transport.write64(regmap.PAGE + regmap.Page.SCHED_ATTR, attributes)
    command(transport, request_id, 0)
    return request_id


def passes(transport: Transport) -> int:
    return transport.read32(regmap.COUNTERS + regmap.Counters.PASSES)


def active(transport: Transport) -> int:
    return transport.read32(regmap.PAGE + regmap.Page.REQ_STATUS) & 0xFFFF


def pop_retired(transport: Transport) -> list[tuple[int, int]]:
    """Ids and reasons of all that wait in the retirement FIFO."""
    retired = []
    while (head := FifoRetireHead.unpack(transport.read64(regmap.FIFO + regmap.Fifo.RETIRE_HEAD))).valid:
        retired.append((head.id, head.reason))
        transport.write32(regmap.FIFO + regmap.Fifo.RETIRE_POP, head.index)
    return retired


def take(port: LanePort) -> Dispatch:
    dispatch = port.wait(WAIT_S)
    assert dispatch is not None, "no dispatch came"
    return dispatch


def run_lane(transport: Transport, lane: int, passes: int) -> int:
    """Answer every dispatch at once until that many passes are over; return how many dispatches there were."""
    dispatches = 0
    with LanePort(transport.segment.path, lane) as port:
        while passes:
            dispatch = take(port)
            if dispatch.first:
                record = port.record(dispatch)
                assert len(record.decode) + sum(entry.rows for entry in record.entries) == dispatch.rows
            passes -= dispatch.last
            dispatches += 1
            port.complete(dispatch.sequence)
    return dispatches


def wait_until(transport: Transport, condition: Callable[[], bool]) -> None:
    """Wait for what the host bell announces."""
    deadline = time.monotonic() + WAIT_S
    bell = transport.segment.host_bell()
    while not condition():
        assert time.monotonic() < deadline
        bell = transport.wait(bell, 0.01)
