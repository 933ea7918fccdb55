"""The host's own driver opens the simulated board, sets it up, and runs requests over the link, its lanes polled."""

from __future__ import annotations

import threading
from pathlib import Path

from cuelight import Device
from cuelight.lanes.port import LanePort
from cuelight.lanes.types import Dispatch, Entry, PassRecord, TokenStatus
from cuelight.policy import Tier
from cuelight.transports.polled import PolledTransport

from .pcie.bench import PcieBench, bench
from .pcie.registers import LinkRegisters

STAGES = 4
WAIT_S = 300.0
"""The simulation is some hundred thousand times slower than a board."""


class CountingLane:
    """Says a request's positions, in the place of a model."""

    def __init__(self, segment: Path) -> None:
        self._port = LanePort(segment, 0)
        self._records: dict[int, PassRecord] = {}
        self._positions: dict[int, int] = {}
        self._entries: dict[int, Entry] = {}

    def serve(self) -> None:
        with self._port as port:
            while not port.stop_requested:
                if (dispatch := port.wait(0.1)) is not None:
                    port.complete(dispatch.sequence, self._run(dispatch))

    def _run(self, dispatch: Dispatch) -> list[int]:
        """Seats that are finished with this dispatch."""
        if dispatch.first:
            self._records[dispatch.buffer] = record = self._port.record(dispatch)
            for entry in record.entries:
                self._entries[entry.seat] = entry
                self._positions[entry.seat] = entry.start + entry.rows
        if dispatch.stage < STAGES - 1:
            return []
        record = self._records[dispatch.buffer]
        sampling = {*record.decode, *(entry.seat for entry in record.entries if entry.last)}
        return [seat for seat in sorted(sampling) if self._say(seat)]

    def _say(self, seat: int) -> bool:
        """Whether the seat's request is finished with this token."""
        entry, position = self._entries[seat], self._positions[seat]
        self._positions[seat] += 1
        slot = self._port.slot_record(entry.slot)
        over = position + 1 == len(slot.prompt) + slot.limit
        status = TokenStatus.LENGTH if over else TokenStatus.MORE
        self._port.post_token(entry.request_id, position, position, 0.0, status)
        return over


@bench
async def manual_requests_walk_through_the_stages(it: PcieBench) -> None:
    def drive(registers: LinkRegisters) -> tuple[int, int]:
        with Device(PolledTransport(registers, context=64), uri="pcie") as device:
            request = device.admit(stage=3, timeout_s=WAIT_S)
            request.stage_done()
            request.run(stage=4)
            admitted = device.status().counters.admitted
            assert request.cancel()
            return request.id, admitted

    identity, admitted = await LinkRegisters(it.board, it.clk).serve(drive)
    assert identity == 1 << 16
    assert admitted == 1


@bench
async def automatic_requests_are_answered(it: PcieBench) -> None:
    prompts = ([1, 2, 3], [4] * 20)

    def drive(registers: LinkRegisters) -> list[list[int]]:
        with Device(PolledTransport(registers, context=64), uri="pcie") as device:
            device.configure(stages=STAGES, kv_blocks=64, block_positions=16, tiers=[Tier(min_seats=2), Tier()])
            lane = CountingLane(device.segment.path)
            threading.Thread(target=lane.serve, name="lane", daemon=True).start()
            requests = [device.submit(prompt, 3, tier=tier, timeout_s=WAIT_S) for tier, prompt in enumerate(prompts)]
            return [[token.token for token in request.tokens(WAIT_S)] for request in requests]

    said = await LinkRegisters(it.board, it.clk).serve(drive)
    assert said == [[len(prompt), len(prompt) + 1, len(prompt) + 2] for prompt in prompts]
