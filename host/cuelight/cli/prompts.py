"""What `cuelight generate` is asked: words of the command line, files, lines, standard input."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

from cuelight.errors import InvalidArgument

__all__ = ["Prompt", "read_prompts"]

STANDARD_INPUT = "-"
TITLE_WIDTH = 60


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt."""

    source: str
    """Where it is from: its own words, a file, or `file:line`."""
    text: str
    system: str | None
    raw: bool
    """Goes to the model as it stands, without a chat template."""

    @property
    def title(self) -> str:
        """The beginning of its own words, or the end of where it is from."""
        source = self.source
        if len(source) <= TITLE_WIDTH:
            return source
        own = " ".join(self.text.split()) == source
        return f"{source[: TITLE_WIDTH - 1]}…" if own else f"…{source[1 - TITLE_WIDTH :]}"

    @property
    def content(self) -> str | list[dict[str, str]]:
        """For `LLM.generate`."""
        if self.raw:
            return self.text
        system = [] if self.system is None else [{"role": "system", "content": self.system}]
        return [*system, {"role": "user", "content": self.text}]


def read_prompts(arguments: argparse.Namespace) -> list[Prompt]:
    """Prompts of a command line: those that stand there, then those of files, in order.

    Raises
    ------
    InvalidArgument
        One is empty or can't be read, or options exclude each other.
    """
    if arguments.raw and arguments.system is not None:
        raise InvalidArgument("--raw takes the prompt as it stands and so no --system; leave one of them out.")
    files = list(arguments.file)
    if not files and (not arguments.prompt or (arguments.lines and STANDARD_INPUT not in arguments.prompt)):
        files = [STANDARD_INPUT]
    found: list[tuple[str, str]] = []
    for prompt in arguments.prompt:
        found += (
            _read_file(prompt, arguments.lines) if prompt == STANDARD_INPUT else [(" ".join(prompt.split()), prompt)]
        )
    for file in files:
        found += _read_file(file, arguments.lines)
    for source, text in found:
        if not text.strip():
            where = "The prompt" if text == source or not source else f"The prompt from {source}"
            raise InvalidArgument(f"{where} is empty; give one as an argument, in a file or on standard input.")
    return [Prompt(source, text, arguments.system, arguments.raw) for source, text in found]


def _read_file(file: str, by_line: bool) -> list[tuple[str, str]]:
    name = "standard input" if file == STANDARD_INPUT else file
    try:
        if file != STANDARD_INPUT:
            with open(file, encoding="utf-8") as content:
                text = content.read()
        else:
            if sys.stdin.isatty():
                print("cuelight: type the prompt, then Ctrl-D on a line of its own.", file=sys.stderr)
            text = sys.stdin.read()
    except OSError as error:
        raise InvalidArgument(f"{name} can't be read ({error.strerror}); name a text file.") from error
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"{name} is no text in UTF-8 (byte {error.start}); name a text file.") from error
    if not by_line:
        # The end of a file's last line is the editor's, not the writer's.
        return [(name, text.removesuffix("\n"))]
    lines = [(f"{name}:{number}", line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        raise InvalidArgument(f"{name} has no line with a prompt; write one a line.")
    return lines
