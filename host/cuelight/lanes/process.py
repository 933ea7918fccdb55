"""A lane process as its parent sees it: started, awaited, stopped, and asked why it died."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO

from cuelight.engine.config import DTYPES
from cuelight.engine.progress import Progress, silent
from cuelight.errors import LaneError, SegmentError
from cuelight.segment import Segment

__all__ = ["LaneProcess"]

_SPINS = "3000"
"""Turns that a lane's threads spin between matrix products before they sleep. Spinning on takes the processor from
whoever they wait for, on a busy machine; sleeping at once costs half of the tokens on an idle one."""
_LOG_LINES = 50


class LaneProcess:
    """A CPU lane in a process of its own; it ends when this process does.

    It loads its code at once, and its weights when `serve` gives it a place.

    Parameters
    ----------
    directory
        Model directory.
    stages
        Stages of the model, as the device was told.
    blocks
        KV blocks of the lane.
    dtype
        One of `DTYPES`.
    threads
        Threads of its matrix products; 0 divides the processors by the device's lanes.
    progress
        Told how far loading is, from another thread.

    Attributes
    ----------
    segment_path : Path or None
        The device's shared segment; None until it has a place.
    lane : int
        Number of the lane.
    served : bool
        It has come so far as to take dispatches.
    """

    program: tuple[str, ...] = ("-m", "cuelight.lanes.cpu")
    """What the interpreter runs; takes the arguments of `cuelight.lanes.cpu`."""

    def __init__(
        self,
        directory: Path,
        *,
        stages: int,
        blocks: int,
        dtype: str = DTYPES[0],
        threads: int = 0,
        progress: Progress = silent,
    ) -> None:
        self.lane = 0
        self.segment_path: Path | None = None
        self.served = False
        self._progress = progress
        self._ready = threading.Event()
        self._told_error = ""
        self._log: collections.deque[str] = collections.deque(maxlen=_LOG_LINES)
        command = [sys.executable, *self.program, "--model", str(directory)]
        command += ["--stages", str(stages), "--blocks", str(blocks)]
        command += ["--dtype", dtype, "--threads", str(threads), "--parent", str(os.getpid())]
        environment = dict(os.environ)
        if "OMP_WAIT_POLICY" not in environment:
            environment.setdefault("GOMP_SPINCOUNT", _SPINS)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            # An interrupt from the terminal is for the parent, which stops its lanes in order.
            start_new_session=True,
        )
        self._readers = [
            threading.Thread(target=read, args=(stream,), name=f"cuelight-lane-{self.pid}-{name}", daemon=True)
            for name, read, stream in (
                ("news", self._read_news, self._process.stdout),
                ("log", self._read_log, self._process.stderr),
            )
        ]
        for reader in self._readers:
            reader.start()

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    @property
    def log(self) -> str:
        """Last lines it wrote to standard error."""
        return "\n".join(self._log)

    def serve(self, segment_path: Path, lane: int) -> None:
        """Be lane `lane` of the device with this segment; called once.

        Raises
        ------
        SegmentError
            There is no segment of this version at `segment_path`.
        """
        self.lane = lane
        self._set_stop(segment_path, False)
        self.segment_path = segment_path
        assert self._process.stdin is not None
        # Where it has died already, its end says why.
        with contextlib.suppress(BrokenPipeError), self._process.stdin as place:
            json.dump({"segment": str(segment_path), "lane": lane}, place)

    def wait_ready(self, timeout_s: float = 300.0) -> None:
        """Wait until it takes dispatches.

        Raises
        ------
        LaneError
            It died, or is not ready after `timeout_s` seconds; in both cases it is gone then.
        """
        ready = self._ready.wait(timeout_s)
        if self._process.poll() is not None or self._told_error:
            raise self.wait(timeout_s=5.0)
        if not ready:
            self.kill()
            raise LaneError(f"Lane {self.lane} was not ready after {timeout_s:g} s; give it longer or a smaller model.")

    def wait(self, timeout_s: float | None = None) -> LaneError:
        """Wait until it has ended, and say why as an error to hand on.

        Raises
        ------
        LaneError
            It still runs after `timeout_s` seconds.
        """
        try:
            status = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired as error:
            raise LaneError(f"Lane {self.lane} has not ended after {timeout_s:g} s; stop it.") from error
        for reader in self._readers:
            reader.join(5.0)
        if self._told_error:
            return LaneError(f"Lane {self.lane} gave up: {self._told_error}")
        last_words = self._log[-1].rstrip(".") if self._log else "it wrote nothing"
        return LaneError(f"Lane {self.lane} ended with status {status} ({last_words}); open the model again.")

    def stop(self, timeout_s: float = 10.0) -> None:
        """Ask it to end, and after `timeout_s` seconds make it; a second call does nothing."""
        if self._process.poll() is None:
            try:
                if self.segment_path is None:
                    raise SegmentError("It has no place.")
                self._set_stop(self.segment_path, True)
            except SegmentError:
                self._process.terminate()
            try:
                self._process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self.kill()
        for reader in self._readers:
            reader.join(5.0)

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()

    def _set_stop(self, segment_path: Path, stop: bool) -> None:
        segment = Segment.open(segment_path)
        segment.set_stop(self.lane, stop)
        segment.close()

    def _read_news(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                try:
                    news = json.loads(line)
                except ValueError:
                    self._log.append(line.rstrip())
                    continue
                if "share" in news:
                    self._progress(news["doing"], news["share"])
                self._told_error = news.get("error", self._told_error)
                if news.get("ready"):
                    self.served = True
                    self._ready.set()
        self._ready.set()

    def _read_log(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                self._log.append(line.rstrip())
