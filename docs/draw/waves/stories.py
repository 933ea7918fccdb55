"""What the waveforms of the benches in `benches.bench_pictures` say, cycle by cycle."""

from __future__ import annotations

import signal
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from vcdvcd import VCDVCD

from benches.bench_pictures import QUIET
from benches.bus import unpack
from cuelight.regmap import CommitKind
from cuelight_rtl.model import Commit

from .rows import AFTER

__all__ = ["Story", "Write", "read_stories"]

# vcdvcd lets a broken pipe end whoever imports it.
signal.signal(signal.SIGPIPE, signal.SIG_IGN)

_TOP = "bench."
_BUS = ("accepted", "req_write", "req_addr", "req_data", "req_strobe")


class Write(NamedTuple):
    """A write that the device accepted."""

    cycle: int
    offset: int
    data: int
    strobe: int


@dataclass(frozen=True, slots=True)
class Story:
    """What happened between two quiet stretches; cycles count from the first transaction.

    Attributes
    ----------
    length
        Cycles up to the last event.
    commits
        All since the reset; those before the story have negative cycles.
    admitted
        Ids of all requests since the reset, in their order.
    signals
        Values in each cycle and some more, for each signal that was asked for.
    """

    length: int
    writes: list[Write]
    commits: list[Commit]
    admitted: list[int]
    signals: dict[str, list[int]]


def read_stories(file: Path, benches: Sequence[str], signals: Iterable[str]) -> dict[str, Story]:
    """Reads what Verilator wrote while these benches ran one after the other.

    Parameters
    ----------
    file
        A VCD file.
    benches
        Their names in the order in which they ran. Each began with a reset.
    signals
        Paths below the twin's scheduler.

    Raises
    ------
    LookupError
        A signal is not in the file, or there were more resets or fewer than benches.
    """
    paths = [f"twin.scheduler.{signal}" for signal in signals]
    cycles = _Cycles(file, [*_BUS, "rst", "commit_valid", "commit_0", "commit_1", "commit_2", "commit_3", *paths])
    runs = [list(run) for reset, run in groupby(range(cycles.count), lambda cycle: cycles["rst"][cycle]) if not reset]
    runs = [run for run in runs if any(cycles["accepted"][cycle] for cycle in run)]
    if len(runs) != len(benches):
        raise LookupError(f"{file} shows {len(runs)} runs, but {len(benches)} benches ran; run them anew.")
    return {name: _story(cycles, run, paths) for name, run in zip(benches, runs, strict=True)}


class _Cycles:
    """Values of signals at the end of each clock cycle."""

    def __init__(self, file: Path, names: Sequence[str]) -> None:
        wanted = {_TOP + name: name for name in ("clk", *names)}
        found = {path.split("[")[0]: path for path in VCDVCD(str(file), only_sigs=True).signals}
        if missing := [path for path in wanted if path not in found]:
            raise LookupError(f"{file} does not show {missing[0]}.")
        waves = VCDVCD(str(file), signals=[found[path] for path in wanted])
        changes = {name: waves[found[path]].tv for path, name in wanted.items()}
        edges = [time for time, value in changes["clk"] if value == "1"][1:]
        self.count = len(edges)
        self._values = {name: [_value_before(changes[name], edge) for edge in edges] for name in names}

    def __getitem__(self, name: str) -> list[int]:
        return self._values[name]


def _value_before(changes: Sequence[tuple[int, str]], time: int) -> int:
    return int(changes[max(bisect_right(changes, time - 1, key=lambda change: change[0]) - 1, 0)][1], 2)


def _story(cycles: _Cycles, run: Sequence[int], paths: Sequence[str]) -> Story:
    busy = [cycle for cycle in run if cycles["accepted"][cycle] or cycles["commit_valid"][cycle]]
    parts: list[list[int]] = [[]]
    for cycle in busy:
        if parts[-1] and cycle - parts[-1][-1] > QUIET:
            parts.append([])
        parts[-1].append(cycle)
    first, last = parts[-2][0], parts[-2][-1]
    length = last - first + 1
    commits = list(_commits(cycles, range(run[0], last + 1)))
    return Story(
        length,
        [
            Write(cycle - first, *(cycles[name][cycle] for name in ("req_addr", "req_data", "req_strobe")))
            for cycle in busy
            if first <= cycle <= last and cycles["accepted"][cycle] and cycles["req_write"][cycle]
        ],
        [commit._replace(cycle=commit.cycle - first) for commit in commits],
        [commit.id for commit in commits if commit.kind == CommitKind.ADMIT],
        {path.split(".", 2)[2]: cycles[path][first : last + 1 + AFTER] for path in paths},
    )


def _commits(cycles: _Cycles, span: Iterable[int]) -> Iterator[Commit]:
    for cycle in span:
        for port in range(4):
            if cycles["commit_valid"][cycle] >> port & 1:
                yield unpack(cycle, port, cycles[f"commit_{port}"][cycle])
