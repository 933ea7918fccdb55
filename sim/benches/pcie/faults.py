"""Between the root complex and the hard block's model: packets go astray here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import cocotb
from cocotb.triggers import Timer
from cocotbext.pcie.core.tlp import CplStatus, Tlp, TlpType
from cocotbext.pcie.core.utils import PcieId

__all__ = ["WELL", "Fate", "Faults", "doubled", "late", "lost", "of_length", "of_tag", "poisoned", "refused"]

_COMPLETIONS = (TlpType.CPL, TlpType.CPL_DATA, TlpType.CPL_LOCKED, TlpType.CPL_LOCKED_DATA)
_WRITES = (TlpType.MEM_WRITE, TlpType.MEM_WRITE_64)
_READS = (TlpType.MEM_READ, TlpType.MEM_READ_64)


@dataclass(frozen=True)
class Fate:
    """How one copy of a completion arrives."""

    delay_ns: int = 0
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the packet that are not as they were sent."""


Fates = Callable[[Any], Sequence[Fate]]
"""The copies that arrive of a completion for the device."""
WELL = (Fate(),)


def lost(completion: Any) -> Sequence[Fate]:
    return ()


def late(delay_ns: int) -> Fates:
    """Beyond what the device, or the hard block, waits for."""
    return lambda completion: (Fate(delay_ns),)


def doubled(completion: Any) -> Sequence[Fate]:
    return (Fate(), Fate(200))


def poisoned(completion: Any) -> Sequence[Fate]:
    return (Fate(changes={"ep": True}),)


def refused(status: CplStatus) -> Fates:
    """Unsupported, or aborted by the completer."""
    return lambda completion: (
        Fate(changes={"fmt_type": TlpType.CPL, "status": status, "length": 0, "byte_count": 4, "data": bytearray()}),
    )


def of_tag(tag: int) -> Fates:
    """With the tag of another request, or of none."""
    return lambda completion: (Fate(changes={"tag": tag}),)


def of_length(dwords: int) -> Fates:
    """With another number of dwords than were asked for, 0 for none."""

    def fates(completion: Any) -> Sequence[Fate]:
        kind = TlpType.CPL_DATA if dwords else TlpType.CPL
        data = (bytearray(completion.data) * (dwords or 1))[: 4 * dwords]
        return (Fate(changes={"fmt_type": kind, "length": dwords, "data": data}),)

    return fates


class Faults:
    """What is wrong at the moment; nothing, at first.

    Parameters
    ----------
    device
        The hard block's model.
    """

    def __init__(self, device: Any) -> None:
        self.completions: Fates = lambda completion: WELL
        """What becomes of completions for the device."""
        self.loses: Callable[[Any], bool] = lambda packet: False
        """Which other packets never arrive: requests of the host, those of the device, its completions."""
        self.gone: dict[range, CplStatus | None] = {}
        """Addresses of memory that takes no write; how a read of it is refused, or None: it is not answered."""
        self.down = False
        """The link carries nothing."""
        self.counts: dict[str, int] = {"completions": 0, "packets": 0}
        """Completions with another fate than to arrive well, and other packets that were lost."""
        self._device = device
        port = device.upstream_port
        self._receive, self._transmit = port.rx_handler, port.send
        port.rx_handler, port.send = self._to_device, self._to_root

    async def _to_device(self, packet: Any) -> None:
        if packet.fmt_type in _COMPLETIONS and packet.requester_id == self._device.function.pcie_id:
            await self._complete(packet)
        elif self._is_lost(packet):
            packet.release_fc()
        else:
            await self._receive(packet)

    async def _to_root(self, packet: Any) -> None:
        area = None
        if packet.fmt_type in (*_READS, *_WRITES):
            area = next((area for area in self.gone if packet.address in area), None)
        if self._is_lost(packet):
            packet.release_fc()
        elif area is not None:
            packet.release_fc()
            if packet.fmt_type in _READS and (status := self.gone[area]) is not None:
                answer = Tlp.create_completion_for_tlp(packet, PcieId(0, 0, 0), False, status)
                cocotb.start_soon(self._arrive(answer, Fate(200)))
        else:
            await self._transmit(packet)

    def _is_lost(self, packet: Any) -> bool:
        gone = self.down or self.loses(packet)
        self.counts["packets"] += gone
        return gone

    async def _complete(self, completion: Any) -> None:
        fates = () if self.down else self.completions(completion)
        self.counts["completions"] += fates != WELL
        if fates == WELL:
            await self._receive(completion)
            return
        completion.release_fc()
        for fate in fates:
            copy = Tlp(completion)
            for name, value in fate.changes.items():
                setattr(copy, name, value)
            cocotb.start_soon(self._arrive(copy, fate))

    async def _arrive(self, completion: Any, fate: Fate) -> None:
        if fate.delay_ns:
            await Timer(fate.delay_ns, unit="ns")
        if not self.down:
            await self._receive(completion)
