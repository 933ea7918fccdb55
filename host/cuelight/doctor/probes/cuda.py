"""A try of one GPU: python -m cuelight.doctor.probes.cuda ADDRESS prints one line of JSON.

Its memory is tried only while no other program has any of it. Boards' registers are mapped for the GPU and unmapped
again; nothing is written there.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cuelight.doctor.probes.link import DEVICES, SAMPLES, links_above, read_links
from cuelight.pci.ids import DEVICE_ID, VENDOR_ID

COPIED_BYTES = 256 << 20
GRAIN_BYTES = 64 << 20
USED_BYTES = 1 << 30
"""What a GPU has in use at most if only its driver and this process use it."""


class NotDone(Exception):
    """The driver refused; holds its name for the reason."""


def main(address: str) -> int:
    """Try the GPU at a PCI address; the exit status is 1 where it can't be tried."""
    try:
        from cuda.bindings import driver
    except ImportError:
        return 1
    try:
        print(json.dumps(_try(driver, address)))
    except NotDone as reason:
        print(json.dumps({"error": str(reason)}))
    return 0


def _try(driver: Any, address: str) -> dict[str, Any]:
    _ask(driver, driver.cuInit(0))
    device = _ask(driver, driver.cuDeviceGetByPCIBusId(address.encode()))
    _ask(driver, driver.cuCtxSetCurrent(_ask(driver, driver.cuDevicePrimaryCtxRetain(device))))
    try:
        free, total = _ask(driver, driver.cuMemGetInfo())
        alone = total - free < USED_BYTES
        return {
            "free": free,
            "total": total,
            "largest": _largest(driver, free) if alone else None,
            "link": _sample(driver, links_above(address)),
            "registers": {board.name: _register(driver, board) for board in _boards()},
        }
    finally:
        driver.cuDevicePrimaryCtxRelease(device)


def _ask(driver: Any, answer: tuple[Any, ...]) -> Any:
    status, *values = answer
    if status != driver.CUresult.CUDA_SUCCESS:
        raise NotDone(status.name)
    return values[0] if len(values) == 1 else values


def _largest(driver: Any, free: int) -> int:
    """Bytes of the largest block that can be had, to within `GRAIN_BYTES`."""
    fits, fails = 0, free // GRAIN_BYTES + 1
    while fails - fits > 1:
        middle = (fits + fails) // 2
        status, block = driver.cuMemAlloc(middle * GRAIN_BYTES)
        if status == driver.CUresult.CUDA_SUCCESS:
            driver.cuMemFree(block)
            fits = middle
        else:
            fails = middle
    return fits * GRAIN_BYTES


def _sample(driver: Any, links: list[str]) -> dict[str, Any]:
    """Copy from host to GPU, and look at links at the same time."""
    host = _ask(driver, driver.cuMemHostAlloc(COPIED_BYTES, 0))
    device = _ask(driver, driver.cuMemAlloc(COPIED_BYTES))
    try:
        lines = []
        # It may take a moment until the link leaves its idle speed.
        for _ in range(SAMPLES):
            _ask(driver, driver.cuMemcpyHtoD(device, host, COPIED_BYTES))
        begin = time.perf_counter()
        for _ in range(SAMPLES):
            _ask(driver, driver.cuMemcpyHtoDAsync(device, host, COPIED_BYTES, 0))
            lines += read_links(links).splitlines()
            _ask(driver, driver.cuCtxSynchronize())
        seconds = time.perf_counter() - begin
    finally:
        driver.cuMemFree(device)
        driver.cuMemFreeHost(host)
    return {"samples": lines, "gb_s": round(SAMPLES * COPIED_BYTES / seconds / 1e9, 2)}


def _boards() -> Iterator[Path]:
    """Boards whose registers this user may read and write."""
    for folder in sorted(DEVICES.iterdir()):
        ids = [int((folder / name).read_text(), 16) for name in ("vendor", "device")]
        if ids == [VENDOR_ID, DEVICE_ID] and os.access(folder / "resource0", os.R_OK | os.W_OK):
            yield folder


def _register(driver: Any, board: Path) -> str:
    """Map a board's registers for the GPU as IOMEMORY; the driver's name for what came of it."""
    try:
        with _mapped(board / "resource0") as (address, size):
            flags = driver.CU_MEMHOSTREGISTER_IOMEMORY | driver.CU_MEMHOSTREGISTER_DEVICEMAP
            (status,) = driver.cuMemHostRegister(address, size, flags)
            if status == driver.CUresult.CUDA_SUCCESS:
                driver.cuMemHostUnregister(address)
            return str(status.name)
    except OSError as error:
        return str(error.strerror)


@contextmanager
def _mapped(path: Path) -> Iterator[tuple[int, int]]:
    file = os.open(path, os.O_RDWR)
    try:
        size = os.fstat(file).st_size
        memory = mmap.mmap(file, size)
    finally:
        os.close(file)
    with memory:
        first = ctypes.c_char.from_buffer(memory)
        try:
            yield ctypes.addressof(first), size
        finally:
            del first


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
