"""What may stand on the command line."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cuelight.cli.options import add_model, add_sampling, add_timeout
from cuelight.cli.parser import Parser
from cuelight.cli.values import number, output, tier, top_logprobs, whole
from cuelight.filters import MAX_TOP_LOGPROBS
from cuelight.tiers import TIERS

__all__ = ["build_parser", "parse_arguments"]

DESCRIPTION = """
Text from language models, scheduled stage by stage by hardware. Without a board the device is the twin: the
scheduler's own RTL as native code.
"""

EPILOG = """
Answers and data go to standard output, everything else to standard error.

examples:
  cuelight demo
  cuelight generate "Why is the sky blue?"
  cuelight serve
  cuelight status

exit status:
  0    done
  1    an error, told in one sentence
  2    a wrong call
  130  interrupted

files:
  ~/.cache/cuelight     converted models and built twins; below $XDG_CACHE_HOME where that is set
  ~/.cache/huggingface  models of the hub; $HF_HOME where that is set

`cuelight COMMAND --help` tells more of each command.
"""


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
        parser.error("name a command: generate, demo, serve, status, top, models, trace, doctor, completion")
    return arguments


def build_parser() -> argparse.ArgumentParser:
    """Make the parser; a value's metavar tells what may stand there."""
    parser = Parser(prog="cuelight", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("--version", action="version", version=f"cuelight {version('cuelight')}")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", parser_class=Parser)
    for add in (
        _add_generate,
        _add_demo,
        _add_serve,
        _add_status,
        _add_top,
        _add_models,
        _add_trace,
        _add_doctor,
        _add_completion,
    ):
        add(commands)
    return parser


def _add(commands: Any, name: str, help: str, text: str, epilog: str = "", **settings: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=help, description=textwrap.dedent(text), epilog=textwrap.dedent(epilog), **settings
    )
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
    parser = _add(commands, "generate", "answer prompts", text, epilog, usage="%(prog)s [OPTION ...] [PROMPT ...]")
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
    add_sampling(parser)
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
    add_timeout(parser)
    add_model(parser)


def _add_demo(commands: Any) -> None:
    text = """
    Run three concurrent chats, each joining while the one before is under way. Show their texts as they grow, then
    their figures, and write a picture of the run (demo.png) and its trace (demo.json).
    """
    epilog = """
    examples:
      cuelight demo
      cuelight demo --max-new-tokens 24 --out /tmp/demo
      cuelight demo --model Qwen/Qwen2.5-0.5B-Instruct --dtype bfloat16
      cuelight trace runs/demo.json --summary
    """
    parser = _add(commands, "demo", "three concurrent chats, and a picture of the run", text, epilog)
    parser.add_argument(
        "--max-new-tokens", type=whole(1), default=96, metavar="N", help="tokens of each chat at most (default: 96)"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("runs"), metavar="FOLDER", help="where picture and trace go (default: runs)"
    )
    add_timeout(parser)
    add_model(parser)


def _add_serve(commands: Any) -> None:
    text = """
    Serve a model over HTTP, as clients of OpenAI's API expect it, with latency tiers. It runs until Ctrl-C or SIGTERM;
    answers that are under way may end first. SIGHUP has it read its settings again.

    Without settings it listens to this machine only, asks for no API key, and has the tiers vip, standard and
    best-effort. docs/serving.md tells what the settings file may say.
    """
    epilog = """
    examples:
      cuelight serve
      cuelight serve --model Qwen/Qwen2.5-0.5B-Instruct --port 9000
      cuelight serve --settings cuelight.toml
      curl -s localhost:8000/v1/chat/completions -H 'Content-Type: application/json' -d '{"model":
        "smollm2-135m-instruct", "messages": [{"role": "user", "content": "Hello."}]}'
    """
    parser = _add(commands, "serve", "serve a model over HTTP", text, epilog)
    parser.add_argument("--settings", type=Path, metavar="FILE", help="tiers, API keys and limits, a TOML file")
    parser.add_argument("--host", metavar="ADDRESS", help="where to listen (default: 127.0.0.1)")
    parser.add_argument("--port", type=whole(0), metavar="N", help="TCP port, 0 for any that is free (default: 8000)")
    parser.add_argument(
        "--front-ends",
        type=whole(0),
        metavar="N",
        help="processes that speak HTTP, beside the one that has the device (default: 0, which does both itself)",
    )
    add_model(parser)


def _add_status(commands: Any) -> None:
    text = """
    Show the devices that programs of this user have open: slots, queues, seats, lanes, requests and counters. On a
    terminal the view stays and is drawn anew; elsewhere it is printed once.
    """
    epilog = """
    examples:
      cuelight status
      cuelight status --watch --interval 0.2
      cuelight status --json | jq .status.active
    """
    parser = _add(commands, "status", "a live view of running devices", text, epilog)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--watch", action="store_true", help="keep looking, also while nothing runs; q or Ctrl-C ends it")
    how.add_argument("--once", action="store_true", help="print once")
    parser.add_argument(
        "--interval", type=number(0.1), default=1.0, metavar="S", help="seconds between looks (default: 1)"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--pid", type=whole(1), metavar="PID", help="only the device of this process")
    which.add_argument("--device", metavar="URI", help="open this device, show it once and close it again")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line for each device")


def _add_top(commands: Any) -> None:
    text = """
    Show the devices that programs of this user have open, live: slots, seats and KV blocks, lanes, queues, tokens per
    second and requests. Where `cuelight serve` has the device, latencies by tier too. `cuelight status` tells the same
    as text or JSON, without a terminal.
    """
    epilog = """
    keys: q quits, space holds the view, s sorts requests, tab goes to the next device, + and - change the pace

    examples:
      cuelight top
      cuelight top --interval 0.2
    """
    parser = _add(commands, "top", "a live view in colour of running devices", text, epilog)
    parser.add_argument(
        "--interval", type=number(0.1), default=1.0, metavar="S", help="seconds between looks (default: 1)"
    )
    parser.add_argument("--pid", type=whole(1), metavar="PID", help="only the device of this process")


def _add_models(commands: Any) -> None:
    text = """
    List the models on this machine: those known by name, and those in the caches of cuelight and of the Hugging Face
    hub, with whether this version can run each; or show, fetch or remove one. Only `fetch` asks the network.

    Other commands fetch what they need by themselves. Of a hub's repository safetensors are taken if it has them, else
    its only GGUF file, or the one in Q8_0.

    ways to name a model:
      smollm2-135m-instruct       known to this version
      model.gguf                  a GGUF file
      ./model                     a folder with config.json and safetensors
      Qwen/Qwen2.5-0.5B-Instruct  on the Hugging Face hub
      org/name:Q4_K_M             the hub's GGUF file in this quantization
      org/name:file.gguf          the hub's GGUF file of this name
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
    parser = _add(commands, "models", "list, show, fetch or remove models", text, epilog)
    parser.add_argument("--json", action="store_true", help="print one JSON object a line for each model")
    actions = parser.add_subparsers(title="actions", dest="action", metavar="ACTION", parser_class=Parser)
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
    text = """
    Show a trace that `cuelight demo` or `cuelight generate --trace` wrote: each event as the device recorded it, a
    line for each request, or a picture. The file itself opens in Perfetto, https://ui.perfetto.dev.
    """
    epilog = """
    examples:
      cuelight trace runs/demo.json | less
      cuelight trace runs/demo.json --summary
      cuelight trace runs/demo.json --png again.png
      cuelight trace runs/demo.json --json | jq 'select(.kind == "DISPATCH")'
    """
    parser = _add(commands, "trace", "read a recorded run", text, epilog)
    parser.add_argument("file", type=Path, metavar="FILE", help="the trace")
    parser.add_argument("--png", type=output, metavar="FILE", help="draw the run instead")
    parser.add_argument("--summary", action="store_true", help="print one line a request instead")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")


def _add_doctor(commands: Any) -> None:
    text = """
    Look at what keeps a board and its GPUs from running well: links, power, errors, the way between them,
    clocks and memory. Each finding says what is so, why it matters and what to do. Nothing is changed.

    As root it sees more: all of configuration space, links under load, and whether a GPU can write to the board.
    """
    epilog = """
    exit status:
      0  nothing above a note
      1  a warning or a fault was found, or an error
      2  a wrong call

    examples:
      sudo cuelight doctor
      cuelight doctor --json | jq 'select(.severity == "fault")'
      sudo cuelight doctor --capture machine.txt
      cuelight doctor --tree machine.txt
      sudo lspci -D -xxxx > config.txt; cuelight doctor --tree config.txt
    """
    parser = _add(commands, "doctor", "what keeps a board and its GPUs from running well", text, epilog)
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--tree",
        type=Path,
        metavar="FILE",
        help="look at a captured machine: what --capture or lspci -D -xxxx wrote, or a folder with a copy of /sys and "
        "/proc",
    )
    how.add_argument(
        "--capture",
        type=output,
        metavar="FILE",
        help="only write down what is looked at, for a report; without serial numbers",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object a line for each finding")


def _add_completion(commands: Any) -> None:
    text = """
    Print what makes a shell complete commands, options, tiers, models and files.

    to have it always:
      bash  cuelight completion bash > ~/.local/share/bash-completion/completions/cuelight
      zsh   cuelight completion zsh > _cuelight  (in a folder of $fpath)
      fish  cuelight completion fish > ~/.config/fish/completions/cuelight.fish
    """
    parser = _add(commands, "completion", "completion for a shell", text)
    parser.add_argument("shell", choices=["bash", "zsh", "fish"], metavar="SHELL", help="bash, zsh or fish")
