"""`cuelight generate`."""

from __future__ import annotations

import argparse
import json
import sys

from cuelight.cli.progress import show_progress
from cuelight.errors import InvalidArgument
from cuelight.llm import LLM
from cuelight.recording import Recording
from cuelight.stream import Stream

__all__ = ["run_generate"]


def run_generate(arguments: argparse.Namespace) -> None:
    """Answer one prompt, as it comes or as one JSON object."""
    prompt = _read_prompt(arguments)
    with show_progress() as progress:
        progress("opening device and model", 0)
        llm = LLM.open(arguments.model, arguments.device, progress=progress)
    with llm:
        stream = llm.generate(
            prompt,
            max_new_tokens=arguments.max_new_tokens,
            temperature=arguments.temperature,
            seed=arguments.seed,
            tier=arguments.tier,
            timeout_s=arguments.timeout,
        )
        pieces = []
        for piece in stream.pieces(arguments.timeout):
            pieces.append(piece)
            if not arguments.json:
                print(piece, end="", flush=True)
        if arguments.json:
            print(json.dumps(_describe(stream, "".join(pieces))))
        else:
            print()
        if arguments.trace:
            events = tuple(llm.device.trace())
            Recording(events, llm.device.status().stages, {stream.request.id: _title(arguments)}).save(arguments.trace)


def _read_prompt(arguments: argparse.Namespace) -> str | list[dict[str, str]]:
    prompt = sys.stdin.read() if arguments.prompt is None else arguments.prompt
    if not prompt.strip():
        raise InvalidArgument("The prompt is empty; give one as an argument or on standard input.")
    if arguments.raw:
        if arguments.system is not None:
            raise InvalidArgument("--raw takes the prompt as it stands and so no --system; leave one of them out.")
        return str(prompt)
    system = [] if arguments.system is None else [{"role": "system", "content": arguments.system}]
    return [*system, {"role": "user", "content": prompt}]


def _describe(stream: Stream, text: str) -> dict[str, object]:
    return {
        "text": text,
        "tokens": [token.token for token in stream.request.received],
        "logprobs": [token.logprob for token in stream.request.received],
        "finish": stream.finish,
        "seed": stream.seed,
        **stream.metrics.to_dict(),
    }


def _title(arguments: argparse.Namespace) -> str:
    return " ".join((arguments.prompt or "standard input").split())
