"""What the device says about itself, at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from enum import Enum
from itertools import chain
from typing import Any

from cuelight.policy import Cost, Tier
from cuelight.regmap import (
    CONTROL,
    COUNTERS,
    GROUP,
    GROUP_STRIDE,
    IDENTITY,
    LANE,
    LANE_STRIDE,
    PAGE,
    PUSH,
    PUSH_STRIDE,
    TIER,
    TIER_STRIDE,
    Control,
    Counters,
    FallCause,
    Group,
    GroupCostChunk,
    GroupOccupancy,
    Identity,
    IdentityCapabilities,
    Lane,
    LaneLaneStatus,
    Page,
    PageReqStatus,
    Push,
    PushMode,
    PushStatus,
)
from cuelight.regmap import Tier as TierRegisters
from cuelight.transports.base import Transport

__all__ = ["CounterValues", "Delivery", "GroupState", "LaneState", "Status", "name_codes", "read_status"]


@dataclass(frozen=True, slots=True)
class Delivery:
    """How a lane's dispatches are delivered; counters have 32 bits, they wrap.

    A device that is not on PCI Express has no PUSH: its lanes are in POLL, and all counters are 0.
    """

    mode: PushMode
    cause: FallCause | None
    """Why the lane fell last; None: it never did."""
    falls: Mapping[FallCause, int]
    """Falls by cause; a cause that there was none of is left out."""
    returns: int
    """Times that the lane came to PUSH."""
    pushed: int
    """Dispatches that the device wrote into the lane's port."""
    late: int
    """Completions that no heartbeat read waited for any more."""


@dataclass(frozen=True, slots=True)
class LaneState:
    """One lane."""

    outstanding: bool
    """A dispatch is outstanding."""
    offered: bool
    """It waits in the poll head."""
    in_pass: bool
    """A pass is alive."""
    resetting: bool
    """The lane's group is being reset."""
    stage: int
    """Stage of the outstanding dispatch."""
    sequence: int
    """Sequence of the next dispatch."""
    passes: int
    """Number of the latest pass."""
    depth: int
    """Dispatches that may be outstanding."""
    busy_ns: int
    """Time in which a dispatch was outstanding, in nanoseconds."""
    delivery: Delivery


@dataclass(frozen=True, slots=True)
class GroupState:
    """One lane group."""

    seats: int
    """Seats it may use."""
    rows: int
    """Row budget of a pass."""
    cost: Cost
    """What a pass may cost."""
    kv_blocks: int
    """All its KV blocks."""
    kv_free: int
    """KV blocks that no request has."""
    queued: int
    """Requests that wait for a seat."""
    seated: int
    """Requests in a seat."""
    decoding: int
    """Seats that decode."""
    parked: int
    """Seats that wait for a credit."""


@dataclass(frozen=True, slots=True)
class CounterValues:
    """The device's counters; 32 bits, they wrap."""

    admitted: int
    retired: int
    rejected: int
    rejects_lost: int
    stage_done_ignored: int
    completions_ignored: int
    pops_ignored: int
    config_ignored: int
    passes: int
    dispatches: int
    rows: int
    trace_lost: int
    decision_cycles: int
    """Sum over dispatches of the cycles from their cause; 64 bits."""
    pauses: int


@dataclass(frozen=True, slots=True)
class Status:
    """The whole device."""

    version: str
    rtl_hash: str
    """First 128 bits of the SHA-256 of the netlist's sources, in hex."""
    boot_nonce: int
    time_ns: int
    """The device's clock."""
    cycles: int
    """Clock cycles since reset."""
    slots: int
    stages: int
    """Stages in use, STAGE_COUNT."""
    active: int
    """Requests in a slot, retired ones included."""
    offered: int | None
    """Slot offered to the next request of page 0."""
    lanes: tuple[LaneState, ...]
    groups: tuple[GroupState, ...]
    tiers: tuple[Tier, ...]
    counters: CounterValues

    def to_dict(self) -> dict[str, Any]:
        """Make it JSON-ready."""
        return asdict(self, dict_factory=name_codes)


