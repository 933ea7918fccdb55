"""Text from a model, with the scheduler deciding which request runs next."""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, Unpack

from cuelight.device import Device
from cuelight.engine.config import DTYPES, LAYERS_PER_STAGE, block_positions, blocks_for, load_config, stage_count
from cuelight.engine.defaults import load_defaults
from cuelight.engine.grammar import Grammar
from cuelight.engine.language import Language
from cuelight.engine.progress import Progress, silent
from cuelight.engine.weights import DEFAULT_MODEL, resolve
from cuelight.errors import InvalidArgument
from cuelight.filters import FilterSettings
from cuelight.guides import Guides
from cuelight.lanes.crew import Crew
from cuelight.lanes.process import LaneProcess
from cuelight.policy import Tier, open_tiers
from cuelight.request import DEFAULT_TIMEOUT_S, Request
from cuelight.stream import Metrics, Stream

__all__ = ["LLM", "Metrics", "Stream"]

DEFAULT_KV_POSITIONS = 16_384
DEFAULT_NEW_TOKENS = 256


class LLM(Language):
    """A model at work: its language, a device, and a lane process for each lane group.

    Safe from several threads; a context manager that closes itself::

        with LLM.open() as llm:
            for piece in llm.generate([{"role": "user", "content": "What is a cue light?"}]):
                print(piece, end="", flush=True)

    Attributes
    ----------
    device : Device
        The scheduler, for status and trace.
    directory : Path
        Directory of the model.
    tokenizer : Tokenizer
        The model's.
    grammars : Grammars
        Makes what `generate` takes as `grammar`.
    """

    def __init__(
        self,
        directory: Path,
        device: Device,
        crew: Crew,
    ) -> None:
        super().__init__(directory)
        self.device = device
        self._crew = crew
        self._guides = Guides()
        self._defaults = load_defaults(directory)
        self._close_once = threading.Lock()

    @property
    def lanes(self) -> tuple[LaneProcess, ...]:
        """Lanes by lane group; one that dies is replaced."""
        return self._crew.lanes

    @classmethod
    def open(
        cls,
        model: str | os.PathLike[str] = DEFAULT_MODEL,
        device: str = "twin",
        *,
        lanes: int = 1,
        context: int | None = None,
        kv_positions: int = DEFAULT_KV_POSITIONS,
        layers_per_stage: int = LAYERS_PER_STAGE,
        seats: int | None = None,
        rows: int | None = None,
        tiers: Sequence[Tier] | None = None,
        dtype: str = DTYPES[0],
        threads: int = 0,
        spare: bool = False,
        push: bool | None = None,
        progress: Progress = silent,
    ) -> Self:
        """Load a model and start its lanes; the first time, fetch it and build the twin.

        Parameters
        ----------
        model : str or path
            A known name, a .gguf file, a directory in the Hugging Face layout, or org/name on its hub.
        device : str
            URI of the device.
        lanes : int
            CPU lanes, each a process and a lane group of its own.
        context : int, optional
            Positions a request may have; what the model and the KV cache allow if left out.
        kv_positions : int
            Positions the KV cache of a lane holds, all its requests together.
        layers_per_stage : int
            Layers that one stage covers.
        seats, rows : int, optional
            Requests that a lane runs at once, and its row budget of a pass; as `Device.configure` has them if left out.
        tiers : sequence of Tier, optional
            What each tier is granted, the highest first; `Device.set_tiers` changes it. If left out, each tier leaves
            a seat (of 8 at least) and a sixteenth of the KV blocks free for each one above it.
        dtype : str
            float32, or bfloat16 for half the memory; what lanes compute in, whatever the model's files hold.
        threads : int
            Threads of a lane; 0 divides the processors by the lanes.
        spare : bool
            Keep a process with its code loaded that takes the place of a lane that dies, which is back sooner then.
        push : bool, optional
            As for `Device.open`.
        progress : callable
            Told how far fetching and loading are.

        Raises
        ------
        UnknownModel, DownloadError, ModelFileError, UnsupportedModel
            The model can't be had or read.
        UnknownDevice, BuildError
            The device can't be had.
        InvalidArgument
            A value is out of range.
        LaneError
            A lane did not start.
        """
        if dtype not in DTYPES:
            raise InvalidArgument(f"dtype must be {' or '.join(DTYPES)}, not {dtype!r}.")
        directory = resolve(model, progress)
        config = load_config(directory)
        blocks = blocks_for(config, kv_positions)
        most = min(config.context, kv_positions)
        context = most if context is None else context
        if not 1 <= context <= most:
            raise InvalidArgument(f"context must be 1 to {most} for this model and KV cache, not {context}.")
        stages = stage_count(config, layers_per_stage)
        with contextlib.ExitStack() as undo:
            opened = undo.enter_context(
                Device.open(
                    device,
                    lanes=lanes,
                    context=context,
                    blocks=blocks_for(config, context),
                    vocabulary=config.vocabulary,
                    push=push,
                    title=os.fspath(model),
                    progress=progress,
                )
            )
            capabilities = opened.capabilities
            if lanes > capabilities.lanes:
                raise InvalidArgument(f"{device} has {capabilities.lanes} lanes, so lanes can't be {lanes}.")
            if tiers is None:
                tiers = open_tiers(capabilities.tiers, seats or capabilities.seats, blocks, blocks_for(config, context))
            opened.configure(
                stages=stages,
                kv_blocks=blocks,
                block_positions=block_positions(config),
                seats=seats,
                rows=rows,
                tiers=tiers,
            )

            def prepare(progress: Progress) -> LaneProcess:
                return LaneProcess(
                    directory, stages=stages, blocks=blocks, dtype=dtype, threads=threads, progress=progress
                )

            crew = Crew(opened, prepare, spare=spare)
            undo.callback(crew.close)
            crew.start(lanes, progress)
            llm = cls(directory, opened, crew)
            undo.pop_all()
            return llm

    def generate(
        self,
        prompt: str | Sequence[Mapping[str, str]],
        max_new_tokens: int | None = None,
        *,
        temperature: float | None = None,
        seed: int | None = None,
        tier: int = 0,
        top_logprobs: int = 0,
        stepped: bool = False,
        grammar: Grammar | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        **filters: Unpack[FilterSettings],
    ) -> Stream:
        """Start a generation, in the lane group with the fewest.

        Parameters
        ----------
        prompt : str or sequence of mappings
            Text to go on from, or messages with `role` and `content`.
        max_new_tokens : int, optional
            New tokens at most; 256, or what the context leaves where that is less, if left out.
        temperature : float, optional
            0 is greedy. What the model's generation_config.json asks for, or else 0, if left out.
        seed : int, optional
            64 bits; with the position it keys the random numbers. Drawn if left out.
        tier : int
            Latency tier, 0 the highest.
        top_logprobs : int
            Likeliest tokens to report with each token, 20 at most.
        stepped : bool
            Park after each token until `Stream.request.credit`. Wait for tokens then, not for pieces of text: not
            every token completes one.
        grammar : Grammar, optional
            Form of the answer, made by `grammars`; it ends where that is complete, or at `max_new_tokens`.
        timeout_s : float
            Longest wait for a slot and KV blocks, in seconds.
        **filters
            `top_k`, `top_p`, `min_p`, `repetition_penalty`, `presence_penalty`, `frequency_penalty` and `logit_bias`
            as in `Filters`, but the last a mapping from token ids. Each takes the place of the model's own setting.

        Returns
        -------
        Stream
            Yields the text.

        Raises
        ------
        PromptTooLong, UnknownTier, InvalidArgument, ChatTemplateError
            An argument can't be right.
        DeviceFull, NoKvCredit
            There was no room in time.
        LaneError
            The lane has died.
        """
        return self.generate_samples(
            prompt,
            1,
            max_new_tokens,
            temperature=temperature,
            seed=seed,
            tier=tier,
            top_logprobs=top_logprobs,
            stepped=stepped,
            grammar=grammar,
            timeout_s=timeout_s,
            **filters,
        )[0]

    def generate_samples(
        self,
        prompt: str | Sequence[Mapping[str, str]],
        n: int,
        max_new_tokens: int | None = None,
        *,
        temperature: float | None = 1.0,
        seed: int | None = None,
        tier: int = 0,
        top_logprobs: int = 0,
        stepped: bool = False,
        grammar: Grammar | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        **filters: Unpack[FilterSettings],
    ) -> list[Stream]:
        """Start `n` generations of one prompt, with consecutive seeds; the prompt is prefilled once.

        Returns as soon as all are admitted, which is at the first one's first token where they share something.
        Parameters and errors are otherwise those of `generate`; if one is refused, none goes on.

        Returns
        -------
        list of Stream
            In the order of their seeds.
        """
        tokens = self.encode(prompt)
        seed = secrets.randbits(64) if seed is None else seed
        if max_new_tokens is None:
            max_new_tokens = max(1, min(DEFAULT_NEW_TOKENS, self.device.context - len(tokens)))
        _check_steps(stepped, grammar)
        requests = self.device.submit_samples(
            tokens,
            max_new_tokens,
            n,
            group=self._emptiest_group(),
            tier=tier,
            temperature=self._defaults.temperature if temperature is None else temperature,
            seed=seed,
            filters=self._defaults.filters.override(**filters),
            top_logprobs=top_logprobs,
            stepped=stepped,
            mask=grammar.first_mask if grammar else None,
            timeout_s=timeout_s,
        )
        self._follow(requests, grammar)
        return [Stream(request, request.seed, self.tokenizer.detokenizer) for request in requests]

    def submit(
        self,
        tokens: Sequence[int],
        max_new_tokens: int,
        *,
        group: int | None = None,
        temperature: float | None = None,
        seed: int = 0,
        tier: int = 0,
        top_logprobs: int = 0,
        stepped: bool = False,
        grammar: Grammar | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        **filters: Unpack[FilterSettings],
    ) -> Request:
        """Start one generation from token ids, for callers that make text of tokens themselves.

        Parameters and errors are otherwise those of `generate`.

        Parameters
        ----------
        tokens : sequence of int
            Token ids of the prompt.
        group : int, optional
            Lane group; the one with the fewest if left out.
        timeout_s : float
            Longest wait for a slot and KV blocks, in seconds; 0: don't wait.
        """
        _check_steps(stepped, grammar)
        request = self.device.submit(
            tokens,
            max_new_tokens,
            group=self._emptiest_group() if group is None else group,
            tier=tier,
            temperature=self._defaults.temperature if temperature is None else temperature,
            seed=seed,
            filters=self._defaults.filters.override(**filters),
            top_logprobs=top_logprobs,
            stepped=stepped,
            mask=grammar.first_mask if grammar else None,
            timeout_s=timeout_s,
        )
        self._follow((request,), grammar)
        return request

    def close(self) -> None:
        """End generations, lanes and device; a second call does nothing."""
        with self._close_once:
            self._crew.stop_keeping()
            try:
                self.device.stop()
            finally:
                self._guides.close()
                self._crew.close()
                self.device.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _follow(self, requests: Sequence[Request], grammar: Grammar | None) -> None:
        if grammar:
            for request in requests:
                self._guides.follow(request, grammar.guide())

    def _emptiest_group(self) -> int:
        groups = self._crew.groups or (0,)
        if len(groups) == 1:
            return groups[0]
        live = [request.group for request in self.device.requests]
        return min(groups, key=live.count)


def _check_steps(stepped: bool, grammar: Grammar | None) -> None:
    if stepped and grammar:
        raise InvalidArgument("An answer with a grammar is stepped by that already; leave stepped out.")
