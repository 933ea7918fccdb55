"""What may stand on the command line."""

from __future__ import annotations

import argparse
import difflib
import math
import os
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

__all__ = ["parse_arguments"]

MODEL = "smollm2-135m-instruct"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"cuelight: {message[:1].upper()}{message[1:]}; see {self.prog} --help.\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            near = difflib.get_close_matches(str(value), list(action.choices), 1)
            hint = f"did you mean {near[0]!r}" if near else f"there are {', '.join(action.choices)}"
            raise argparse.ArgumentError(None, f"there is no command {value!r}, {hint}")


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse; `command` of the result names the command.

    Raises
    ------
    SystemExit
        After --help, --version or a wrong call.
    """
    parser = _Parser(prog="cuelight", description="Text from language models, scheduled stage by stage by hardware.")
    parser.add_argument("--version", action="version", version=f"cuelight {version('cuelight')}")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", parser_class=_Parser)
    _add_generate(commands)
    _add_demo(commands)
    _add_status(commands)
    _add_trace(commands)
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        parser.error(f"name a command: {', '.join(commands.choices)}")
    return arguments


def _add_generate(commands: Any) -> None:
    parser = commands.add_parser("generate", help="answer one prompt", description="Answer one prompt.")
    parser.add_argument("prompt", nargs="?", help="what to ask; read from standard input if left out")
    parser.add_argument("--system", metavar="TEXT", help="a system message to go before it")
    parser.add_argument("--raw", action="store_true", help="continue the prompt as it stands, without a chat template")
    parser.add_argument("--max-new-tokens", type=_whole(1), default=256, metavar="N", help="at most (default: 256)")
    parser.add_argument("--temperature", type=_number(0), default=0.0, metavar="T", help="0 is greedy (default)")
    parser.add_argument("--seed", type=_whole(0), metavar="N", help="for temperatures above 0; drawn if left out")
    parser.add_argument("--tier", type=_whole(0), default=0, metavar="N", help="latency tier, 0 the highest (default)")
    parser.add_argument("--trace", type=_output, metavar="FILE", help="write the run's trace, which Perfetto opens")
    parser.add_argument("--json", action="store_true", help="print one JSON object when done instead of text")
    _add_model(parser)


def _add_demo(commands: Any) -> None:
    text = "Run three concurrent chats; show their figures and draw the run."
    parser = commands.add_parser("demo", help="three concurrent chats, and a picture of the run", description=text)
    parser.add_argument("--max-new-tokens", type=_whole(1), default=96, metavar="N", help="for each (default: 96)")
    parser.add_argument(
        "--out", type=Path, default=Path("runs"), metavar="FOLDER", help="where picture and trace go (default: runs)"
    )
    _add_model(parser)


def _add_status(commands: Any) -> None:
    text = (
        "Show the devices that programs of this user have open: slots, queues, seats, lanes, requests and counters. "
        "On a terminal the view stays and is drawn anew; elsewhere it is printed once."
    )
    parser = commands.add_parser("status", help="a live view of running devices", description=text)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--watch", action="store_true", help="keep looking, also while nothing runs; q or Ctrl-C ends it")
    how.add_argument("--once", action="store_true", help="print once")
    parser.add_argument("--interval", type=_number(0.1), default=1.0, metavar="S", help="between looks (default: 1)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--pid", type=_whole(1), metavar="PID", help="only the device of this process")
    which.add_argument("--device", metavar="URI", help="open this device, show it once and close it again")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line for each device")


def _add_trace(commands: Any) -> None:
    text = "Show the events of a trace that `cuelight demo` or `cuelight generate --trace` wrote."
    parser = commands.add_parser("trace", help="read a recorded run", description=text)
    parser.add_argument("file", type=Path, help="the trace")
    parser.add_argument("--png", type=_output, metavar="FILE", help="draw the run instead")
    parser.add_argument("--summary", action="store_true", help="print one line a request instead")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model", default=MODEL, metavar="NAME", help=f"a name, a GGUF file or a safetensors folder (default: {MODEL})"
    )
    parser.add_argument("--device", default="twin", metavar="URI", help="default: twin")
    parser.add_argument("--timeout", type=_number(0.001), default=120.0, metavar="S", help="a token (default: 120)")


def _output(text: str) -> Path:
    """Tell now and not after a long run that a file can't be written."""
    path = Path(text)
    if path.is_dir() or not path.parent.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"{text!r} can't be written, name another file")
    return path


def _whole(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(text) if text.lstrip("-").isdecimal() else None
        if value is None or value < least:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least {least}")
        return value

    return parse


def _number(least: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value < math.inf:
            raise argparse.ArgumentTypeError(f"{text!r} is no number of at least {least:g}")
        return value

    return parse
