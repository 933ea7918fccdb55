"""Several texts that grow at once: side by side on a terminal, as labelled lines anywhere else."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

__all__ = ["Screen", "open_screen"]

COLOURS = ("cyan", "magenta", "yellow", "green", "blue", "red")
COLUMN_WIDTH = 36
LINE_WIDTH = 96


class Screen(Protocol):
    """Shows texts by index; a context manager."""

    def add(self, index: int, piece: str) -> None:
        """Append to text `index`."""

    def end(self, index: int, note: str) -> None:
        """Say how text `index` ended."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


def open_screen(console: Console, titles: Sequence[str]) -> Screen:
    """Choose by whether `console` is a terminal."""
    return _Panels(console, titles) if console.is_terminal and not console.is_dumb_terminal else _Lines(console, titles)


class _Panels:
    def __init__(self, console: Console, titles: Sequence[str]) -> None:
        self._console = console
        self._titles = titles
        self._texts = [""] * len(titles)
        self._notes = [""] * len(titles)
        self._whole = False
        self._live = Live(self, console=console, refresh_per_second=10, vertical_overflow="visible")

    def add(self, index: int, piece: str) -> None:
        self._texts[index] += piece

    def end(self, index: int, note: str) -> None:
        self._notes[index] = note

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._whole = True
        self._live.stop()

    def __rich__(self) -> RenderableType:
        columns = max(1, min(len(self._titles), self._console.width // COLUMN_WIDTH))
        stacked = -(-len(self._titles) // columns)
        lines = max(3, min(16, (self._console.height - 2) // stacked - 2))
        width = self._console.width // columns - 4
        panels = [self._panel(index, width, lines) for index in range(len(self._titles))]
        rows = []
        for first in range(0, len(panels), columns):
            grid = Table.grid(expand=True, padding=0)
            for _ in range(columns):
                grid.add_column(ratio=1)
            grid.add_row(*panels[first : first + columns])
            rows.append(grid)
        return Group(*rows)

    def _panel(self, index: int, width: int, lines: int) -> Panel:
        done = bool(self._notes[index])
        text = Text(self._texts[index] + ("" if done or not self._texts[index] else "▌"))
        wrapped = text.wrap(self._console, width)
        shown = wrapped if self._whole else wrapped[-lines:]
        colour = COLOURS[index % len(COLOURS)]
        return Panel(
            Text("\n").join(shown),
            title=Text(self._titles[index], style=f"bold {colour}", overflow="ellipsis"),
            subtitle=Text(self._notes[index], style="dim"),
            title_align="left",
            subtitle_align="right",
            border_style="dim" if done else colour,
            height=None if self._whole and len(wrapped) > lines else lines + 2,
        )


class _Lines:
    def __init__(self, console: Console, titles: Sequence[str]) -> None:
        self._console = console
        self._names = [title.split(":")[0] for title in titles]
        self._titles = titles
        self._rests = [""] * len(titles)

    def add(self, index: int, piece: str) -> None:
        self._rests[index] += piece
        while (line := self._next_line(index)) is not None:
            self._print(index, line)

    def end(self, index: int, note: str) -> None:
        if self._rests[index]:
            self._print(index, self._rests[index])
        self._rests[index] = ""
        self._print(index, f"({note})")

    def __enter__(self) -> Self:
        for title in self._titles:
            self._console.print(title, markup=False, highlight=False, soft_wrap=True)
        self._console.print()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for index, rest in enumerate(self._rests):
            if rest:
                self._print(index, rest)

    def _next_line(self, index: int) -> str | None:
        """Take a line off what waits: up to a line break, or up to the last blank before the width is exceeded."""
        rest = self._rests[index]
        end = rest.find("\n", 0, LINE_WIDTH + 1)
        if end < 0:
            if len(rest) <= LINE_WIDTH:
                return None
            end = rest.rfind(" ", 1, LINE_WIDTH + 1)
        if end < 0:
            self._rests[index] = rest[LINE_WIDTH:]
            return rest[:LINE_WIDTH]
        self._rests[index] = rest[end + 1 :]
        return rest[:end]

    def _print(self, index: int, line: str) -> None:
        text = f"{self._names[index]} | {line}".rstrip()
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)
        self._console.file.flush()
