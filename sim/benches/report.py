"""What `make sim` says at the end: tables of functional and line coverage, and the counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from cuelight_rtl.params import Params
from cuelight_sim.coverage.model import FAMILIES

from .lines import Branch
from .run import Result

__all__ = ["lines_by_size", "missing", "show_bins", "show_lines", "summarize"]

_REACHABLE = [name for family in FAMILIES for name in family.reachable()]
_CONSOLE = Console(width=160)


def missing(reached: Counter[str]) -> list[str]:
    """Bins that a run comes to, and none did."""
    return [name for name in _REACHABLE if not reached[name]]


def show_bins(reached: Counter[str]) -> None:
    """A line for each family of bins, the rarest bin of each, and all that were not reached."""
    table = Table(title="functional coverage", title_justify="left", box=None, pad_edge=False)
    table.add_column("bins of")
    table.add_column("reached", justify="right")
    table.add_column("proven unreachable", justify="right")
    table.add_column("rarest")
    for family in FAMILIES:
        names = family.reachable()
        rarest = min(names, key=lambda name: reached[name])
        table.add_row(
            family.title,
            f"{sum(bool(reached[name]) for name in names)} of {len(names)}",
            f"{len(family.unreachable)}" + "".join(f" ({proof})" for proof in sorted({*family.unreachable.values()})),
            f"{rarest.removeprefix(family.full(''))}: {reached[rarest]:,}",
        )
    _CONSOLE.print()
    _CONSOLE.print(table)
    for name in missing(reached):
        print(f"not one bench came to: {name}")


def lines_by_size(counts: Iterable[tuple[Params, Counter[Branch]]]) -> dict[str, Counter[Branch]]:
    """How often each branch was taken, by the size of the device; the Verilog of each size is another."""
    lines: dict[str, Counter[Branch]] = {}
    for params, taken in counts:
        if taken:
            lines.setdefault(params.tag, Counter()).update(taken)
    return lines


def show_lines(lines: Mapping[str, Counter[Branch]], file: Path) -> None:
    """A line for each room of the RTL, and a file with the branches that were not taken."""
    if not lines:
        return
    title = "branches of the generated Verilog that were taken"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("room")
    for tag in lines:
        table.add_column(tag, justify="right")
    rooms = sorted({_room(branch) for counts in lines.values() for branch in counts})
    for room in rooms:
        table.add_row(room, *(_share(counts, room) for counts in lines.values()))
    _CONSOLE.print()
    _CONSOLE.print(table)
    file.write_text(
        "".join(
            f"{tag}: {branch.module}:{branch.line}: {branch.kind}: {branch.text}\n"
            for tag, counts in lines.items()
            for branch in sorted(branch for branch, count in counts.items() if not count)
        )
    )
    print(f"the others stand in {file}")


def _room(branch: Branch) -> str:
    return branch.module.rpartition(".")[2]


def _share(counts: Counter[Branch], room: str) -> str:
    mine = [count for branch, count in counts.items() if _room(branch) == room]
    return f"{sum(map(bool, mine)):,} of {len(mine):,}" if mine else ""


def summarize(
    results: Sequence[tuple[str, Result]], reached: Counter[str], lines: Mapping[str, Counter[Branch]]
) -> None:
    """Counts of benches, cycles, bins and lines.

    Parameters
    ----------
    results
        Each with the name of its simulator.
    """
    print()
    for simulator in dict.fromkeys(simulator for simulator, _ in results):
        mine = [result for name, result in results if name == simulator]
        passed, failed = sum(len(result.passed) for result in mine), sum(len(result.failed) for result in mine)
        print(f"{simulator}: {passed} benches passed, {failed} failed, {sum(r.cycles for r in mine):,} cycles")
    unreachable = sum(len(family.unreachable) for family in FAMILIES)
    print(
        f"bins: {len(_REACHABLE) - len(missing(reached))} of {len(_REACHABLE)} reached; "
        f"{unreachable} more are unreachable, which `make formal` proves"
    )
    for tag, counts in lines.items():
        taken = sum(map(bool, counts.values()))
        print(f"lines: {taken:,} of {len(counts):,} branches of {tag} taken ({100 * taken / len(counts):.1f} %)")
