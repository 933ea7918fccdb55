"""`cuelight serve`."""

from __future__ import annotations

import argparse
import contextlib
import sys

from cuelight.cli.opening import open_llm
from cuelight.cli.progress import show_progress
from cuelight.daemon.core import DeviceCore
from cuelight.daemon.logs import write_json_lines
from cuelight.daemon.serve import Daemon, listen
from cuelight.daemon.settings import Settings, load_settings

__all__ = ["run_serve"]


def run_serve(arguments: argparse.Namespace) -> None:
    """Serve a model until asked to end."""

    def load() -> Settings:
        said = {name: getattr(arguments, name) for name in ("host", "port", "front_ends")}
        return load_settings(arguments.settings, **said)

    # What can't be is told before a model is loaded.
    with contextlib.ExitStack() as undo:
        listeners = [undo.enter_context(listener) for listener in listen(load().server)]
        with show_progress() as progress:
            llm = open_llm(arguments, progress, spare=True)
        with llm:
            daemon = Daemon(DeviceCore(llm, arguments.model, load), listeners)
            if sys.stderr.isatty():
                print(
                    f"cuelight: serving {arguments.model} at {daemon.url}; Ctrl-C ends it", file=sys.stderr, flush=True
                )
            write_json_lines(sys.stderr, load().log.level)
            daemon.run()
