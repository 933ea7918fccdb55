"""The command line: `cuelight generate`, `demo`, `status`, `trace`."""

from cuelight.cli.main import main

__all__ = ["main"]
