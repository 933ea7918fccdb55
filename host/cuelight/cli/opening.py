"""The model and the device that a command line asks for."""

from __future__ import annotations

import argparse

from cuelight.engine.progress import Progress
from cuelight.llm import LLM

__all__ = ["open_llm"]


def open_llm(arguments: argparse.Namespace, progress: Progress, *, spare: bool = False) -> LLM:
    """Open both; `spare` and errors are those of `LLM.open`."""
    progress("opening device and model", 0)
    return LLM.open(
        arguments.model,
        arguments.device,
        lanes=arguments.lanes,
        kv_positions=arguments.kv_positions,
        dtype=arguments.dtype,
        threads=arguments.threads,
        push=arguments.push,
        spare=spare,
        progress=progress,
    )
