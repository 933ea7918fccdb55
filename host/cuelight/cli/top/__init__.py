"""`cuelight top`: slots, seats, lanes, queues and latencies, live in a terminal."""

from __future__ import annotations

import argparse
import sys

from cuelight.errors import InvalidArgument

__all__ = ["run_top"]


def run_top(arguments: argparse.Namespace) -> None:
    """Show running devices until the user quits.

    Raises
    ------
    InvalidArgument
        There is no terminal to show them on.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidArgument("cuelight top needs a terminal; where there is none, use cuelight status --json.")
    from cuelight.cli.top.app import Top

    Top(pid=arguments.pid, interval_s=arguments.interval).run()
