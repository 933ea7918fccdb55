"""How the command line is parsed, and its help laid out."""

from __future__ import annotations

import argparse
import difflib
import shutil
import textwrap
from typing import Any, NoReturn

__all__ = ["Parser"]

WIDTH = 96
"""Columns of help at most."""


class Help(argparse.HelpFormatter):
    """Paragraphs are filled; lines that are indented, or the only one of theirs, stay as they are."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=min(WIDTH, shutil.get_terminal_size().columns) - 2)
        # argparse forgets that commands are indented once more.
        self._action_max_length = 14

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = text.strip("\n").split("\n\n")
        return "\n\n".join(
            paragraph
            if "\n  " in paragraph
            else textwrap.fill(" ".join(paragraph.split()), width, initial_indent=indent, subsequent_indent=indent)
            for paragraph in paragraphs
        )


class Parser(argparse.ArgumentParser):
    """Ends a wrong call with a sentence."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"formatter_class": Help, **settings})
        self._positionals.title = "arguments"

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"cuelight: {message[:1].upper()}{message[1:]}; see {self.prog} --help.\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            near = difflib.get_close_matches(str(value), list(action.choices), 1)
            hint = f"did you mean {near[0]!r}" if near else f"there are {', '.join(action.choices)}"
            raise argparse.ArgumentError(None, f"there is no {str(action.metavar).lower()} {value!r}, {hint}")
