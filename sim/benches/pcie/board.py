"""A root complex, and the simulated device behind the hard block's model in one of its slots."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from cocotb.triggers import FallingEdge, RisingEdge
from cocotbext.pcie.core import RootComplex
from cocotbext.pcie.core.tlp import CplStatus, Tlp, TlpAttr, TlpTc, TlpType
from cocotbext.pcie.xilinx.us.tlp import Tlp_us

from .faults import Faults
from .hard_block import BAR_BYTES, HardBlock

__all__ = ["Board", "bytes_of"]

_TIMEOUT_NS = 20_000
_LOAD_TIMEOUT_NS = 4_000
_ALL_ONES = 0xFFFF_FFFF
_COMMAND = 0x04
_BARS = 0x10


class Board:
    """The host's side of the link, down to single packets.

    Parameters
    ----------
    dut
        The simulated `PcieBenchTop`.
    random
        Chooses the pauses of the streams.
    """

    def __init__(self, dut: Any, random: Random) -> None:
        # They tell of every packet.
        logging.getLogger("cocotb.pcie").setLevel(logging.ERROR)
        self._dut = dut
        self._random = random
        self.rc: Any = RootComplex()
        self.device: Any = HardBlock(dut)
        self.faults = Faults(self.device)
        self.rc.make_port().connect(self.device)

    async def until_reset(self) -> None:
        """Wait for the end of the reset with which the hard block begins."""
        await RisingEdge(self._dut.user_reset)
        await FallingEdge(self._dut.user_reset)

    async def enumerate(self) -> None:
        """Do what firmware and operating system do before a driver comes."""
        await self.rc.enumerate()
        self.function = self.rc.find_device(self.device.functions[0].pcie_id)
        await self.function.enable_device()
        await self.function.set_master()

    async def restore(self) -> None:
        """Write the function's settings again, after a reset in which it has forgotten them."""
        for bar in BAR_BYTES:
            await self.function.config_write_dword(_BARS + 4 * bar, self.address(0, bar))
        await self.function.config_write_word(_COMMAND, 0b111)

    def pause(self, share: float) -> None:
        """Pause each stream in so large a share of its cycles, at random."""
        for stream in self.device.streams:
            stream.set_pause_generator(_pauses(self._random, share))

    def address(self, offset: int, bar: int = 0) -> int:
        """Where the host has mapped an offset of a BAR."""
        return int(self.function.bar_addr[bar]) + offset

    def packet(
        self,
        kind: TlpType,
        offset: int,
        count: int,
        first_be: int,
        last_be: int,
        *,
        bar: int = 0,
        tc: int = 0,
        attr: int = 0,
    ) -> Any:
        """A request for some dwords, with the byte enables of the first and of the last one."""
        tlp = Tlp()
        tlp.fmt_type = kind
        tlp.address = self.address(offset, bar)
        tlp.length = count
        tlp.first_be = first_be
        tlp.last_be = last_be
        tlp.requester_id = self.rc.pcie_id
        tlp.tc = TlpTc(tc)
        tlp.attr = TlpAttr(attr)
        return tlp

    def received(
        self, kind: TlpType, offset: int, words: Sequence[int], count: int = 0, *, bar: int = 0, aperture: int = 16
    ) -> Any:
        """A request as the hard block has it when it comes to CQ, for those that no root complex of the model sends.

        It asks for ``count`` dwords, or has ``words``.
        """
        count = count or len(words)
        tlp = Tlp_us(self.packet(kind, offset, count, 0xF, _last(count, None)))
        tlp.completer_id = self.device.functions[0].pcie_id
        tlp.bar_id, tlp.bar_aperture = bar, aperture
        tlp.data = bytearray(b"".join(word.to_bytes(4, "little") for word in words))
        return tlp

    def put_on_cq(self, tlp: Any) -> None:
        """Let a received request be the next but those that wait already."""
        self.device.cq_queue.put_nowait(tlp)

    async def answer(self, tlp: Any) -> Any:
        """The completion of a received request."""
        tlp.tag = await self.rc.alloc_tag()
        self.put_on_cq(tlp)
        completion = await self.rc.recv_cpl(tlp.tag, _TIMEOUT_NS, "ns")
        self.rc.release_tag(tlp.tag)
        assert completion is not None, f"{tlp} was not answered"
        return completion

    async def write(
        self, offset: int, words: Sequence[int], first_be: int = 0xF, last_be: int | None = None, *, bar: int = 0
    ) -> None:
        """Send a posted write; it is over when it was sent."""
        tlp = self.packet(TlpType.MEM_WRITE, offset, len(words), first_be, _last(len(words), last_be), bar=bar)
        tlp.data = bytearray(b"".join(word.to_bytes(4, "little") for word in words))
        await self.rc.perform_posted_operation(tlp)

    async def read(
        self,
        offset: int,
        count: int,
        first_be: int = 0xF,
        last_be: int | None = None,
        *,
        bar: int = 0,
        tc: int = 0,
        attr: int = 0,
    ) -> list[int]:
        """Read some dwords; the completion must be as the specification wants it."""
        tlp = self.packet(TlpType.MEM_READ, offset, count, first_be, _last(count, last_be), bar=bar, tc=tc, attr=attr)
        completion = await self.ask(tlp)
        assert completion.status == CplStatus.SC, completion
        assert completion.fmt_type == TlpType.CPL_DATA
        assert completion.length == count
        data = bytes(completion.data)
        return [int.from_bytes(data[4 * index : 4 * index + 4], "little") for index in range(count)]

    async def load(self, offset: int, count: int = 1) -> list[int]:
        """Read some dwords as a processor does: all ones where no good completion comes."""
        tlp = self.packet(TlpType.MEM_READ, offset, count, 0xF, _last(count, None))
        if not self.faults.down:
            completions = await self.rc.perform_nonposted_operation(tlp, _LOAD_TIMEOUT_NS, "ns")
            if completions and completions[0].status == CplStatus.SC:
                data = bytes(completions[0].data)
                return [int.from_bytes(data[4 * index : 4 * index + 4], "little") for index in range(count)]
        return [_ALL_ONES] * count

    async def ask(self, tlp: Any) -> Any:
        """Send a non-posted request, and give its only completion, which must echo it."""
        completions = await self.rc.perform_nonposted_operation(tlp, _TIMEOUT_NS, "ns")
        assert len(completions) == 1, f"{tlp} had {len(completions)} completions"
        self.check(tlp, completions[0])
        return completions[0]

    def check(self, tlp: Any, completion: Any) -> None:
        """A completion must name its request, and tell which bytes it is about."""
        assert completion.tag == tlp.tag
        assert completion.requester_id == tlp.requester_id
        assert completion.completer_id == self.device.functions[0].pcie_id
        assert completion.tc == tlp.tc
        assert completion.attr == tlp.attr
        assert not completion.ep
        first, total = bytes_of(tlp)
        assert (completion.lower_address, completion.byte_count) == (first & 0x7F, total), completion


def bytes_of(tlp: Any) -> tuple[int, int]:
    """Address of the first byte that a memory read asks for, and how many there are from it to the last one."""
    enables = [tlp.first_be] + [0xF] * (tlp.length - 2) + [tlp.last_be] * (tlp.length > 1)
    wanted = [4 * index + byte for index, enable in enumerate(enables) for byte in range(4) if enable >> byte & 1]
    if not wanted:
        return tlp.address, 1
    return tlp.address + wanted[0], wanted[-1] - wanted[0] + 1


def _last(count: int, last_be: int | None) -> int:
    return (0xF if count > 1 else 0) if last_be is None else last_be


def _pauses(random: Random, share: float) -> Iterator[bool]:
    while True:
        paused = random.random() < share
        yield from [paused] * random.choice((1, 1, 2, 3, 9))
