"""A host's part for a lane that may be pushed, as docs/push.md has it."""

from __future__ import annotations

from cuelight import regmap
from cuelight.regmap import DispatchHead, DispatchPass, PushCommand, PushMode, PushStatus

from .bench import PcieBench
from .ring_lane import RingLane

__all__ = ["LaneHost", "Lost", "sure"]

_NONCE = regmap.IDENTITY + regmap.Identity.BOOT_NONCE
_ONES = 0xFFFF_FFFF
_RIGHT = 3
"""Times in a row that the boot nonce must be right."""
_LOOKS = 20
"""Times that it is looked at, at most: enough for as many answers as a schedule of faults loses."""
_LONGEST = 16
"""Dwords that a read of a poll window may ask for."""
_TRIES = 4


class Lost(Exception):
    """The device is not there, or another one than it was."""


async def sure(it: PcieBench, offset: int, count: int = 1) -> list[int]:
    """Read some dwords; all ones are no answer, but a reason to look whether the device is there."""
    for _ in range(_TRIES):
        words = await it.board.load(offset, count)
        if any(word != _ONES for word in words):
            return words
        await _confirm(it)
    raise Lost


async def _confirm(it: PcieBench) -> None:
    """The device is there, also if more answers get lost meanwhile."""
    right = 0
    for _ in range(_LOOKS):
        words = await it.board.load(_NONCE, 2)
        lost = all(word == _ONES for word in words)
        if not lost and words[0] | words[1] << 32 != it.nonce:
            break
        right = 0 if lost else right + 1
        if right == _RIGHT:
            return
    raise Lost


class LaneHost:
    """Delivers while the lane is polled, hands it over when it is sound, and completes again what may be lost.

    Parameters
    ----------
    ring
        The lane.
    """

    def __init__(self, ring: RingLane) -> None:
        self.ring, self.port, self.it = ring, ring.port, ring.port.it
        self.generation = 0
        self._poll = regmap.POLL + regmap.POLL_STRIDE * self.port.lane

    async def mode(self) -> PushMode:
        return PushMode((await self._status()).mode)

    async def _status(self) -> PushStatus:
        return PushStatus.unpack((await sure(self.it, self.port.at(regmap.Push.STATUS)))[0])

    async def step(self) -> None:
        """Do what the lane's mode asks for."""
        status = await self._status()
        if status.mode == PushMode.POLL:
            await self._complete_again()
            await self._deliver()
            if self.it.random.random() < 0.4:
                self.generation += 1
                await self.port.start(self.generation)
        elif status.mode == PushMode.PROBING:
            await self._deliver()
            if not status.needed:
                await self.it.write32(self.port.at(regmap.Push.COMMAND), PushCommand.PUSH)

    async def _complete_again(self) -> None:
        """Reports that may be lost: only that of the oldest outstanding dispatch counts."""
        offset = regmap.LANE + regmap.LANE_STRIDE * self.port.lane + regmap.Lane.OLDEST
        for _ in range(_TRIES):
            (oldest,) = await sure(self.it, offset)
            if oldest not in self.ring.reported:
                return
            await self.ring.report(oldest)

    async def _deliver(self) -> None:
        """Bring the lane the dispatch that waits, with its record, unless it ends meanwhile."""
        dispatch = await sure(self.it, self._poll + regmap.Poll.DISPATCH, 4)
        head = DispatchHead.unpack(dispatch[1] << 32 | dispatch[0])
        if not head.sequence:
            return
        if head.sequence in self.ring.reported:
            await self.ring.report(head.sequence)
        else:
            entries = DispatchPass.unpack(dispatch[3] << 32 | dispatch[2]).entries
            record = await self._record(12 + 4 * entries)
            if await sure(self.it, self._poll + regmap.Poll.DISPATCH, 2) != dispatch[:2]:
                return
            self.port.deliver(head, dispatch, record)
        await self.it.write32(self._poll + regmap.Poll.POP, head.sequence)

    async def _record(self, count: int) -> list[int]:
        words: list[int] = []
        while len(words) < count:
            offset = self._poll + regmap.Poll.RECORD + 4 * len(words)
            words += await sure(self.it, offset, min(_LONGEST, count - len(words)))
        return words
