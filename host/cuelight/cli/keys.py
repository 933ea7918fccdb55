"""Single keys from a terminal, without waiting for a line's end."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from types import TracebackType
from typing import Any, Self

__all__ = ["Keys"]


class Keys:
    """A context manager; where standard input is no terminal there are never any keys."""

    def __init__(self) -> None:
        self._descriptor: int | None = None
        self._before: list[Any] = []

    def wait(self, timeout_s: float) -> str:
        """Wait for a key, at most `timeout_s` seconds; empty if there was none."""
        if self._descriptor is None:
            time.sleep(timeout_s)
        elif select.select([self._descriptor], [], [], timeout_s)[0]:
            if key := os.read(self._descriptor, 1):
                return key.decode(errors="replace")
            # The terminal is gone.
            self._descriptor = None
        return ""

    def __enter__(self) -> Self:
        if sys.stdin is not None and sys.stdin.isatty():
            self._descriptor = sys.stdin.fileno()
            self._before = termios.tcgetattr(self._descriptor)
            tty.setcbreak(self._descriptor)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._before and self._descriptor is not None:
            termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._before)
