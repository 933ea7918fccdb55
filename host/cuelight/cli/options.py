"""Options that several commands have, or that make a group of their own."""

from __future__ import annotations

import argparse

from cuelight.cli.values import bias, number, setting, whole
from cuelight.engine.config import DTYPES
from cuelight.engine.weights import DEFAULT_MODEL
from cuelight.filters import MAX_BIASES

__all__ = ["add_model", "add_sampling", "add_timeout"]


def add_sampling(parser: argparse.ArgumentParser) -> None:
    """Add how tokens are chosen, in the order in which it acts."""
    text = """
    The likeliest, unless --temperature is above 0. These work in the order in which they stand here. One that is left
    out is as the model's generation_config.json has it, or else without effect.
    """
    group = parser.add_argument_group("which tokens", " ".join(text.split()))
    group.add_argument(
        "--logit-bias",
        action="append",
        default=[],
        type=bias,
        metavar="TOKEN=BIAS",
        help="add -100 to 100 to a token's logit; TOKEN is its id, or else its text, most often with a space in front; "
        f"may be repeated, for {MAX_BIASES} tokens at most",
    )
    for name, metavar, text in (
        ("repetition_penalty", "R", "divide logits of tokens in prompt or answer, above 1 against repetition: 0.01 to "
        "100 (no effect: 1)"),
        ("frequency_penalty", "F", "subtract so much for each time the answer has a token: -2 to 2 (no effect: 0)"),
        ("presence_penalty", "P", "subtract so much once from tokens that the answer has: -2 to 2 (no effect: 0)"),
    ):  # fmt: skip
        group.add_argument(f"--{name.replace('_', '-')}", type=setting(name), metavar=metavar, help=text)
    group.add_argument(
        "--temperature", type=number(0), metavar="T", help="draw at random, above 1 more evenly; 0 takes the likeliest"
    )
    for name, metavar, text in (
        ("top_k", "K", "draw from the K likeliest only (no effect: 0)"),
        ("top_p", "P", "draw from the likeliest that together reach this probability: 0 to 1 (no effect: 1)"),
        ("min_p", "P", "draw from those at least P times as likely as the likeliest: 0 to 1 (no effect: 0)"),
    ):
        group.add_argument(f"--{name.replace('_', '-')}", type=setting(name), metavar=metavar, help=text)
    group.add_argument(
        "--seed", type=whole(0), metavar="N", help="same seed, same text; 64 bits (default: drawn; --json tells it)"
    )


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add what model to run, and on what."""
    group = parser.add_argument_group("model and device")
    group.add_argument(
        "--model",
        default=DEFAULT_MODEL,
        metavar="MODEL",
        help=f"a name, a GGUF file, a folder, or org/name on the Hugging Face hub (default: {DEFAULT_MODEL})",
    )
    group.add_argument(
        "--dtype",
        choices=DTYPES,
        default=DTYPES[0],
        metavar="DTYPE",
        help=f"what to compute in: {DTYPES[0]}, or {DTYPES[1]} for half the memory (default: {DTYPES[0]})",
    )
    group.add_argument(
        "--kv-positions",
        type=whole(1),
        default=16_384,
        metavar="N",
        help="tokens that a lane's KV cache holds, all prompts and answers together (default: 16384)",
    )
    group.add_argument(
        "--device",
        default="twin",
        metavar="URI",
        help="the scheduler: twin, or a board as in pcie:0000:65:00.0 (default: twin)",
    )
    group.add_argument(
        "--push",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="whether a board brings work to its lanes by itself (default: where its driver is vfio-pci)",
    )
    group.add_argument(
        "--lanes", type=whole(1), default=1, metavar="N", help="CPU lanes, each with a copy of the model (default: 1)"
    )
    group.add_argument(
        "--threads",
        type=whole(0),
        default=0,
        metavar="N",
        help="threads of a lane; 0 shares the processors (default: 0)",
    )


def add_timeout(parser: argparse.ArgumentParser) -> None:
    """Add how long to wait for a token."""
    parser.add_argument(
        "--timeout",
        type=number(0.001),
        default=120.0,
        metavar="S",
        help="longest wait for a token, in seconds (default: 120)",
    )
