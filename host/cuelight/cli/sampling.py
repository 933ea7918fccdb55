"""How a command line wants tokens chosen, in terms of the model it is for."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from cuelight.engine.tokenizer import Tokenizer
from cuelight.errors import InvalidArgument
from cuelight.filters import FilterSettings

__all__ = ["options_without_effect", "read_filters"]

_PLAIN = ("repetition_penalty", "frequency_penalty", "presence_penalty", "top_k", "top_p", "min_p")
_FOR_DRAWING = ("top_k", "top_p", "min_p", "seed")


def read_filters(arguments: argparse.Namespace, tokenizer: Tokenizer) -> FilterSettings:
    """Settings that the command line names, for `LLM.generate`.

    Raises
    ------
    InvalidArgument
        What should be a token is none of the model's, or is given two biases.
    """
    settings = FilterSettings()
    for name in _PLAIN:
        if (value := getattr(arguments, name)) is not None:
            settings[name] = value  # type: ignore[literal-required]
    if arguments.logit_bias:
        settings["logit_bias"] = _read_biases(arguments.logit_bias, tokenizer)
    return settings


def options_without_effect(arguments: argparse.Namespace, own_temperature: float) -> list[str]:
    """Options that stand on the command line for nothing, as the choice is greedy.

    Parameters
    ----------
    arguments
        The command line.
    own_temperature
        The model's own, for command lines that name none.
    """
    temperature = own_temperature if arguments.temperature is None else arguments.temperature
    given = [name for name in _FOR_DRAWING if getattr(arguments, name) is not None]
    return [] if temperature > 0 else [f"--{name.replace('_', '-')}" for name in given]


def _read_biases(pairs: Sequence[tuple[str, float]], tokenizer: Tokenizer) -> dict[int, float]:
    biases: dict[int, float] = {}
    for text, bias in pairs:
        token = _find_token(text, tokenizer)
        if token in biases:
            raise InvalidArgument(f"--logit-bias names token {token} ({text!r}) twice; give each token one bias.")
        biases[token] = bias
    return biases


def _find_token(text: str, tokenizer: Tokenizer) -> int:
    if text.isdecimal():
        if tokenizer.text_of(int(text)) is None:
            raise InvalidArgument(f"--logit-bias names the token {text}, which the model has not; name it by its text.")
        return int(text)
    ids = tokenizer.encode(text, opening=False)
    if len(ids) != 1:
        pieces = ", ".join(f"{tokenizer.show(token)} ({token})" for token in ids)
        raise InvalidArgument(f"--logit-bias {text!r} is {len(ids)} tokens of the model: {pieces}; bias one of them.")
    return ids[0]
