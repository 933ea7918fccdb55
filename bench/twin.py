"""How long the twin keeps a lane waiting: from the store of BATCH_DONE to the next descriptor in the lane's ring.

At depth 1 the completion causes the descriptor; the bar is on that. At depth 2 the next stage of the pass was
dispatched ahead and is there already, so only loop points make the lane wait.

Two lanes with 16 decoding requests each, nine stages a pass, 50 to 150 µs of work a stage (a GPU needs 0.8 ms for all
nine of a model of 1B). Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cuelight import regmap
from cuelight.regmap import PageSchedAttr, PageSchedCmd
from cuelight.transports.twin import TwinTransport
from cuelight_rtl.model import Model

BAR_US = 5.0
LANES = 2
REQUESTS = 16
STAGES = 9
LEAST_WORK_NS, SPREAD_NS = 50_000, 100_000
RATE_CYCLES = 500_000
TIMEOUT_NS = 60_000_000_000
ROOT = Path(__file__).parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--dispatches", type=int, default=40_000, help="how many gaps to measure in each mode")
    count = parser.parse_args().dispatches
    with tempfile.TemporaryDirectory() as folder:
        lanes = compile_lanes(Path(folder))
        print(f"twin: {LANES} lanes, BATCH_DONE store to next descriptor, {count} dispatches a mode")
        for depth in (1, 2):
            for polling in (True, False):
                measure(lanes, depth, polling, count)
    print(f"stepped  {rate() / 1e6:.2f} M cycles/s")


def compile_lanes(folder: Path) -> ctypes.CDLL:
    library = folder / "lanes.so"
    flags = ["-std=c++17", "-O2", "-fPIC", "-shared", f"-I{ROOT / 'kernels' / 'include'}"]
    subprocess.run(["g++", *flags, str(Path(__file__).with_name("twin_lanes.cpp")), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def measure(lanes: ctypes.CDLL, depth: int, polling: bool, count: int) -> None:
    twin = TwinTransport(lanes=LANES, polling=polling)
    try:
        fill(twin, depth)
        gaps_ns, crossed = np.zeros(count, np.int32), np.zeros(count, np.uint8)
        shape = twin.segment.shape
        cycles, start, start_cpu = twin.cycles, time.perf_counter(), time.process_time()
        measured = lanes.play_lanes(
            *(ctypes.c_void_p(twin.segment.header_memory().ctypes.data), shape.ports, shape.port_stride, LANES),
            *(not polling, ctypes.c_int64(LEAST_WORK_NS), SPREAD_NS, ctypes.c_int64(TIMEOUT_NS)),
            *(count, ctypes.c_void_p(gaps_ns.ctypes.data), ctypes.c_void_p(crossed.ctypes.data)),
        )
        wall_s, cpu_s = time.perf_counter() - start, time.process_time() - start_cpu
        if measured < count:
            raise SystemExit(f"only {measured} dispatches in {TIMEOUT_NS / 1e9:g} s: the machine is too busy")
        name = f"depth {depth}, {'polling' if polling else 'woken'}"
        bar = f"   (bar: median {BAR_US:g} µs)" if polling and depth == 1 else ""
        print(f"{name:16} all            {quantiles(gaps_ns)}{bar}")
        print(f"{'':16} within a pass  {quantiles(gaps_ns[crossed == 0])}")
        print(f"{'':16} loop point     {quantiles(gaps_ns[crossed == 1])}")
        each = (twin.cycles - cycles) / count
        print(f"{'':16} {each:.1f} cycles a dispatch, {cpu_s / wall_s:.2f} cores of which the lanes took one")
    finally:
        twin.close()


def fill(twin: TwinTransport, depth: int) -> None:
    """Give each group requests that decode for ever."""
    twin.write32(regmap.CONTROL + regmap.Control.STAGE_COUNT, STAGES)
    for group in range(LANES):
        twin.write32(regmap.LANE + group * regmap.LANE_STRIDE + regmap.Lane.DEPTH, depth)
        twin.write32(regmap.GROUP + group * regmap.GROUP_STRIDE + regmap.Group.KV_BLOCKS, REQUESTS)
        for _ in range(REQUESTS):
            request_id = twin.read32(regmap.PAGE + regmap.Page.OFFER_ID)
            attributes = PageSchedAttr(automatic=1, group=group, kv_blocks=1, rows=8)
            twin.write64(regmap.PAGE + regmap.Page.SCHED_ATTR, attributes.pack())
            twin.write64(regmap.PAGE + regmap.Page.SCHED_CMD, PageSchedCmd(0, request_id).pack())


def rate() -> float:
    """Cycles a second of the stepped RTL, by the thread's own time."""
    model = Model()
    start = time.thread_time()
    model.step(RATE_CYCLES)
    return RATE_CYCLES / (time.thread_time() - start)


def quantiles(gaps_ns: NDArray[np.int32]) -> str:
    median, p99 = np.percentile(gaps_ns, (50, 99)) / 1e3
    return f"median {median:6.2f} µs   p99 {p99:7.2f} µs"


if __name__ == "__main__":
    main()
