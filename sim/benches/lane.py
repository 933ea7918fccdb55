"""A lane that polls."""

from __future__ import annotations

from dataclasses import dataclass

from cuelight import regmap
from cuelight.regmap import CommitKind, DispatchHead

from .bench import Bench

__all__ = ["Lane"]

_HEAD_READS = 1000


@dataclass
class Lane:
    """Takes dispatches and completes them.

    Parameters
    ----------
    it
        The bench.
    number
        Of the lane.
    """

    it: Bench
    number: int = 0

    def poll(self, register: int) -> int:
        """Offset in BAR0 of a poll register."""
        return regmap.POLL + self.number * regmap.POLL_STRIDE + register

    def entry(self, number: int, register: int = 0) -> int:
        """Offset in BAR0 of a register of a completion entry."""
        base = regmap.COMPLETION + self.number * regmap.COMPLETION_STRIDE
        return base + number % 16 * regmap.COMPLETION_ENTRY_STRIDE + register

    async def look(self) -> DispatchHead:
        """The dispatch that waits, all zero if there is none."""
        return DispatchHead.unpack(await self.it.read64(self.poll(regmap.Poll.DISPATCH)))

    async def head(self) -> DispatchHead:
        """The dispatch that waits, once there is one."""
        for _ in range(_HEAD_READS):
            if (head := await self.look()).sequence:
                return head
        raise AssertionError(f"lane {self.number} gets no dispatch")

    async def pop(self, sequence: int) -> None:
        await self.it.write32(self.poll(regmap.Poll.POP), sequence)

    async def reoffer(self, sequence: int) -> None:
        await self.it.write32(self.poll(regmap.Poll.REOFFER), sequence)

    async def take(self) -> DispatchHead:
        """Take the dispatch that waits, once there is one."""
        head = await self.head()
        await self.pop(head.sequence)
        await self.it.expect(CommitKind.TAKEN, lane=self.number, id=head.sequence)
        return head

    async def finish(self, entry: int, seats: int) -> None:
        """Write the FINISHED words that are not zero."""
        for word in range(regmap.Completion.FINISHED_COUNT):
            if bits := seats >> 32 * word & 0xFFFF_FFFF:
                register = regmap.Completion.FINISHED + word * regmap.Completion.FINISHED_STRIDE
                await self.it.write32(self.entry(entry, register), bits)

    async def done(self, sequence: int, entry: int | None = None) -> None:
        """Write BATCH_DONE, by default in the entry where it belongs."""
        entry = sequence if entry is None else entry
        await self.it.write32(self.entry(entry, regmap.Completion.BATCH_DONE), sequence)

    async def serve(self, finished: int = 0) -> DispatchHead:
        """Take a dispatch and complete it, with these seats finished."""
        head = await self.take()
        await self.finish(head.sequence, finished)
        await self.done(head.sequence)
        await self.it.expect(CommitKind.COMPLETE, lane=self.number, id=head.sequence, stage=head.stage)
        return head

    async def serve_pass(self, finished: int = 0) -> list[int]:
        """Serve dispatches up to the last one of a pass, and report seats as finished in that one.

        Returns
        -------
        list of int
            Stages of the pass.
        """
        stages = []
        while True:
            head = await self.head()
            stages.append(head.stage)
            await self.serve(finished if head.last else 0)
            if head.last:
                await self.it.expect(CommitKind.LOOP_POINT, lane=self.number)
                return stages
