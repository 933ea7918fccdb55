"""A lane's port in the simulated host's memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cocotb
from cocotb.triggers import Timer

from cuelight import regmap
from cuelight.regmap import DispatchHead, DispatchPass, Push, PushMode, PushStatus

from .bench import PcieBench

__all__ = ["LanePort", "pushed"]

_SIZE = 1 << 16
_RECORDS = (regmap.LanePort.RECORD, regmap.LanePort.RECORD_COUNT * regmap.LanePort.RECORD_STRIDE)
"""Where they begin, and their bytes."""
_BITMAP_UNITS = 3
_HEARTBEAT_NS = 700
_LOOKS = 400
"""Times that something is looked for, a heartbeat's time apart in all."""
_SETTINGS = {Push.PERIOD: 1, Push.COMPLETION_TIMEOUT: 4, Push.REST: 12, Push.BEATS: 2}


class LanePort:
    """Counts the lane's heartbeat up as long as it is ``alive``.

    Parameters
    ----------
    it
        The bench.
    lane
        Number of the lane.
    """

    def __init__(self, it: PcieBench, lane: int = 0) -> None:
        self.it, self.lane, self.alive = it, lane, True
        self.settings = dict(_SETTINGS)
        """Registers of PUSH, as `start` writes them."""
        pool: Any = it.board.rc.mem_pool
        self.memory: Any = pool.alloc_region(_SIZE)
        if not self.memory.get_absolute_address(0):
            # No address of a port, and the first one that the model gives away.
            self.memory = pool.alloc_region(_SIZE)
        self.address = int(self.memory.get_absolute_address(0))
        cocotb.start_soon(self._beat())

    async def _beat(self) -> None:
        while True:
            await Timer(_HEARTBEAT_NS, unit="ns")
            if self.alive:
                self._store(regmap.LanePort.HEARTBEAT, [self.words(regmap.LanePort.HEARTBEAT, 1)[0] + 1])

    def _store(self, offset: int, words: Sequence[int]) -> None:
        self.memory[offset : offset + 4 * len(words)] = b"".join(word.to_bytes(4, "little") for word in words)

    @property
    def area(self) -> range:
        """Its bus addresses."""
        return range(self.address, self.address + _SIZE)

    def clear(self) -> None:
        """Forget all dispatches and records."""
        for offset, size in ((regmap.LanePort.RING, 16 * regmap.LanePort.RING_STRIDE), _RECORDS):
            self.memory[offset : offset + size] = bytes(size)

    def words(self, offset: int, count: int) -> list[int]:
        """Dwords of the port."""
        raw = bytes(self.memory[offset : offset + 4 * count])
        return [int.from_bytes(raw[4 * index : 4 * index + 4], "little") for index in range(count)]

    def at(self, register: int) -> int:
        """Offset in BAR0 of a register of PUSH."""
        return regmap.PUSH + regmap.PUSH_STRIDE * self.lane + register

    async def status(self) -> PushStatus:
        return PushStatus.unpack(await self.it.read32(self.at(Push.STATUS)))

    async def reach(self, mode: PushMode) -> PushStatus:
        """Wait until the lane is in this mode."""
        for _ in range(_LOOKS):
            if (status := await self.status()).mode == mode:
                return status
        raise AssertionError(f"lane {self.lane} does not come to {mode.name}")

    async def start(self, generation: int = 1, heartbeat: int | None = None) -> None:
        """Have the lane probed."""
        heartbeat = self.address + regmap.LanePort.HEARTBEAT if heartbeat is None else heartbeat
        await self.it.board.write(self.at(Push.PORT_ADDRESS), [self.address & 0xFFFF_FFFF, self.address >> 32])
        await self.it.board.write(self.at(Push.HEARTBEAT_ADDRESS), [heartbeat & 0xFFFF_FFFF, heartbeat >> 32])
        for register, value in {
            **self.settings,
            Push.GENERATION: generation,
            Push.COMMAND: regmap.PushCommand.PROBE,
        }.items():
            await self.it.write32(self.at(register), value)

    async def push(self, generation: int = 1) -> None:
        """Lead the lane from POLL to PUSH."""
        await self.start(generation)
        await self.hand_over()

    async def count(self, register: int) -> int:
        """A counter of the lane."""
        return await self.it.read32(self.at(register))

    async def hand_over(self) -> None:
        """Ask for PUSH as soon as the lane has shown that it lives."""
        for _ in range(_LOOKS):
            status = await self.status()
            if status.mode == PushMode.PROBING and not status.needed:
                await self.it.write32(self.at(Push.COMMAND), regmap.PushCommand.PUSH)
                return
        raise AssertionError(f"lane {self.lane} does not live")

    def dispatch(self, sequence: int) -> DispatchHead | None:
        """The dispatch in its place of the ring, if it is whole."""
        words = self.words(self._place(sequence), 8)
        head, second = (
            DispatchHead.unpack(words[1] << 32 | words[0]),
            DispatchPass.unpack(words[3] << 32 | words[2]),
        )
        stamps = {second.stamp, words[7] >> 16}
        return head if head.sequence == sequence and stamps == {sequence & 0xFFFF} else None

    def record(self, buffer: int) -> list[int]:
        """Dwords of a record buffer."""
        return self.words(self._buffer(buffer), regmap.Record.SIZE // 4)

    def whole_record(self, head: DispatchHead) -> list[int] | None:
        """Dwords of the record of a pass whose first dispatch is in the ring, once all of it is there."""
        place = self.words(self._place(head.sequence), 4)
        entries = DispatchPass.unpack(place[3] << 32 | place[2]).entries
        words = self.words(self._buffer(head.buffer), 4 * (_BITMAP_UNITS + entries))
        return words if {word >> 16 for word in words[3::4]} == {head.sequence & 0xFFFF} else None

    def deliver(self, head: DispatchHead, dispatch: Sequence[int], record: Sequence[int]) -> None:
        """What the host does where the device does not: the record, then the dispatch."""
        self._store(self._buffer(head.buffer), record)
        self._store(self._place(head.sequence), [*dispatch, 0, 0, 0, (head.sequence & 0xFFFF) << 16])

    def _place(self, sequence: int) -> int:
        return regmap.LanePort.RING + regmap.LanePort.RING_STRIDE * (sequence % regmap.LanePort.RING_COUNT)

    def _buffer(self, number: int) -> int:
        return regmap.LanePort.RECORD + regmap.LanePort.RECORD_STRIDE * number

    async def arrives(self, sequence: int) -> DispatchHead:
        """A dispatch, once it is in the ring."""
        for _ in range(_LOOKS):
            if (head := self.dispatch(sequence)) is not None:
                return head
            await self.it.run(20)
        raise AssertionError(f"dispatch {sequence} does not come")


async def pushed(it: PcieBench, number: int = 0) -> LanePort:
    """A lane in PUSH."""
    port = LanePort(it, number)
    await port.push()
    return port
