"""Slots: who lives in them, which are free, and the retirement FIFO (docs/device.md §3, §4)."""

from __future__ import annotations

import enum
from collections import deque
from dataclasses import dataclass

from cuelight.regmap import RetireReason

__all__ = ["Request", "SlotState", "Slots"]


class SlotState(enum.Enum):
    """Where a slot's request is in its life; RUNNING and WAITING are manual ones."""

    FREE = enum.auto()
    RUNNING = enum.auto()
    WAITING = enum.auto()
    QUEUED = enum.auto()
    SEATED = enum.auto()
    PARKED = enum.auto()
    """Parked without a seat."""
    RETIRED = enum.auto()


@dataclass(slots=True, eq=False)
class Request:
    """An automatic request between admission and retirement."""

    id: int
    group: int
    tier: int
    kv_blocks: int
    began: int
    """Position of its first row."""
    start: int
    """Position of the next row to prefill."""
    rows_left: int
    stepped: bool = False
    seat: int | None = None
    bound: bool = False
    """An entry of a pass has bound the seat."""
    marked: bool = False
    parking: bool = False
    """Seated, and to be parked when no pass is alive."""
    parked: bool = False
    credit: bool = False
    """An early CREDIT is remembered."""

    @property
    def slot(self) -> int:
        return self.id & 0xFFFF

    @property
    def decoding(self) -> bool:
        return self.seat is not None and self.rows_left == 0


class Slots:
    """All slots of the device.

    Parameters
    ----------
    count
        Number of slots.
    """

    def __init__(self, count: int) -> None:
        self.epoch = [0] * count
        self.state = [SlotState.FREE] * count
        self.request: list[Request | None] = [None] * count
        self.free: deque[int] = deque(range(count))
        """Free slots that no page is offered, first freed first."""
        self.retirements: deque[tuple[int, RetireReason]] = deque()
        self.retire_index = 0
        """Index of the retirement FIFO's head."""
        self.active = 0

    def __len__(self) -> int:
        return len(self.state)

    def next_id(self, slot: int) -> int:
        """OFFER_ID of a slot that is offered."""
        return (self.epoch[slot] % 0xFFFF + 1) << 16 | slot

    def holds(self, request_id: int) -> bool:
        """Whether ``request_id`` names a slot's present tenant."""
        slot = request_id & 0xFFFF
        return slot < len(self) and self.state[slot] is not SlotState.FREE and self.epoch[slot] == request_id >> 16

    def admit(self, request_id: int, request: Request | None) -> None:
        """Gives an offered slot to a manual request (None) or to an automatic one."""
        slot = request_id & 0xFFFF
        self.epoch[slot] = request_id >> 16
        self.state[slot] = SlotState.QUEUED if request else SlotState.RUNNING
        self.request[slot] = request
        self.active += 1

    def retire(self, request: Request, reason: RetireReason) -> None:
        self.state[request.slot] = SlotState.RETIRED
        self.request[request.slot] = None
        self.retirements.append((request.id, reason))

    def release(self, slot: int) -> None:
        """Puts a slot at the tail of the free list."""
        self.state[slot] = SlotState.FREE
        self.active -= 1
        self.free.append(slot)

    def pop_retirement(self) -> None:
        request_id, _ = self.retirements.popleft()
        self.retire_index = (self.retire_index + 1) & 0xFFFF_FFFF
        self.release(request_id & 0xFFFF)
