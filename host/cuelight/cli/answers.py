"""How answers are shown: as text in the prompts' order, side by side on a terminal, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console

from cuelight.cli.likeliest import likeliest_lines, likeliest_objects
from cuelight.cli.prompts import Prompt
from cuelight.cli.screen import Screen, open_screen
from cuelight.cli.together import Event
from cuelight.engine.tokenizer import Tokenizer

__all__ = ["Answers", "open_answers"]

MOST_PANELS = 6


class Answers(Protocol):
    """Takes events of all generations; a context manager."""

    def add(self, event: Event) -> None:
        """Show what came."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


def open_answers(
    console: Console, prompts: Sequence[Prompt], tokenizer: Tokenizer, *, as_json: bool, likeliest: bool
) -> Answers:
    """Choose by their number, and by whether `console` is a terminal.

    Parameters
    ----------
    console, prompts, tokenizer
        Where to, what was asked, and what gives tokens their texts.
    as_json
        An object for each instead of text.
    likeliest
        Show the likeliest tokens that came with each token too.
    """
    is_terminal = console.is_terminal and not console.is_dumb_terminal
    if is_terminal and not as_json and not likeliest and 1 < len(prompts) <= MOST_PANELS:
        titles = [f"{number}: {prompt.title}" for number, prompt in enumerate(prompts, 1)]
        return _Panels(open_screen(console, titles))
    return _InOrder(console, prompts, tokenizer, as_json, likeliest)


class _Panels:
    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def add(self, event: Event) -> None:
        if event.piece:
            self._screen.add(event.index, event.piece)
        elif event.stream:
            finish = (event.stream.finish or "failed").replace("_", " ")
            self._screen.end(event.index, f"{event.stream.metrics.new_tokens} tokens, {finish}")
        else:
            self._screen.end(event.index, "failed")

    def __enter__(self) -> Self:
        self._screen.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._screen.__exit__(kind, error, traceback)


class _InOrder:
    """The answer whose turn it is as it comes, later ones when it is theirs."""

    def __init__(
        self, console: Console, prompts: Sequence[Prompt], tokenizer: Tokenizer, as_json: bool, likeliest: bool
    ) -> None:
        self._console = console
        self._prompts = prompts
        self._tokenizer = tokenizer
        self._as_json = as_json
        self._likeliest = likeliest
        self._texts = [""] * len(prompts)
        self._ends: list[Event | None] = [None] * len(prompts)
        self._turn = 0
        self._shown = 0

    def add(self, event: Event) -> None:
        self._texts[event.index] += event.piece
        if event.stream or event.error:
            self._ends[event.index] = event
        while self._turn < len(self._prompts) and self._show():
            self._turn += 1
            self._shown = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass

    def _show(self) -> bool:
        """Show what is new of the answer whose turn it is; whether that was all."""
        text, end = self._texts[self._turn], self._ends[self._turn]
        if self._as_json:
            if end:
                print(json.dumps(self._describe(text, end)), flush=True)
            return end is not None
        if fresh := text[self._shown :]:
            if not self._shown:
                self._head()
            print(fresh, end="", flush=True)
            self._shown = len(text)
        if end and end.stream and not text:
            self._head()
        if end and (text or end.stream):
            print(flush=True)
        if end and end.stream and self._likeliest:
            lines = likeliest_lines(end.stream.request.received, self._tokenizer, self._console.width)
            print("", *lines, sep="\n", flush=True)
        return end is not None

    def _head(self) -> None:
        if len(self._prompts) > 1:
            space = "\n" if self._turn else ""
            print(f"{space}==> {self._turn + 1}: {self._prompts[self._turn].title} <==", flush=True)

    def _describe(self, text: str, end: Event) -> dict[str, object]:
        head: dict[str, object] = {"index": self._turn, "source": self._prompts[self._turn].source, "text": text}
        if end.stream is None:
            return {**head, "error": str(end.error)}
        received = end.stream.request.received
        return {
            **head,
            "tokens": [token.token for token in received],
            "logprobs": [token.logprob for token in received],
            "finish": end.stream.finish,
            "tier": end.stream.request.tier,
            "seed": end.stream.seed,
            **({"top_logprobs": likeliest_objects(received, self._tokenizer)} if self._likeliest else {}),
            **end.stream.metrics.to_dict(),
        }
