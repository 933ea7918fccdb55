"""A lane for tests: it answers every dispatch at once, with a cache of KV blocks and a very small model."""

from __future__ import annotations

import contextlib
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuelight.device import Device
from cuelight.lanes.port import LanePort
from cuelight.lanes.types import Dispatch, Entry, PassRecord, SlotRecord, TokenStatus

STAGES = 4
"""Prefill, kv-init, one layer stage, output decode."""

_UNWRITTEN = -1


def next_token(sequence: Sequence[int]) -> int:
    """What the model says after `sequence`: it depends on every token of it."""
    return zlib.crc32(np.array(sequence, np.int32).tobytes()) & 0xFFFF


def expected_tokens(prompt: Sequence[int], count: int) -> list[int]:
    """The first tokens the model says after `prompt`."""
    sequence = list(prompt)
    for _ in range(count):
        sequence.append(next_token(sequence))
    return sequence[len(prompt) :]


def unpack(mask: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Bits of a mask, by token."""
    return np.unpackbits(mask.view(np.uint8), bitorder="little")


@dataclass
class _Tenant:
    record: SlotRecord
    next: int
    """Position of the next row to run."""
    token: int = 0
    """The latest token, to be run at `next` once the prompt is done."""


class Died(Exception):
    """Raised by a gate to end its lane as if its process were killed."""


class Answers:
    """Answers the dispatches of a port; `gate`, called before each completion, may hold it up.

    A prompt with a token of `poison` kills it. As a model would, it writes its rows into the KV blocks and sees earlier
    positions only through them.

    Attributes
    ----------
    passes : list of (int, int)
        Decoding seats and entries of each pass.
    chunks : list of Entry
        Entries of all passes.
    """

    def __init__(
        self, port: LanePort, blocks: int, positions: int, gate: Callable[[Dispatch], None] | None = None
    ) -> None:
        self.passes: list[tuple[int, int]] = []
        self.chunks: list[Entry] = []
        self._gate = gate
        self._port = port
        self._stopping = threading.Event()
        self._positions = positions
        self._cache = np.full((blocks, positions), _UNWRITTEN, np.int32)
        self._slots: dict[int, _Tenant] = {}
        self._seats: dict[int, _Tenant] = {}
        self.poison: frozenset[int] = frozenset()

    def serve(self) -> None:
        """Go on until the device closes; a gate or a poison may raise `Died`."""
        records: dict[int, PassRecord] = {}
        with self._port as port:
            while not self._stopping.is_set() and not port.stop_requested:
                dispatch = port.wait(0.1)
                if dispatch is None:
                    continue
                if dispatch.first:
                    record = records[dispatch.buffer] = port.record(dispatch)
                    self.passes.append((len(record.decode), len(record.entries)))
                    self.chunks += record.entries
                    self._prefill(record)
                finished = self._sample(records[dispatch.buffer]) if dispatch.stage == STAGES - 1 else []
                if self._gate:
                    self._gate(dispatch)
                port.complete(dispatch.sequence, finished)

    def _prefill(self, record: PassRecord) -> None:
        for entry in record.entries:
            if entry.bind:
                self._seats[entry.seat] = self._take_in(entry)
            tenant = self._seats[entry.seat]
            assert not entry.rows or entry.start == tenant.next
            self._write(tenant, tenant.record.prompt[entry.start : entry.start + entry.rows])

    def _take_in(self, entry: Entry) -> _Tenant:
        known = self._slots.get(entry.slot)
        if entry.first or known is None or known.record.request_id != entry.request_id:
            record = self._port.slot_record(entry.slot)
            assert record.request_id == entry.request_id
            known = self._slots[entry.slot] = _Tenant(record, entry.start)
        return known

    def _sample(self, record: PassRecord) -> list[int]:
        for seat in record.decode:
            self._write(self._seats[seat], [self._seats[seat].token])
        finished = []
        for seat in sorted({*record.decode, *(entry.seat for entry in record.entries if entry.last)}):
            tenant = self._seats[seat]
            slot, position = tenant.record, tenant.next
            over = position + 1 == len(slot.prompt) + slot.limit
            status = TokenStatus.LENGTH if over else TokenStatus.MORE
            tenant.token = next_token(self._read(tenant))
            if slot.masked:
                allowed = np.flatnonzero(unpack(self._port.mask(slot.request_id & 0xFFFF, position)))
                tenant.token = int(allowed[tenant.token % len(allowed)])
            self._port.post_token(slot.request_id, position, tenant.token, -0.25, status)
            if over:
                finished.append(seat)
        return finished

    def _write(self, tenant: _Tenant, tokens: Iterable[int]) -> None:
        for token in tokens:
            if int(token) in self.poison:
                raise Died
            block = tenant.record.block_table[tenant.next // self._positions]
            self._cache[block, tenant.next % self._positions] = token
            tenant.next += 1

    def _read(self, tenant: _Tenant) -> list[int]:
        rows: list[int] = self._cache[tenant.record.block_table].reshape(-1)[: tenant.next].tolist()
        return rows


class InstantLane(Answers, threading.Thread):
    """`Answers` for a lane of a device, in a thread."""

    def __init__(self, device: Device, lane: int = 0, gate: Callable[[Dispatch], None] | None = None) -> None:
        threading.Thread.__init__(self, daemon=True)
        room = device._room
        Answers.__init__(self, LanePort(device.segment.path, lane), room.blocks(lane), room.block_positions(lane), gate)

    def run(self) -> None:
        with contextlib.suppress(Died):
            self.serve()

    def stop(self) -> None:
        self._stopping.set()
        self.join(30)
        assert not self.is_alive()


@contextmanager
def lane_of(device: Device, lane: int = 0, gate: Callable[[Dispatch], None] | None = None) -> Iterator[InstantLane]:
    """A lane at work."""
    thread = InstantLane(device, lane, gate)
    thread.start()
    try:
        yield thread
    finally:
        thread.stop()
