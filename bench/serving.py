"""A daemon in a process of its own for benches, who may ask it how it is by lines of JSON."""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cuelight import LLM
from cuelight.daemon.core import DeviceCore
from cuelight.daemon.front_ends import FrontEnds
from cuelight.daemon.logs import write_json_lines
from cuelight.daemon.serve import Daemon, listen
from cuelight.daemon.settings import load_settings
from cuelight.device import Device
from cuelight.engine.config import block_positions, blocks_for, load_config
from cuelight.engine.progress import Progress
from cuelight.engine.weights import DEFAULT_MODEL, resolve
from cuelight.lanes.crew import Crew
from cuelight.lanes.process import LaneProcess
from cuelight.llm import DEFAULT_KV_POSITIONS
from saying_lane import STAGES, SayingLane

__all__ = ["Serving", "Told"]

START_S = 300.0
TIMEOUT_S = 60.0


class Serving:
    """The daemon's process, as a bench sees it; a context manager that ends it.

    Parameters
    ----------
    lane : str
        "saying": `saying_lane`, "cpu": the real one.
    model : str
        What is served.
    front_ends : int
        Processes that speak HTTP; 0: it does so itself.

    Attributes
    ----------
    host, port : str, int
        Where it listens.
    """

    def __init__(self, lane: str, model: str = DEFAULT_MODEL, front_ends: int = 0) -> None:
        command = [sys.executable, str(Path(__file__).resolve()), "--lane", lane, "--model", model]
        command += ["--front-ends", str(front_ends)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._guard = threading.Timer(START_S, self._process.kill)
        self._guard.start()
        where = self._hear()
        self._guard.cancel()
        self.host: str = where["host"]
        self.port: int = where["port"]

    def ask(self, what: str, *arguments: object) -> Any:
        """What one of the methods of `Told` returns."""
        assert self._process.stdin
        print(json.dumps([what, *arguments]), file=self._process.stdin, flush=True)
        return self._hear()

    def _hear(self) -> Any:
        assert self._process.stdout
        if not (line := self._process.stdout.readline()):
            raise SystemExit(f"The daemon has ended with status {self._process.wait(TIMEOUT_S)}.")
        return json.loads(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        try:
            self._process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()


class Told:
    """What the process can be asked.

    Parameters
    ----------
    llm : LLM
        The model at work in it.
    daemon : Daemon
        What serves it.
    """

    def __init__(self, llm: LLM, daemon: Daemon) -> None:
        self._llm = llm
        self._daemon = daemon
        self._pauses_s = [(0.0, 0.0)]
        self._collecting = (0.0, 0.0)

    def watch_collector(self) -> None:
        """Time the garbage collector from now on."""
        gc.callbacks.append(self._time_collection)

    def longest_pause(self) -> tuple[float, float]:
        """Of the garbage collector since the last call, in seconds.

        The longest by its thread's processor time, and from beginning to end, with waits for a core in it.
        """
        pauses_s, self._pauses_s = self._pauses_s, [(0.0, 0.0)]
        own, whole = zip(*pauses_s, strict=True)
        return max(own), max(whole)

    def driver_latency(self, prompts: list[list[int]], new_tokens: int) -> list[float]:
        """How long the driver takes without the daemon for each of these, in seconds; greedy."""
        took_s = []
        for prompt in prompts:
            begun = time.perf_counter()
            self._llm.submit(prompt, new_tokens, temperature=0.0).wait(TIMEOUT_S)
            took_s.append(time.perf_counter() - begun)
        return took_s

    def lane_pids(self) -> list[int]:
        """Process ids of lanes."""
        return [lane.pid for lane in self._llm.lanes]

    def processor_times(self) -> dict[str, float]:
        """Seconds of processor time that each kind of process has had."""
        return {
            "core": _processor_s([os.getpid()]),
            "front ends": _processor_s(self._front_end_pids()),
            "lane": _processor_s(self.lane_pids()),
        }

    def holdings(self) -> dict[str, float]:
        """What requests hold, and what the process has, together with those of front ends."""
        device = self._llm.device
        status = device.status()
        processes = [Path(f"/proc/{pid}") for pid in (os.getpid(), *self._front_end_pids())]
        pages = sum(int((process / "statm").read_text().split()[1]) for process in processes)
        return {
            "requests": len(device.requests),
            "slots": status.active,
            "seats": sum(group.seated for group in status.groups),
            "KV blocks": sum(group.kv_blocks - group.kv_free for group in status.groups),
            "file descriptors": sum(len(os.listdir(process / "fd")) for process in processes),
            "threads": sum(len(os.listdir(process / "task")) for process in processes),
            "MiB": pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20),
        }

    def _front_end_pids(self) -> list[int]:
        front = self._daemon.front
        return [link.pid for link in tuple(front.links.values())] if isinstance(front, FrontEnds) else []

    def _time_collection(self, phase: str, _: object) -> None:
        if phase == "start":
            self._collecting = time.thread_time(), time.perf_counter()
        else:
            own, whole = self._collecting
            self._pauses_s.append((time.thread_time() - own, time.perf_counter() - whole))


def _processor_s(pids: Sequence[int]) -> float:
    times = [Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13] for pid in pids]
    return sum(int(ticks) for pair in times for ticks in pair) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Be the process."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--lane", choices=("saying", "cpu"), required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--front-ends", type=int, required=True)
    options = parser.parse_args()
    settings = load_settings(None, port=0, front_ends=options.front_ends)
    with contextlib.ExitStack() as stack:
        llm = stack.enter_context(open_lane(options.lane, options.model))
        listeners = [stack.enter_context(listener) for listener in listen(settings.server)]
        host, port = listeners[0].getsockname()[:2]
        daemon = Daemon(DeviceCore(llm, options.model, lambda: settings), listeners)
        told = Told(llm, daemon)
        told.watch_collector()
        # As `cuelight serve` logs, but only what is wrong in this process is to be read.
        shown = stack.enter_context(open(os.dup(2), "w", buffering=1))
        nothing = stack.enter_context(open(os.devnull, "w"))
        os.dup2(nothing.fileno(), 2)
        write_json_lines(nothing, settings.log.level)
        write_json_lines(shown, settings.log.level).setLevel("WARNING")
        print(json.dumps({"host": host, "port": port}), flush=True)
        threading.Thread(target=_answer, args=(told, daemon), daemon=True).start()
        daemon.run()


