"""A bench: the simulated scheduler in lockstep with the golden model, and what protocol scripts are written with."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import First, RisingEdge, Timer

from cuelight.regmap import CommitKind
from cuelight_rtl.model import NS_PER_CYCLE
from cuelight_rtl.params import Params
from cuelight_sim.coverage.model import Coverage
from cuelight_sim.lockstep import Lockstep
from cuelight_sim.runs import watched
from cuelight_sim.steps import Event

from .bus import Bus, CommitMonitor
from .device import BlockingDevice

__all__ = ["REPORT", "SIZES", "STEPS", "Bench", "bench", "scripts_of"]

SIZES = "BENCH_SIZES"
"""Environment variable with the sizes of the simulated device, as JSON."""
REPORT = "BENCH_REPORT"
"""Environment variable with the file that each bench adds a line to: its name, cycles and coverage, as JSON."""
STEPS = "BENCH_STEPS"
"""Environment variable with how much random benches do."""
_Bench = TypeVar("_Bench", bound="Bench")
_LIMIT = 5000
"""Cycles after which a commit that is waited for has not come."""


class Bench:
    """The device just after reset, its bus, and the golden model that checks every commit and every read.

    Every method returns just after a clock edge, and fails with `Divergence` where the device does what
    docs/device.md does not allow.

    Parameters
    ----------
    dut
        The simulated socket.
    random
        Makes every choice.
    """

    ns_per_cycle = NS_PER_CYCLE

    def __init__(self, dut: Any, random: Random) -> None:
        self.params = Params(**json.loads(os.environ[SIZES]))
        self.random = random
        self.coverage = Coverage()
        self._dut = dut
        self._resets = 0
        self._cycles = 0
        """Cycles up to the latest reset."""
        self._monitor = CommitMonitor(dut, self.ns_per_cycle)
        self.lockstep: Lockstep

    async def begin(self) -> None:
        """Give the device its clock, and reset it."""
        Clock(self._dut.clk, self.ns_per_cycle, unit="ns").start()
        await self.reset()

    async def reset(self) -> None:
        """Reset the device, in whatever state it is."""
        self._stop_watching()
        self._resets += 1
        self.bus = Bus(self._dut, self._monitor, self.random)
        await self.bus.reset(nonce=self._resets)
        self._watch(BlockingDevice(self.bus, self._monitor), self._resets)

    def _stop_watching(self) -> None:
        if self._resets:
            self.lockstep.follow()
            self.coverage.reset()
        self._cycles += self._monitor.cycle
        self._monitor.stop()
        self._monitor = CommitMonitor(self._dut, self.ns_per_cycle)

    def _watch(self, device: BlockingDevice, nonce: int) -> None:
        """Begins in cycle 0, with the reset just released."""
        self._monitor.start()
        self.device = device
        self.lockstep = watched(device, self.params, nonce, self.ns_per_cycle)
        self.golden = self.lockstep.golden
        self.coverage.watch(self.lockstep)
        self._events: list[Event] = []
        self.lockstep.observe = lambda event: self._events.append(event)

    # ------------------------------------------------------------------------------------------- the bus

    async def write(self, offset: int, data: int, strobe: int = 0xFF) -> None:
        """Write the strobed bytes of ``data`` to the eight bytes at ``offset``, a multiple of 8."""
        async with self.bus.lock:
            await self.bus.write(offset, data, strobe)
            self.lockstep.wrote(offset, data, strobe)

    async def write8(self, offset: int, value: int) -> None:
        await self._write_part(offset, value, 1)

    async def write16(self, offset: int, value: int) -> None:
        await self._write_part(offset, value, 2)

    async def write32(self, offset: int, value: int) -> None:
        await self._write_part(offset, value, 4)

    async def write64(self, offset: int, value: int) -> None:
        await self._write_part(offset, value, 8)

    async def _write_part(self, offset: int, value: int, width: int) -> None:
        """Write some bytes, and anything on the lines of the others."""
        shift, strobe = offset % 8, (1 << width) - 1 << offset % 8
        mask = (1 << 8 * width) - 1 << 8 * shift
        junk = self.random.getrandbits(64) & ~mask
        await self.write(offset - shift, (value << 8 * shift & mask) | junk, strobe)

    async def read32(self, offset: int) -> int:
        """Read 32 bits; the answer must fit some moment since the read's acceptance."""
        async with self.bus.lock:
            value = await self.bus.read(offset & ~7) >> 8 * (offset & 4) & 0xFFFF_FFFF
            self.lockstep.did_read(offset, value)
        return value

    async def read64(self, offset: int) -> int:
        """Read 64 bits; each half of the answer must fit some moment since the read's acceptance."""
        async with self.bus.lock:
            value = await self.bus.read(offset)
            self.lockstep.did_read(offset, value & 0xFFFF_FFFF, value >> 32)
        return value

    async def peek64(self, offset: int) -> int:
        """Read 64 bits that may lag behind what has been done, as FIFO heads do while work is going on."""
        async with self.bus.lock:
            value = await self.bus.read(offset)
            self.lockstep.follow()
        return value

    # ------------------------------------------------------------------------------------------- time

    async def run(self, cycles: int) -> None:
        """Let some cycles pass."""
        await self.bus.wait(cycles)
        self.lockstep.follow()

    async def settle(self) -> None:
        """Wait until every write has had its whole effect."""
        async with self.bus.lock:
            await self.bus.until_ready()
            self.lockstep.follow()

    async def rest(self) -> None:
        """Wait until nothing will change without a request; nothing may be left to do then."""
        async with self.bus.lock:
            await self.bus.until_idle()
            self.lockstep.rested()

    async def compare(self) -> None:
        """Rest, and compare every register that can be read."""
        await self.rest()
        async with self.bus.lock:
            for offset in self.lockstep.registers:
                self.lockstep.compare(offset, await self.bus.read(offset))

    # ------------------------------------------------------------------------------------------- commits

    async def expect(self, kind: CommitKind, **fields: int) -> Event:
        """The next commit of this kind, past or to come, must have these fields.

        Commits before it, of whatever kind, are passed over; later calls begin after it.
        """
        deadline = self._monitor.cycle + _LIMIT
        while self._monitor.cycle < deadline:
            self.lockstep.follow()
            while self._events:
                event = self._events.pop(0)
                if event.kind == kind:
                    told = event._asdict()
                    wanted = " ".join(f"{name}={value:#x}" for name, value in fields.items())
                    assert all(told[name] == value for name, value in fields.items()), f"{event}, not {wanted}"
                    return event
            await First(RisingEdge(self._dut.committed), Timer(_LIMIT * NS_PER_CYCLE, unit="ns"))
            await RisingEdge(self._dut.clk)
        raise AssertionError(f"no {kind.name} in {_LIMIT} cycles")

    def seen(self, *kinds: CommitKind) -> list[Event]:
        """Takes away all commits so far, and gives those of these kinds."""
        self.lockstep.follow()
        events, self._events = self._events, []
        return [event for event in events if event.kind in kinds]

    def report(self) -> str:
        """What there was, as JSON."""
        return json.dumps({"cycles": self._cycles + self._monitor.cycle, "coverage": self.coverage.counts})


def scripts_of(kind: type[_Bench]) -> Callable[[Callable[[_Bench], Awaitable[None]]], Any]:
    """Makes a decorator that makes a cocotb test of a protocol script on this kind of bench."""

    def decorate(script: Callable[[_Bench], Awaitable[None]]) -> Any:
        @cocotb.test(timeout_time=10, timeout_unit="ms")
        @functools.wraps(script)
        async def run(dut: Any) -> None:
            bench = kind(dut, Random(f"{cocotb.RANDOM_SEED} {script.__name__}"))
            await bench.begin()
            await script(bench)
            await bench.compare()
            with open(Path(os.environ[REPORT]), "a") as report:
                report.write(bench.report() + "\n")

        return run

    return decorate


bench = scripts_of(Bench)
"""Makes a cocotb test of a protocol script.

The script finds a device just reset, whatever was in it before. When it has ended, the device must come to rest,
and every register must read what the golden model says.
"""
