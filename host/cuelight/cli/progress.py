"""How far opening a device and loading a model are, on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

__all__ = ["show_progress"]


@contextmanager
def show_progress() -> Iterator[Callable[[str, float], None]]:
    """Yield what to call with a step's name and the share of it that is done, 0 to 1.

    Bars on a terminal, gone at the end; else one line a step.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(console).tell
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        yield _Bars(bars).tell


class _Bars:
    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def tell(self, what: str, share: float) -> None:
        if what not in self._tasks:
            for task in self._tasks.values():
                self._bars.update(task, visible=False)
            self._tasks[what] = self._bars.add_task(what, total=None)
        # A step that can't say how far it is pulses.
        self._bars.update(self._tasks[what], completed=share, total=1 if share else None)


class _Lines:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._told: set[str] = set()

    def tell(self, what: str, share: float) -> None:
        if what not in self._told:
            self._told.add(what)
            self._console.print(f"{what} …", markup=False, highlight=False, soft_wrap=True)
