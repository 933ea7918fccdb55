"""Values of options: what a text stands for, or in a sentence why it can't."""

from __future__ import annotations

import math
import os
from argparse import ArgumentTypeError
from collections.abc import Callable
from pathlib import Path

from cuelight.errors import InvalidArgument
from cuelight.filters import NO_FILTERS, Filters, FilterSettings, check_top_logprobs
from cuelight.tiers import TIERS

__all__ = ["bias", "number", "output", "setting", "tier", "top_logprobs", "whole"]


def whole(least: int) -> Callable[[str], int]:
    """Make what takes whole numbers of at least `least`."""

    def parse(text: str) -> int:
        value = int(text) if text.lstrip("-").isdecimal() else None
        if value is None or value < least:
            raise ArgumentTypeError(f"{text!r} is no whole number of at least {least}")
        return value

    return parse


def number(least: float) -> Callable[[str], float]:
    """Make what takes numbers of at least `least`."""

    def parse(text: str) -> float:
        value = _number(text)
        if not least <= value < math.inf:
            raise ArgumentTypeError(f"{text!r} is no number of at least {least:g}")
        return value

    return parse


def setting(name: str) -> Callable[[str], float]:
    """Make what takes the setting `name` of `Filters`; ranges are its own."""
    kind = type(getattr(NO_FILTERS, name))

    def parse(text: str) -> float:
        value: float = whole(0)(text) if kind is int else _number(text)
        settings: FilterSettings = {name: value}  # type: ignore[misc]
        _check(lambda: NO_FILTERS.override(**settings).check())
        return value

    return parse


def bias(text: str) -> tuple[str, float]:
    """Take TOKEN=BIAS; the token may have equals signs of its own."""
    token, _, value = text.rpartition("=")
    if not token:
        raise ArgumentTypeError(f"{text!r} is no TOKEN=BIAS, write it like ' blue=-5' or 4183=-5")
    added = _number(value)
    # The id is not known yet; any does to check the range.
    _check(lambda: Filters(logit_bias=((0, added),)).check(), ("token 0", repr(token)))
    return token, added


def top_logprobs(text: str) -> int:
    """Take how many of the likeliest tokens to report."""
    count = whole(0)(text)
    _check(lambda: check_top_logprobs(count))
    return count


def tier(text: str) -> int:
    """Take a tier's name or number."""
    if text in TIERS:
        return TIERS[text]
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text!r} is no tier, there are {', '.join(TIERS)} and 0 to 3")
    return int(text)


def output(text: str) -> Path:
    """Take a file to write; tells now and not after a long run that it can't be."""
    path = Path(text)
    if path.is_dir() or not path.parent.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ArgumentTypeError(f"{text!r} can't be written, name another file")
    return path


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is no number") from None


def _check(check: Callable[[], None], reword: tuple[str, str] = ("", "")) -> None:
    try:
        check()
    except InvalidArgument as error:
        raise ArgumentTypeError(str(error).removesuffix(".").replace(*reword)) from None
