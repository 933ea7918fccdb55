"""What reaches the scheduler's bus."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import cocotb
from cocotb.triggers import RisingEdge

from ..bus import CommitMonitor

__all__ = ["Spy", "Transaction"]


class Transaction(NamedTuple):
    """Eight bytes at an offset that is a multiple of 8; ``data`` of a read is what was answered."""

    offset: int
    write: bool
    data: int
    strobe: int
    cycle: int


class Spy:
    """Tells of each transaction that was accepted, and of each read that was answered, both in the cycle after.

    Another master's write may be accepted between a read and its answer.

    Parameters
    ----------
    dut
        The simulated `PcieBenchTop`.
    monitor
        Tells the cycle.
    accepted, answered
        Are told of the transaction.
    """

    def __init__(
        self,
        dut: Any,
        monitor: CommitMonitor,
        *,
        accepted: Callable[[Transaction], None],
        answered: Callable[[Transaction], None],
    ) -> None:
        self.transactions: list[Transaction] = []
        """All writes that were accepted and reads that were answered; whoever has looked at them removes them."""
        self._dut = dut
        self._monitor = monitor
        self._accepted = accepted
        self._answered = answered
        self._asked: list[Transaction] = []
        self._tasks = [cocotb.start_soon(self._watch_requests()), cocotb.start_soon(self._watch_answers())]

    def stop(self) -> None:
        """See nothing more."""
        for task in self._tasks:
            task.cancel()

    async def _watch_requests(self) -> None:
        dut = self._dut
        while True:
            await RisingEdge(dut.accepted)
            seen = Transaction(
                int(dut.bus_address.value),
                bool(dut.bus_write.value),
                int(dut.bus_data.value.resolve("random")),
                int(dut.bus_strobe.value.resolve("random")),
                self._monitor.cycle,
            )
            if not seen.write:
                self._asked.append(seen)
            await RisingEdge(dut.clk)
            self._accepted(seen)
            if seen.write:
                self.transactions.append(seen)

    async def _watch_answers(self) -> None:
        dut = self._dut
        while True:
            await RisingEdge(dut.answered)
            # Memory that was never read is unknown to Icarus; what it shows must not matter.
            answer = int(dut.bus_answer.value.resolve("random"))
            await RisingEdge(dut.clk)
            seen = self._asked.pop(0)._replace(data=answer)
            self._answered(seen)
            self.transactions.append(seen)
