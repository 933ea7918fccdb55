"""`cuelight serve`."""

from __future__ import annotations

import argparse
import sys

from cuelight.cli.opening import open_llm
from cuelight.cli.progress import show_progress
from cuelight.daemon.logs import write_json_lines
from cuelight.daemon.serve import Daemon, listen
from cuelight.daemon.service import Service
from cuelight.daemon.settings import Settings, load_settings

__all__ = ["run_serve"]


def run_serve(arguments: argparse.Namespace) -> None:
    """Serve a model until asked to end."""

    def load() -> Settings:
        return load_settings(arguments.settings, host=arguments.host, port=arguments.port)

    # What can't be is told before a model is loaded.
    with listen(load().server) as listener:
        with show_progress() as progress:
            llm = open_llm(arguments, progress, spare=True)
        with llm:
            daemon = Daemon(Service(llm, arguments.model, load), listener)
            if sys.stderr.isatty():
                print(
                    f"cuelight: serving {arguments.model} at {daemon.url}; Ctrl-C ends it", file=sys.stderr, flush=True
                )
            write_json_lines(sys.stderr, load().log.level)
            daemon.run()
