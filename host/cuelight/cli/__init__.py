"""The command line: `cuelight generate`, `demo`, `status`, `models`, `trace`, `completion`."""

from cuelight.cli.main import main

__all__ = ["main"]
