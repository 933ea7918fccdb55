"""A lane for tests: a thread that answers every dispatch at once, with tokens that follow from the prompt alone."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Iterable

from cuelight.device import Device
from cuelight.lanes.port import LanePort
from cuelight.lanes.types import Dispatch, PassRecord, SlotRecord, TokenStatus

STAGES = 4
"""Prefill, kv-init, one layer stage, output decode."""


def expected_token(prompt: Iterable[int], position: int) -> int:
    """What the lane says at a position."""
    return zlib.crc32(f"{list(map(int, prompt))} {position}".encode()) & 0xFFFF


class InstantLane(threading.Thread):
    """Runs `lane` of `device` until the device closes; `gate`, called before each completion, may hold it up."""

    def __init__(self, device: Device, lane: int = 0, gate: Callable[[Dispatch], None] | None = None) -> None:
        super().__init__(daemon=True)
        self.passes: list[tuple[int, int]] = []
        self._gate = gate
        self._port = LanePort(device.segment.path, lane)
        self._stopping = threading.Event()
        self._seats: dict[int, SlotRecord] = {}
        self._next: dict[int, int] = {}

    def run(self) -> None:
        record = PassRecord((), ())
        with self._port as port:
            while not self._stopping.is_set() and not port.stop_requested:
                dispatch = port.wait(0.1)
                if dispatch is None:
                    continue
                if dispatch.first:
                    record = port.record(dispatch)
                    self.passes.append((len(record.decode), len(record.entries)))
                    self._bind(record)
                finished = self._sample(record) if dispatch.stage == STAGES - 1 else []
                if self._gate:
                    self._gate(dispatch)
                port.complete(dispatch.sequence, finished)

    def stop(self) -> None:
        self._stopping.set()
        self.join(30)
        assert not self.is_alive()

    def _bind(self, record: PassRecord) -> None:
        for entry in record.entries:
            if entry.bind:
                slot = self._port.slot_record(entry.slot)
                assert slot.request_id == entry.request_id
                self._seats[entry.seat] = slot
                self._next[entry.seat] = 0
            assert entry.start == self._next[entry.seat]
            self._next[entry.seat] = entry.start + entry.rows

    def _sample(self, record: PassRecord) -> list[int]:
        seats = sorted({*record.decode, *(entry.seat for entry in record.entries if entry.last)})
        finished = []
        for seat in seats:
            slot, position = self._seats[seat], self._next[seat]
            over = position + 1 == len(slot.prompt) + slot.limit
            status = TokenStatus.LENGTH if over else TokenStatus.MORE
            self._port.post_token(slot.request_id, position, expected_token(slot.prompt, position), -0.25, status)
            self._next[seat] = position + 1
            if over:
                finished.append(seat)
        return finished
