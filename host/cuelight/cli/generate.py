"""`cuelight generate`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

from rich.console import Console

from cuelight.cli.answers import open_answers
from cuelight.cli.opening import open_llm
from cuelight.cli.progress import show_progress
from cuelight.cli.prompts import Prompt, read_prompts
from cuelight.cli.sampling import options_without_effect, read_filters
from cuelight.cli.together import run_together
from cuelight.engine.defaults import load_defaults
from cuelight.engine.tokenizer import Tokenizer
from cuelight.errors import RequestFailed
from cuelight.llm import LLM
from cuelight.recording import Recording
from cuelight.stream import Stream

__all__ = ["run_generate"]


def run_generate(arguments: argparse.Namespace) -> None:
    """Answer prompts, all at once, as text or as JSON.

    Raises
    ------
    RequestFailed
        Some of several have no answer; why, was told before.
    """
    prompts = read_prompts(arguments)
    console = Console(highlight=False)
    with show_progress() as progress:
        llm = open_llm(arguments, progress)
        if len(prompts) > 1 and not console.is_terminal:
            # Where answers are seen as they come, they are the progress.
            with llm:
                _answer(llm, arguments, prompts, console, progress)
            return
    with llm:
        _answer(llm, arguments, prompts, console, lambda what, share: None)


def _answer(
    llm: LLM,
    arguments: argparse.Namespace,
    prompts: list[Prompt],
    console: Console,
    progress: Callable[[str, float], None],
) -> None:
    tokenizer = Tokenizer(llm.directory)
    filters = read_filters(arguments, tokenizer)
    if idle := options_without_effect(arguments, load_defaults(llm.directory).temperature):
        print(
            f"cuelight: The likeliest token is taken each time; add --temperature for {', '.join(idle)} to matter.",
            file=sys.stderr,
        )

    def start(index: int) -> Stream:
        stream = llm.generate(
            prompts[index].content,
            max_new_tokens=arguments.max_new_tokens,
            temperature=arguments.temperature,
            seed=arguments.seed,
            tier=arguments.tier,
            top_logprobs=arguments.top_logprobs,
            timeout_s=arguments.timeout,
            **filters,
        )
        labels[stream.request.id] = prompts[index].source
        return stream

    labels: dict[int, str] = {}
    ended: list[Stream] = []
    failed = 0
    began = time.monotonic()
    what = f"answering {len(prompts)} prompts"
    progress(what, 0)
    with open_answers(
        console, prompts, tokenizer, as_json=arguments.json, likeliest=arguments.top_logprobs > 0
    ) as answers:
        for event in run_together(len(prompts), start, arguments.timeout):
            if event.error and len(prompts) == 1:
                raise event.error
            answers.add(event)
            if event.error:
                failed += 1
                print(f"cuelight: {prompts[event.index].source}: {event.error}", file=sys.stderr)
            if event.stream:
                ended.append(event.stream)
            progress(what, (len(ended) + failed) / len(prompts))
    if arguments.trace:
        Recording(tuple(llm.device.trace()), llm.device.status().stages, labels).save(arguments.trace)
    if len(prompts) > 1:
        tokens, past_s = sum(stream.metrics.new_tokens for stream in ended), time.monotonic() - began
        print(
            f"{len(ended)} answers, {tokens:,} tokens in {past_s:.1f} s: {tokens / past_s:.1f} tokens/s",
            file=sys.stderr,
        )
    if failed:
        raise RequestFailed(f"{failed} of {len(prompts)} prompts have no whole answer; see why above.")
