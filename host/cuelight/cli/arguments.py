"""What may stand on the command line."""

from __future__ import annotations

import argparse
import difflib
import math
import os
import shutil
import textwrap
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

from cuelight.tiers import TIERS

__all__ = ["build_parser", "parse_arguments"]

MODEL = "smollm2-135m-instruct"


WIDTH = 96
"""Columns of help at most."""

DESCRIPTION = """
Text from language models, scheduled stage by stage by hardware. Without a board the device is the twin: the
scheduler's own RTL as native code.
"""

EPILOG = """
Answers and data go to standard output, everything else to standard error.

examples:
  cuelight demo
  cuelight generate "Why is the sky blue?"
  cuelight status

exit status:
  0  done
  1  an error, told in one sentence
  2  a wrong call
  130  interrupted

files:
  ~/.cache/cuelight  models and built twins; $XDG_CACHE_HOME/cuelight where that is set

`cuelight COMMAND --help` tells more of each command.
"""


class _Help(argparse.HelpFormatter):
    """Paragraphs are filled; lines that are indented, or the only one of theirs, stay as they are."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=min(WIDTH, shutil.get_terminal_size().columns) - 2)
        # argparse forgets that commands are indented once more.
        self._action_max_length = 14

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = text.strip("\n").split("\n\n")
        return "\n\n".join(
            paragraph if "\n  " in paragraph else textwrap.fill(" ".join(paragraph.split()), width)
            for paragraph in paragraphs
        )


class _Parser(argparse.ArgumentParser):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"formatter_class": _Help, **settings})

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"cuelight: {message[:1].upper()}{message[1:]}; see {self.prog} --help.\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            near = difflib.get_close_matches(str(value), list(action.choices), 1)
            hint = f"did you mean {near[0]!r}" if near else f"there are {', '.join(action.choices)}"
            raise argparse.ArgumentError(None, f"there is no {str(action.metavar).lower()} {value!r}, {hint}")


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse; `command` of the result names the command.

    Raises
    ------
    SystemExit
        After --help, --version or a wrong call.
    """
    parser = build_parser()
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        parser.error("name a command: generate, demo, status, models, trace, completion")
    return arguments


def build_parser() -> argparse.ArgumentParser:
    """Make the parser; a value's metavar tells what may stand there."""
    parser = _Parser(prog="cuelight", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("--version", action="version", version=f"cuelight {version('cuelight')}")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", parser_class=_Parser)
    for add in (_add_generate, _add_demo, _add_status, _add_models, _add_trace, _add_completion):
        add(commands)
    return parser


def _add_generate(commands: Any) -> None:
    text = """
    Answer prompts. Several run at once through the scheduler and share its passes. Their answers come in the order of
    the prompts, each under a heading; up to six are shown side by side on a terminal.

    Prompts are those of the command line, then those of files. With neither, standard input is one.
    """
    epilog = """
    A prompt that fails does not stop the others; its reason is told, and the exit status is 1.

    examples:
      cuelight generate "Why is the sky blue?"
      cuelight generate --temperature 0.8 --seed 7 "Name a colour." "Name a fruit."
      git diff | cuelight generate --system "Summarise this change in one sentence." -
      cuelight generate -f letter.txt -f answer.txt --tier best-effort
      cuelight generate --lines -f questions.txt --json | jq -r .text
    """
    parser = commands.add_parser(
        "generate", help="answer prompts", description=textwrap.dedent(text), epilog=textwrap.dedent(epilog)
    )
    asked = parser.add_argument_group("what to ask")
    asked.add_argument("prompt", nargs="*", metavar="PROMPT", help="what to ask; - is standard input")
    asked.add_argument(
        "-f",
        "--file",
        action="append",
        default=[],
        metavar="FILE",
        help="a file that is one prompt; - is standard input",
    )
    asked.add_argument("--lines", action="store_true", help="each line of files and standard input is a prompt")
    asked.add_argument("--system", metavar="TEXT", help="a system message to go before each")
    asked.add_argument("--raw", action="store_true", help="continue prompts as they stand, without a chat template")
    how = parser.add_argument_group("how to answer")
    how.add_argument("--max-new-tokens", type=_whole(1), default=256, metavar="N", help="at most (default: 256)")
    how.add_argument(
        "--temperature", type=_number(0), metavar="T", help="0 is greedy (default: the model's own, or else 0)"
    )
    how.add_argument("--seed", type=_whole(0), metavar="N", help="for temperatures above 0; drawn if left out")
    how.add_argument(
        "--tier",
        type=_tier,
        default=TIERS["standard"],
        metavar="TIER",
        help=f"latency tier: {', '.join(TIERS)}, or 0 (highest) to 3 (default: standard)",
    )
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="print one JSON object a line for each prompt")
    output.add_argument("--trace", type=_output, metavar="FILE", help="write the run's trace, which Perfetto opens")
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


def _add_models(commands: Any) -> None:
    text = """
    List the models that are known by name and those in the cache, fetch one, or remove one. Other commands fetch what
    they need by themselves; any of them takes a GGUF file or a safetensors folder in place of a name.
    """
    epilog = """
    examples:
      cuelight models
      cuelight models fetch smollm2-135m-instruct
      cuelight models remove smollm2-135m-instruct
    """
    parser = commands.add_parser(
        "models", help="models: list, fetch, remove", description=textwrap.dedent(text), epilog=textwrap.dedent(epilog)
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object a line for each model")
    actions = parser.add_subparsers(title="actions", dest="action", metavar="ACTION", parser_class=_Parser)
    fetch = actions.add_parser("fetch", help="have it in the cache", description="Have a model in the cache.")
    fetch.add_argument("name", metavar="MODEL", help="a known name or a GGUF file")
    remove = actions.add_parser("remove", help="take it out of the cache", description="Take models out of the cache.")
    remove.add_argument("names", nargs="+", metavar="CACHED", help="as `cuelight models` lists them")


def _add_trace(commands: Any) -> None:
    text = "Show the events of a trace that `cuelight demo` or `cuelight generate --trace` wrote."
    parser = commands.add_parser("trace", help="read a recorded run", description=text)
    parser.add_argument("file", type=Path, metavar="FILE", help="the trace")
    parser.add_argument("--png", type=_output, metavar="FILE", help="draw the run instead")
    parser.add_argument("--summary", action="store_true", help="print one line a request instead")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")


def _add_completion(commands: Any) -> None:
    text = """
    Print what makes a shell complete commands, options, tiers, models and files.

    to have it always:
      bash  cuelight completion bash > ~/.local/share/bash-completion/completions/cuelight
      zsh   cuelight completion zsh > _cuelight  (in a folder of $fpath)
      fish  cuelight completion fish > ~/.config/fish/completions/cuelight.fish
    """
    parser = commands.add_parser("completion", help="completion for a shell", description=textwrap.dedent(text))
    parser.add_argument("shell", choices=["bash", "zsh", "fish"], metavar="SHELL", help="bash, zsh or fish")


def _add_model(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("model and device")
    group.add_argument(
        "--model",
        default=MODEL,
        metavar="MODEL",
        help=f"a name, a GGUF file or a safetensors folder (default: {MODEL})",
    )
    group.add_argument("--device", default="twin", metavar="URI", help="default: twin")
    group.add_argument(
        "--timeout", type=_number(0.001), default=120.0, metavar="S", help="longest wait for a token (default: 120)"
    )


def _tier(text: str) -> int:
    if text in TIERS:
        return TIERS[text]
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no tier, there are {', '.join(TIERS)} and 0 to 3")
    return int(text)


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
