"""The service of one front end: who may ask what, and the questions that are under way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry

from cuelight.daemon.access import Access
from cuelight.daemon.failures import Stopping
from cuelight.daemon.generation import Generation
from cuelight.daemon.metrics import Metrics
from cuelight.daemon.order import Order
from cuelight.daemon.seam import Core
from cuelight.daemon.settings import Settings
from cuelight.engine.language import Language
from cuelight.errors import InvalidArgument

__all__ = ["Service"]

_T = TypeVar("_T")

_LONG = 4096
_ENCODERS = 2


class Service:
    """What routes ask; all of it is for the event loop that `begin` was called on.

    Parameters
    ----------
    core : Core
        Whoever has the device.
    language : Language
        Of the model that is served.
    settings : Settings
        To begin with.
    registry : CollectorRegistry
        Where what is counted can be looked at.

    Attributes
    ----------
    models : frozenset of str
        What clients may call the model.
    settings : Settings
        The latest.
    access : Access
        Who may ask.
    metrics : Metrics
        What is counted.
    stopping : bool
        Nothing new is taken.
    open : set of Generation
        What is under way.
    """

    def __init__(self, core: Core, language: Language, settings: Settings, registry: CollectorRegistry) -> None:
        self.core = core
        self.language = language
        self.models = frozenset((core.facts.model, Path(core.facts.directory).name))
        self.settings = settings
        self.access = Access(settings)
        self.stopping = False
        self.metrics = Metrics(registry)
        self.open: set[Generation] = set()
        self._encoders = ThreadPoolExecutor(_ENCODERS, "cuelight-encode")

    async def begin(self) -> None:
        """Begin to take questions."""
        self._loop = asyncio.get_running_loop()
        # Takes a second with large vocabularies, which the first client need not wait for.
        _ = self.language.tokenizer.spelling

    async def close(self) -> None:
        """Take nothing more, and end what is under way."""
        self.drain()
        self._end_all()
        self._encoders.shutdown(wait=False, cancel_futures=True)

    def set_settings(self, settings: Settings) -> None:
        """Heed other settings from now on."""
        self.settings = settings
        self.access = Access(settings)

    def drain(self) -> None:
        """Take nothing more, and end what is still under way after the time that settings give it."""
        if not self.stopping:
            self.stopping = True
            asyncio.get_running_loop().call_later(self.settings.server.drain_s, self._end_all)

    async def encode_chat(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None = None
    ) -> list[list[int]]:
        """The prompt that asks for an answer to messages, as the only one; errors as in `Language.encode`."""
        if tools:
            return [await self.aside(lambda: self.language.encode(messages, tools))]
        return [await self._encode(messages, sum(len(message["content"]) for message in messages))]

    async def encode_all(self, prompts: Sequence[str] | Sequence[list[int]]) -> list[list[int]]:
        """Token ids of prompts, which may be token ids already.

        Raises
        ------
        InvalidArgument
            A token id is none of the model's.
        """
        encoded = [await self._encode(prompt, len(prompt)) if isinstance(prompt, str) else prompt for prompt in prompts]
        size = self.language.tokenizer.size
        if beyond := [token for prompt in encoded for token in prompt if token >= size]:
            raise InvalidArgument(f"The prompt has the token {beyond[0]}; this model has tokens 0 to {size - 1}.")
        return encoded

    async def _encode(self, prompt: str | Sequence[Mapping[str, str]], length: int) -> list[int]:
        if length < _LONG:
            return self.language.encode(prompt)
        return await self.aside(lambda: self.language.encode(prompt))

    async def aside(self, call: Callable[[], _T]) -> _T:
        """Call what takes a while in another thread, so that others need not wait meanwhile."""
        return await self._loop.run_in_executor(self._encoders, call)

    def generation(self, order: Order) -> Generation:
        """Make a generation of an order.

        Raises
        ------
        Stopping
            The daemon is ending.
        """
        if self.stopping:
            raise Stopping("The daemon is ending; ask again soon, or another one.")
        record = self.metrics.question(order.tier, order.asked_ns, sum(map(len, order.prompts)))
        generation = Generation(
            order, self.language, self.core, record, self.open.discard, logs_text=self.settings.log.text
        )
        self.open.add(generation)
        return generation

    def _end_all(self) -> None:
        for generation in tuple(self.open):
            generation.cancel(Stopping("The daemon has ended before the answer did; ask again soon, or another one."))
