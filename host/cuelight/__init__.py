"""Cuelight: a scheduler for language models in hardware, and what drives it.

`Device` drives the scheduler itself; `LLM` generates text with a model through it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from cuelight.device import Device
from cuelight.errors import CuelightError
from cuelight.filters import Filters
from cuelight.manual import ManualRequest
from cuelight.policy import Cost, Tier
from cuelight.request import Finish, Request, Token
from cuelight.status import Status
from cuelight.trace import Event

if TYPE_CHECKING:
    from cuelight.llm import LLM, Metrics, Stream

# A program that uses this decides what is logged, and where.
logging.getLogger(__name__).addHandler(logging.NullHandler())

__all__ = [
    "LLM",
    "Cost",
    "CuelightError",
    "Device",
    "Event",
    "Filters",
    "Finish",
    "ManualRequest",
    "Metrics",
    "Request",
    "Status",
    "Stream",
    "Tier",
    "Token",
]


def __getattr__(name: str) -> Any:
    # The model part needs packages that a program which only drives a board does without.
    if name in ("LLM", "Metrics", "Stream"):
        import cuelight.llm

        return getattr(cuelight.llm, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
