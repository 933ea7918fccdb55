"""How a model wants its tokens chosen: the sampling part of its `generation_config.json`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

from cuelight.engine.config import read_json
from cuelight.errors import InvalidArgument, ModelFileError
from cuelight.filters import NO_FILTERS, Filters

__all__ = ["NO_DEFAULTS", "Defaults", "load_defaults"]

_PARTS = {"top_k": int, "top_p": float, "min_p": float, "repetition_penalty": float}


class Defaults(NamedTuple):
    """Settings for requests that name none of their own.

    Parameters
    ----------
    temperature
        0, greedy, unless the model asks for sampling.
    filters
        Truncation and penalties.
    """

    temperature: float = 0.0
    filters: Filters = NO_FILTERS


NO_DEFAULTS = Defaults()
"""Nothing in particular."""


def load_defaults(directory: Path) -> Defaults:
    """Read what the model in `directory` asks for; nothing in particular if it has no generation_config.json.

    Only what the file names counts: `transformers` would add a top-k of 50 of its own.

    Raises
    ------
    ModelFileError
        The file is unreadable, or has values that can't be.
    """
    path = directory / "generation_config.json"
    if not path.exists():
        return NO_DEFAULTS
    fields = read_json(path)
    try:
        sampled = bool(fields.get("do_sample", False))
        given = fields.get("temperature")
        temperature = (1.0 if given is None else float(given)) if sampled else 0.0
        values = {name: kind(fields[name]) for name, kind in _PARTS.items() if fields.get(name) is not None}
        filters = Filters(**values)
        filters.check()
        if not 0 <= temperature < math.inf:
            raise InvalidArgument(f"temperature must be finite and at least 0, not {temperature}.")
    except (ArithmeticError, InvalidArgument, TypeError, ValueError) as error:
        raise ModelFileError(
            f"{path} asks for what can't be ({error}); correct it or fetch the model again."
        ) from error
    return Defaults(temperature, filters)
