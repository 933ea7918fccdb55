"""A device as long as it lives: the way to it, and what the host knows about it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from cuelight import regmap
from cuelight.admission import Admission
from cuelight.commands import Commands
from cuelight.errors import DeviceBusy
from cuelight.journal import Journal
from cuelight.lanes.port import next_sequence
from cuelight.policy import Cost, Tier
from cuelight.regmap import CONTROL, GROUP, GROUP_STRIDE, LANE, LANE_STRIDE, TIER, TIER_STRIDE
from cuelight.results import Results
from cuelight.room import Room
from cuelight.segment import Segment
from cuelight.transports.base import Transport
from cuelight.transports.identity import identify

__all__ = ["Link", "Settings"]

_SETTLE_S = 0.1


@dataclass(frozen=True, slots=True)
class Settings:
    """What automatic mode is set up with; see `Device.configure`."""

    stages: int
    kv_blocks: int
    block_positions: int
    seats: int
    rows: int
    depth: int


class Link:
    """Everything that is bound to one device and ends with it.

    Parameters
    ----------
    transport : Transport
        The way to the device.
    journal : Journal
        Takes over what the device loses.
    """

    def __init__(self, transport: Transport, journal: Journal) -> None:
        capabilities = identify(transport)
        self.transport = transport
        self.groups = range(capabilities.lanes)
        self.room = Room(capabilities.slots, capabilities.lanes, journal.promised)
        self.commands = Commands(transport)
        self.results = Results(transport, self.commands, self.room, journal)
        self.admission = Admission(transport.segment, self.commands, self.results, self.room)

    def configure(self, settings: Settings) -> None:
        """Set up automatic mode.

        Raises
        ------
        DeviceBusy
            Requests live.
        """
        with self.commands.lock:
            self.room.check_open()
            for group in self.groups:
                self.room.resize(group, 0)
            self._set("stages", CONTROL + regmap.Control.STAGE_COUNT, settings.stages)
            for group in self.groups:
                base = GROUP + GROUP_STRIDE * group
                # Rows may never be fewer than seats + 16, not even between the two writes.
                shrinks = settings.seats <= self.transport.read32(base + regmap.Group.SEATS)
                budgets = [("seats", regmap.Group.SEATS, settings.seats), ("rows", regmap.Group.ROWS, settings.rows)]
                for name, register, value in budgets if shrinks else reversed(budgets):
                    self._set(name, base + register, value)
                self._set("kv_blocks", base + regmap.Group.KV_BLOCKS, settings.kv_blocks)
                self._set("depth", LANE + LANE_STRIDE * group + regmap.Lane.DEPTH, settings.depth)
            for group in self.groups:
                self.room.resize(group, settings.kv_blocks, settings.block_positions)

    def set_tiers(self, tiers: Sequence[Tier]) -> None:
        """Set what each tier is granted, at any time."""
        with self.commands.lock:
            for number, tier in enumerate(tiers):
                base = TIER + TIER_STRIDE * number
                self._set("min_seats", base + regmap.Tier.MIN_SEATS, tier.min_seats)
                self._set("min_rows", base + regmap.Tier.MIN_ROWS, tier.min_rows)
                self._set("kv_floor", base + regmap.Tier.KV_FLOOR, tier.kv_floor)
                self._set("seat_floor", base + regmap.Tier.SEAT_FLOOR, tier.seat_floor)
            self.room.set_floors([tier.kv_floor for tier in tiers])

    def set_costs(self, costs: Sequence[Cost]) -> None:
        """Set what a pass of each lane group may cost, at any time."""
        with self.commands.lock:
            for group, cost in enumerate(costs):
                base = GROUP + GROUP_STRIDE * group
                chunk = regmap.GroupCostChunk(c0=cost.c0, c1=cost.c1).pack()
                self._set("c0 and c1", base + regmap.Group.COST_CHUNK, chunk)
                self._set("decode_row", base + regmap.Group.COST_DECODE, cost.decode_row)
                self._set("budget", base + regmap.Group.COST, cost.budget)

    def pass_over_sequences(self, seen: Segment) -> None:
        """Begin each lane's sequences beyond those in the segment of the device before this one."""
        for lane in self.groups:
            sequence = seen.expected_sequence(lane)
            for _ in range(regmap.LanePort.RING_COUNT):
                sequence = next_sequence(sequence)
            self._set("sequence", LANE + LANE_STRIDE * lane + regmap.Lane.SEQUENCE, sequence)

    def _set(self, name: str, register: int, value: int) -> None:
        deadline = time.monotonic() + _SETTLE_S
        while True:
            self.transport.write32(register, value)
            if self.transport.read32(register) == value:
                return
            # The pass whose last request has just retired may live for some cycles more.
            if time.monotonic() > deadline:
                raise DeviceBusy(
                    f"The device refused to set {name} (register {register:#06x}) to {value}; "
                    "configure it while no request lives."
                )
