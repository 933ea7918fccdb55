"""What may stand on the command line."""

from __future__ import annotations

import argparse
import difflib
import shutil
import textwrap
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

from cuelight.cli.values import bias, number, output, setting, tier, top_logprobs, whole
from cuelight.engine.config import DTYPES
from cuelight.engine.weights import DEFAULT_MODEL
from cuelight.filters import MAX_BIASES, MAX_TOP_LOGPROBS
from cuelight.tiers import TIERS

__all__ = ["build_parser", "parse_arguments"]

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
            paragraph
            if "\n  " in paragraph
            else textwrap.fill(" ".join(paragraph.split()), width, initial_indent=indent, subsequent_indent=indent)
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
      cuelight generate --temperature 0.8 --top-p 0.95 --seed 7 "Name a colour." "Name a fruit."
      cuelight generate --top-logprobs 5 --logit-bias " blue=-100" "Why is the sky blue?"
      cuelight generate --model Qwen/Qwen2.5-0.5B-Instruct --dtype bfloat16 "Hello."
      git diff | cuelight generate --system "Summarise this change in one sentence." -
      cuelight generate -f letter.txt -f answer.txt --tier best-effort
      cuelight generate --lines -f questions.txt --json | jq -r .text
    """
    parser = commands.add_parser(
        "generate",
        help="answer prompts",
        usage="%(prog)s [OPTION ...] [PROMPT ...]",
        description=textwrap.dedent(text),
        epilog=textwrap.dedent(epilog),
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
    how.add_argument(
        "--max-new-tokens", type=whole(1), default=256, metavar="N", help="tokens of an answer at most (default: 256)"
    )
    how.add_argument(
        "--tier",
        type=tier,
        default=TIERS["standard"],
        metavar="TIER",
        help=f"latency tier: {', '.join(TIERS)}, or 0 (highest) to 3 (default: standard)",
    )
    _add_sampling(parser)
    shown = parser.add_argument_group("output")
    shown.add_argument(
        "--top-logprobs",
        type=top_logprobs,
        default=0,
        metavar="N",
        help=f"show the N likeliest tokens at each place, {MAX_TOP_LOGPROBS} at most: after each answer as "
        "percentages, with --json as natural logarithms",
    )
    shown.add_argument("--json", action="store_true", help="print one JSON object a line for each prompt")
    shown.add_argument("--trace", type=output, metavar="FILE", help="write the run's trace, which Perfetto opens")
    _add_model(parser)


def _add_sampling(parser: argparse.ArgumentParser) -> None:
    text = """
    The likeliest, unless --temperature is above 0. These work in the order in which they stand here. One that is left
    out is as the model's generation_config.json has it, or else without effect.
    """
    group = parser.add_argument_group("which tokens", " ".join(text.split()))
    group.add_argument(
        "--logit-bias",
        action="append",
        default=[],
        type=bias,
        metavar="TOKEN=BIAS",
        help="add -100 to 100 to a token's logit; TOKEN is its id, or else its text, most often with a space in front; "
        f"may be repeated, for {MAX_BIASES} tokens at most",
    )
    for name, metavar, text in (
        ("repetition_penalty", "R", "divide logits of tokens in prompt or answer, above 1 against repetition: 0.01 to "
        "100 (no effect: 1)"),
        ("frequency_penalty", "F", "subtract so much for each time the answer has a token: -2 to 2 (no effect: 0)"),
        ("presence_penalty", "P", "subtract so much once from tokens that the answer has: -2 to 2 (no effect: 0)"),
    ):  # fmt: skip
        group.add_argument(f"--{name.replace('_', '-')}", type=setting(name), metavar=metavar, help=text)
    group.add_argument(
        "--temperature", type=number(0), metavar="T", help="draw at random, above 1 more evenly; 0 takes the likeliest"
    )
    for name, metavar, text in (
        ("top_k", "K", "draw from the K likeliest only (no effect: 0)"),
        ("top_p", "P", "draw from the likeliest that together reach this probability: 0 to 1 (no effect: 1)"),
        ("min_p", "P", "draw from those at least P times as likely as the likeliest: 0 to 1 (no effect: 0)"),
    ):
        group.add_argument(f"--{name.replace('_', '-')}", type=setting(name), metavar=metavar, help=text)
    group.add_argument(
        "--seed", type=whole(0), metavar="N", help="same seed, same text; 64 bits (default: drawn; --json tells it)"
    )


def _add_demo(commands: Any) -> None:
    text = "Run three concurrent chats; show their figures and draw the run."
    parser = commands.add_parser("demo", help="three concurrent chats, and a picture of the run", description=text)
    parser.add_argument("--max-new-tokens", type=whole(1), default=96, metavar="N", help="for each (default: 96)")
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
    parser.add_argument("--interval", type=number(0.1), default=1.0, metavar="S", help="between looks (default: 1)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--pid", type=whole(1), metavar="PID", help="only the device of this process")
    which.add_argument("--device", metavar="URI", help="open this device, show it once and close it again")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line for each device")


def _add_models(commands: Any) -> None:
    text = """
    List the models on this machine: those known by name, and those in the caches of cuelight and of the Hugging Face
    hub, with whether this version can run each; or show, fetch or remove one. Only `fetch` asks the network.

    Other commands fetch what they need by themselves. A model is:
      a known name             smollm2-135m-instruct
      a file or folder         model.gguf, or a folder with config.json and safetensors
      a name on the hub        Qwen/Qwen2.5-0.5B-Instruct
      a GGUF file on the hub   org/name:Q4_K_M or org/name:file.gguf

    Of a hub's repository safetensors are taken if it has them, else its only GGUF file, or the one in Q8_0.
    """
    epilog = """
    examples:
      cuelight models
      cuelight models show smollm2-135m-instruct
      cuelight models fetch Qwen/Qwen2.5-0.5B-Instruct
      cuelight models remove smollm2-135m-instruct

    environment:
      HF_HOME, HF_HUB_CACHE  where the hub's cache is
      HF_HUB_OFFLINE=1       never ask the hub
      HF_TOKEN               for models that are not public
    """
    parser = commands.add_parser(
        "models",
        help="models: list, show, fetch, remove",
        description=textwrap.dedent(text),
        epilog=textwrap.dedent(epilog),
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object a line for each model")
    actions = parser.add_subparsers(title="actions", dest="action", metavar="ACTION", parser_class=_Parser)
    show = actions.add_parser(
        "show",
        help="tell all about it",
        description="Tell a model's shape, context, stages, KV cache and sampling, and why it can't be run if so.",
    )
    show.add_argument("name", metavar="MODEL", help="a name, a GGUF file, a folder, or what `cuelight models` lists")
    fetch = actions.add_parser("fetch", help="have it in the cache", description="Have a model in the cache.")
    fetch.add_argument("name", metavar="MODEL", help="a name, or a GGUF file to convert")
    remove = actions.add_parser("remove", help="take it out of the cache", description="Take models out of the cache.")
    remove.add_argument("names", nargs="+", metavar="CACHED", help="as `cuelight models` lists them")
    for action in (show, fetch, remove):
        # Not set where it is not given, so that it may also stand before the action.
        action.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")


def _add_trace(commands: Any) -> None:
    text = "Show the events of a trace that `cuelight demo` or `cuelight generate --trace` wrote."
    parser = commands.add_parser("trace", help="read a recorded run", description=text)
    parser.add_argument("file", type=Path, metavar="FILE", help="the trace")
    parser.add_argument("--png", type=output, metavar="FILE", help="draw the run instead")
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
        default=DEFAULT_MODEL,
        metavar="MODEL",
        help=f"a name, a GGUF file, a folder, or org/name on the Hugging Face hub (default: {DEFAULT_MODEL})",
    )
    group.add_argument(
        "--dtype",
        choices=DTYPES,
        default=DTYPES[0],
        metavar="DTYPE",
        help=f"what to compute in: {DTYPES[0]}, or {DTYPES[1]} for half the memory (default: {DTYPES[0]})",
    )
    group.add_argument(
        "--kv-positions",
        type=whole(1),
        default=16_384,
        metavar="N",
        help="tokens that a lane's KV cache holds, all prompts and answers together (default: 16384)",
    )
    group.add_argument("--device", default="twin", metavar="URI", help="the scheduler (default: twin)")
    group.add_argument(
        "--lanes", type=whole(1), default=1, metavar="N", help="CPU lanes, each with a copy of the model (default: 1)"
    )
    group.add_argument(
        "--threads",
        type=whole(0),
        default=0,
        metavar="N",
        help="threads of a lane; 0 shares the processors (default: 0)",
    )
    group.add_argument(
        "--timeout",
        type=number(0.001),
        default=120.0,
        metavar="S",
        help="longest wait for a token, in seconds (default: 120)",
    )
