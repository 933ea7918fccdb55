"""Registers in a mapping: one instruction each, and a device that goes away is an error and nothing worse."""

from __future__ import annotations

import os
import platform
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cuelight import regmap
from cuelight.errors import DeviceClosed, DeviceLost
from cuelight.native.bar import bar_library
from cuelight.regmap import IDENTITY
from cuelight.transports.bar import BAR_SIZE, Bar

from .board import write_registers

COST = regmap.GROUP + regmap.Group.COST
HANG_S = 300.0
NONCE = IDENTITY + regmap.Identity.BOOT_NONCE


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_registers(tmp_path / "resource0", nonce=7)
    return tmp_path / "resource0"


def open_bar(file: Path) -> Bar:
    descriptor = os.open(file, os.O_RDWR)
    try:
        return Bar(descriptor, name="pcie:a")
    finally:
        os.close(descriptor)


@pytest.fixture
def bar(file: Path) -> Iterator[Bar]:
    bar = open_bar(file)
    yield bar
    bar.close()


def test_registers_are_where_their_offsets_say(bar: Bar, file: Path) -> None:
    bar.write64(regmap.PAGE + regmap.Page.SCHED_CMD, 0x0123_4567_89AB_CDEF)
    bar.write32(regmap.PAGE + regmap.Page.STAGE_DONE, 0xFEDC_BA98)
    written = file.read_bytes()[regmap.Page.SCHED_CMD :]
    assert written[:12] == bytes.fromhex("efcdab8967452301 98badcfe")
    assert bar.read64(NONCE) == 7
    assert bar.read32(regmap.PAGE + regmap.Page.SCHED_CMD + 4) == 0x0123_4567


@pytest.mark.skipif(platform.machine() != "x86_64", reason="instructions of x86-64 are looked for")
@pytest.mark.parametrize(
    ("function", "instructions"),
    [
        ("load32", ["mov (%rdi),%eax", "ret"]),
        ("load64", ["mov (%rdi),%rax", "ret"]),
        ("store32", ["mov %esi,(%rdi)", "ret"]),
        ("store64", ["mov %rsi,(%rdi)", "ret"]),
    ],
)
def test_each_access_is_one_instruction_without_a_fence(function: str, instructions: list[str]) -> None:
    """How often a mapping is written can't be counted from outside; what the processor is told to do can be read."""
    command = ["objdump", "--disassemble=cuelight_bar_" + function, "--no-show-raw-insn", bar_library()._name]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = [" ".join(line.split()) for line in re.findall(r"^\s+[0-9a-f]+:\s+(.*)$", listing, re.MULTILINE)]
    assert [line for line in found if not line.startswith(("endbr64", "nop", "xchg %ax", "cs nopw", "data16"))] == (
        instructions
    )


def test_register_that_reads_all_ones_is_read_as_such_if_the_device_is_there(bar: Bar) -> None:
    bar.write32(COST, 0xFFFF_FFFF)
    bar.write64(COST + 8, 0xFFFF_FFFF_FFFF_FFFF)
    assert (bar.read32(COST), bar.read64(COST + 8)) == (0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF)


def test_device_that_reads_all_ones_stays_lost(bar: Bar, file: Path) -> None:
    before = file.read_bytes()
    with file.open("r+b") as stream:
        stream.write(b"\xff" * BAR_SIZE)
    with pytest.raises(DeviceLost, match="reads all ones, so its link is down"):
        bar.read32(COST)
    # One good read is no recovery, and nothing is written to what it may have become.
    with file.open("r+b") as stream:
        stream.write(before)
    for call in (lambda: bar.read64(NONCE), lambda: bar.write32(COST, 1)):
        with pytest.raises(DeviceLost, match="reads all ones"):
            call()
    assert file.read_bytes() == before


def test_device_that_was_reset_is_another_one(bar: Bar, file: Path) -> None:
    write_registers(file, nonce=8)
    with file.open("r+b") as stream:
        stream.seek(COST)
        stream.write(b"\xff" * 4)
    with pytest.raises(DeviceLost, match="was reset"):
        bar.read32(COST)


@pytest.mark.parametrize("access", ["read32", "read64", "write32", "write64"])
def test_mapping_with_nothing_behind_it_is_an_error(bar: Bar, file: Path, access: str) -> None:
    os.truncate(file, 0)
    arguments = (COST, 1) if access.startswith("write") else (COST,)
    with pytest.raises(DeviceLost, match="was removed"):
        getattr(bar, access)(*arguments)
    write_registers(file)
    with pytest.raises(DeviceLost, match="was removed"):
        bar.read32(COST)


def test_every_thread_survives_a_removal(bar: Bar, file: Path) -> None:
    def hammer() -> None:
        while True:
            bar.read64(NONCE)

    with ThreadPoolExecutor() as pool:
        calls = [pool.submit(hammer) for _ in range(4)]
        os.truncate(file, 0)
        for call in calls:
            with pytest.raises(DeviceLost, match="was removed"):
                call.result(30)


def test_close_in_the_midst_of_accesses_lets_go_of_the_device(bar: Bar, file: Path) -> None:
    def hammer() -> None:
        while True:
            bar.read64(NONCE)
            bar.write32(COST, 1)

    def mapped() -> bool:
        return str(file) in Path("/proc/self/maps").read_text()

    assert mapped()
    with ThreadPoolExecutor() as pool:
        calls = [pool.submit(hammer) for _ in range(4)]
        bar.close()
        assert not mapped()
        for call in calls:
            with pytest.raises(DeviceClosed, match="pcie:a is closed"):
                call.result(30)


LOSE = """
import ctypes, faulthandler, mmap, os, sys
from pathlib import Path
from tests.host.test_bar import open_bar
from cuelight.errors import DeviceLost
file = Path(sys.argv[1])
before, inside = sys.argv[2] == "before", sys.argv[3] == "inside"
if before:
    faulthandler.enable()
bar = open_bar(file)
if sys.argv[2] == "after":
    faulthandler.enable()
with file.open("r+b") as stream:
    other = mmap.mmap(stream.fileno(), 4096)
address = ctypes.addressof(ctypes.c_char.from_buffer(other))
os.truncate(file, 0)
try:
    bar.read32(0)
except DeviceLost:
    print("lost", flush=True)
if not inside:
    ctypes.string_at(address, 1)
"""


def lose(file: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", LOSE, str(file), *arguments]
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, cwd=root, env=environment)


def test_handler_of_others_that_comes_first_hands_a_removal_on(file: Path) -> None:
    result = lose(file, "after", "inside")
    assert (result.returncode, result.stdout) == (0, "lost\n")
    assert "Bus error" in result.stderr


@pytest.mark.parametrize("faulthandler", ["never", "before"])
def test_removal_ends_no_process_but_a_bus_error_of_others_does(file: Path, faulthandler: str) -> None:
    result = lose(file, faulthandler, "outside")
    assert (result.returncode, result.stdout) == (-signal.SIGBUS, "lost\n")
    assert ("Bus error" in result.stderr) == (faulthandler == "before")