@contextlib.contextmanager
def open_lane(lane: str, model: str) -> Iterator[LLM]:
    """What `cuelight serve` opens, or the same with a lane that says the same to everybody."""
    if lane == "cpu":
        with LLM.open(model, kv_positions=DEFAULT_KV_POSITIONS, spare=True) as llm:
            yield llm
        return
    directory = resolve(model)
    config = load_config(directory)
    blocks = blocks_for(config, DEFAULT_KV_POSITIONS)
    context = min(config.context, DEFAULT_KV_POSITIONS)

    def prepare(_: Progress) -> LaneProcess:
        return SayingLane(directory, stages=STAGES, blocks=blocks)

    with Device.open(
        lanes=1, context=context, blocks=blocks_for(config, context), vocabulary=config.vocabulary
    ) as device:
        device.configure(stages=STAGES, kv_blocks=blocks, block_positions=block_positions(config))
        crew = Crew(device, prepare)
        try:
            crew.start(1)
            with LLM(directory, device, crew) as llm:
                yield llm
        finally:
            crew.close()


def _answer(told: Told, daemon: Daemon) -> None:
    for line in sys.stdin:
        what, *arguments = json.loads(line)
        print(json.dumps(getattr(told, what)(*arguments)), flush=True)
    daemon.stop()


if __name__ == "__main__":
    main()