def name_codes(items: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Make fields of a dataclass JSON-ready, as `dict_factory` of `asdict`: codes are told by their names."""
    return {name: _name(value) for name, value in items}


def _name(value: Any) -> Any:
    if isinstance(value, dict):
        return {_name(key): each for key, each in value.items()}
    return value.name if isinstance(value, Enum) else value


def read_status(transport: Transport) -> Status:
    """Read the whole device; values of different registers may be some cycles apart."""
    read32, read64 = transport.read32, transport.read64
    version = read32(IDENTITY + Identity.VERSION)
    capabilities = IdentityCapabilities.unpack(read64(IDENTITY + Identity.CAPABILITIES))
    page = PageReqStatus.unpack(read32(PAGE + Page.REQ_STATUS))
    words = [
        read32(IDENTITY + Identity.RTL_HASH + Identity.RTL_HASH_STRIDE * word)
        for word in reversed(range(Identity.RTL_HASH_COUNT))
    ]
    return Status(
        version=f"{version >> 16}.{version & 0xFFFF}",
        rtl_hash="".join(f"{word:08x}" for word in words),
        boot_nonce=read64(IDENTITY + Identity.BOOT_NONCE),
        time_ns=read64(IDENTITY + Identity.TIME_NS),
        cycles=read64(IDENTITY + Identity.CYCLES),
        slots=capabilities.slots,
        stages=read32(CONTROL + Control.STAGE_COUNT),
        active=page.active,
        offered=None if page.slot == 0xFFFF else page.slot,
        lanes=tuple(_read_lane(transport, lane) for lane in range(capabilities.lanes)),
        groups=tuple(_read_group(transport, GROUP + GROUP_STRIDE * group) for group in range(capabilities.lanes)),
        tiers=tuple(_read_tier(transport, TIER + TIER_STRIDE * tier) for tier in range(capabilities.tiers)),
        counters=CounterValues(**_read_counters(transport)),
    )


def _read_lane(transport: Transport, lane: int) -> LaneState:
    base = LANE + LANE_STRIDE * lane
    status = LaneLaneStatus.unpack(transport.read32(base + Lane.LANE_STATUS))
    return LaneState(
        outstanding=bool(status.outstanding),
        offered=bool(status.offered),
        in_pass=bool(status.in_pass),
        resetting=bool(status.resetting),
        stage=status.stage,
        sequence=transport.read32(base + Lane.SEQUENCE),
        passes=transport.read32(base + Lane.PASS),
        depth=transport.read32(base + Lane.DEPTH),
        busy_ns=transport.read64(base + Lane.BUSY_NS),
        delivery=_read_delivery(transport, PUSH + PUSH_STRIDE * lane),
    )


def _read_delivery(transport: Transport, base: int) -> Delivery:
    status = PushStatus.unpack(transport.read32(base + Push.STATUS))
    returns, late = _read_pair(transport, base + Push.RETURNS)
    # Where the lane never fell there is nothing to read.
    firsts = range(0, Push.FALLS_COUNT, 2) if status.cause else range(0)
    pairs = (_read_pair(transport, base + Push.FALLS + Push.FALLS_STRIDE * first) for first in firsts)
    return Delivery(
        mode=PushMode(status.mode),
        cause=FallCause(status.cause) if status.cause else None,
        falls={FallCause(code): count for code, count in enumerate(chain(*pairs)) if code and count},
        returns=returns,
        pushed=transport.read32(base + Push.PUSHED),
        late=late,
    )


def _read_pair(transport: Transport, offset: int) -> tuple[int, int]:
    """Two neighbouring counters of 32 bits in one transaction, as each takes a microsecond on PCI Express."""
    pair = transport.read64(offset)
    return pair & 0xFFFF_FFFF, pair >> 32


def _read_group(transport: Transport, base: int) -> GroupState:
    chunk = GroupCostChunk.unpack(transport.read32(base + Group.COST_CHUNK))
    occupancy = GroupOccupancy.unpack(transport.read64(base + Group.OCCUPANCY))
    return GroupState(
        seats=transport.read32(base + Group.SEATS),
        rows=transport.read32(base + Group.ROWS),
        cost=Cost(
            budget=transport.read32(base + Group.COST),
            decode_row=transport.read32(base + Group.COST_DECODE),
            c0=chunk.c0,
            c1=chunk.c1,
        ),
        kv_blocks=transport.read32(base + Group.KV_BLOCKS),
        kv_free=transport.read32(base + Group.KV_FREE),
        queued=occupancy.queued,
        seated=occupancy.seated,
        decoding=occupancy.decoding,
        parked=occupancy.parked,
    )


def _read_tier(transport: Transport, base: int) -> Tier:
    return Tier(
        min_seats=transport.read32(base + TierRegisters.MIN_SEATS),
        min_rows=transport.read32(base + TierRegisters.MIN_ROWS),
        kv_floor=transport.read32(base + TierRegisters.KV_FLOOR),
        seat_floor=transport.read32(base + TierRegisters.SEAT_FLOOR),
    )


def _read_counters(transport: Transport) -> dict[str, int]:
    return {
        field.name: (transport.read64 if field.name == "decision_cycles" else transport.read32)(
            COUNTERS + getattr(Counters, field.name.upper())
        )
        for field in fields(CounterValues)
    }
