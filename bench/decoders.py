"""What `engine.py` compares: four ways to decode the default model, all greedy, all from prompts of the same length.

A decoder is asked for a number of requests at once and says how many tokens a second came while all of them decoded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from cuelight import LLM
from cuelight.engine.batch import Batch, Span
from cuelight.engine.cache import KvCache
from cuelight.engine.config import blocks_for
from cuelight.engine.model import Llama
from cuelight.stream import Stream

__all__ = ["LLAMA_CPP", "Engine", "LlamaCpp", "Scheduled", "Transformers"]

LLAMA_CPP = "xllamacpp==2026.10.11549"
"""Wheels for pip: llama.cpp's own server as a library. No part of the project's setup."""
_RAMP = 8
"""Tokens beyond the wanted ones, as requests do not start and end together."""
_TIMEOUT_S = 600.0


class Engine:
    """The engine alone: no scheduler, no other process, no text."""

    def __init__(self, model: Llama, position: int, steps: int) -> None:
        self._model = model
        self._position = position
        self._steps = steps

    def decode(self, requests: int) -> float:
        """Tokens a second of `requests` at once."""
        return self._run(requests, self._position, self._steps, rows=1)

    def prefill(self, rows: int) -> float:
        """Rows a second of one prompt of `rows`, its first token included."""
        return self._run(1, 0, 1, rows)

    def _run(self, requests: int, position: int, steps: int, rows: int) -> float:
        config = self._model.config
        count = blocks_for(config, position + steps * rows)
        tables = np.arange(requests * count, dtype=np.int32).reshape(requests, count)
        cache = KvCache(config, requests * count, self._model.dtype)
        tokens = np.full((requests, rows), 100, np.int32)
        started = time.perf_counter()
        for start in range(position, position + steps * rows, rows):
            batch = Batch([Span(tokens[at], start, table) for at, table in enumerate(tables)], config)
            hidden = self._model.run_layers(self._model.embed(batch), range(config.layers), batch, cache)
            chosen = self._model.logits(hidden[batch.last_rows]).argmax(dim=1).numpy().astype(np.int32)
            tokens = np.broadcast_to(chosen[:, None], tokens.shape)
        return requests * rows * steps / (time.perf_counter() - started)


class Transformers:
    """The same weights in transformers, one batch."""

    def __init__(self, directory: Path, dtype: torch.dtype, position: int, steps: int) -> None:
        from transformers import LlamaForCausalLM, logging

        quiet: Any = logging.disable_progress_bar
        quiet()
        self._model: Any = LlamaForCausalLM.from_pretrained(directory, dtype=dtype)
        self._position = position
        self._steps = steps

    def decode(self, requests: int) -> float:
        """Tokens a second of `requests` at once."""
        return self._run(requests, self._position, self._steps, rows=1)

    def prefill(self, rows: int) -> float:
        """Rows a second of one prompt of `rows`, its first token included."""
        return self._run(1, 0, 1, rows)

    @torch.inference_mode()
    def _run(self, requests: int, position: int, steps: int, rows: int) -> float:
        from transformers import DynamicCache

        cache = DynamicCache(config=self._model.config)
        if position:
            self._model(torch.full((requests, position), 100), past_key_values=cache, logits_to_keep=1)
        tokens = torch.full((requests, rows), 100)
        started = time.perf_counter()
        for _ in range(steps):
            logits = self._model(tokens, past_key_values=cache, logits_to_keep=1).logits
            tokens = logits[:, -1:].argmax(dim=2).expand(requests, rows)
        return requests * rows * steps / (time.perf_counter() - started)


class Scheduled:
    """Cuelight as users have it: admission, the twin, a lane process, tokens made into text by a thread a request."""

    def __init__(self, llm: LLM, position: int, steps: int) -> None:
        self._llm = llm
        self._position = position
        self._steps = steps

    def decode(self, requests: int) -> float:
        """Tokens a second of `requests` at once."""

        def read(stream: Stream) -> list[tuple[float, int]]:
            stream.text(_TIMEOUT_S)
            return [(token.time_ns / 1e9, at + 1) for at, token in enumerate(stream.request.received)]

        device = self._llm.device
        streams = [
            Stream(
                device.submit(prompt, self._steps + _RAMP, ignore_eos=True, timeout_s=_TIMEOUT_S),
                0,
                self._llm.tokenizer.detokenizer,
            )
            for prompt in _prompts(requests, self._position)
        ]
        return _rate(_at_once(read, streams))


class LlamaCpp:
    """llama.cpp's server as a library, on the GGUF file itself.

    Raises
    ------
    ImportError
        It is not installed.
    """

    def __init__(self, file: Path, threads: int, position: int, steps: int, requests: int) -> None:
        import xllamacpp

        settings = xllamacpp.CommonParams()
        settings.model.path = str(file)
        settings.n_parallel = requests
        settings.n_ctx = requests * (position + steps + _RAMP)
        settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
        settings.verbosity = -1
        self._server: Any = xllamacpp.Server(settings)
        self._position = position
        self._steps = steps

    def decode(self, requests: int) -> float:
        """Tokens a second of `requests` at once."""

        def read(prompt: Sequence[int]) -> list[tuple[float, int]]:
            stamps = []
            order = {
                "prompt": prompt,
                "max_tokens": self._steps + _RAMP,
                "temperature": 0.0,
                "ignore_eos": True,
                "cache_prompt": False,
                "stream": True,
                "timings_per_token": True,
            }
            self._server.handle_completions(
                order, lambda news: stamps.append((time.monotonic(), news["timings"]["predicted_n"]))
            )
            return stamps

        return _rate(_at_once(read, _prompts(requests, self._position)))


def _prompts(requests: int, tokens: int) -> list[list[int]]:
    """Prompts that have nothing in common, so that no prefix cache helps."""
    return [list(range(1000 + tokens * at, 1000 + tokens * (at + 1))) for at in range(requests)]


_Order = TypeVar("_Order")
_Answer = TypeVar("_Answer")


def _at_once(call: Callable[[_Order], _Answer], orders: Sequence[_Order]) -> list[_Answer]:
    with ThreadPoolExecutor(len(orders)) as pool:
        return list(pool.map(call, orders))


def _rate(requests: Sequence[Sequence[tuple[float, int]]]) -> float:
    """Tokens a second from when the last request has begun until the first one ends; stamps: (time, tokens so far)."""
    start = max(stamps[0][0] for stamps in requests)
    end = min(stamps[-1][0] for stamps in requests)

    def count(until: float) -> int:
        return sum(max(tokens for at, tokens in stamps if at <= until) for stamps in requests)

    return (count(end) - count(start)) / (end - start)
