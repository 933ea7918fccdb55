"""The service: a model, who may ask it what, and the questions that are under way."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from cuelight.daemon.access import Access
from cuelight.daemon.admission import Admission
from cuelight.daemon.failures import Stopping
from cuelight.daemon.generation import Generation
from cuelight.daemon.grants import grant
from cuelight.daemon.logs import set_level
from cuelight.daemon.mailbox import Mailbox
from cuelight.daemon.metrics import Metrics
from cuelight.daemon.order import Order
from cuelight.daemon.scheduler_metrics import SchedulerCollector
from cuelight.daemon.settings import Settings
from cuelight.daemon.watchdog import Watchdog
from cuelight.errors import CuelightError, InvalidArgument
from cuelight.llm import LLM

__all__ = ["Service"]

_T = TypeVar("_T")

_LONG = 4096
_ENCODERS = 2
_log = logging.getLogger(__name__)


class Service:
    """What routes ask; all of it is for the event loop that `begin` was called on.

    Parameters
    ----------
    llm : LLM
        The model at work; not closed here.
    model : str
        What clients call it.
    load : callable
        Reads the settings, now and at each `reload`.

    Attributes
    ----------
    settings : Settings
        The latest.
    access : Access
        Who may ask.
    admission : Admission
        Who goes onto the device next.
    watchdog : Watchdog
        Whether all is well.
    metrics : Metrics
        What is counted.
    stopping : bool
        Nothing new is taken.
    open : set of Generation
        What is under way.
    """

    admission: Admission
    watchdog: Watchdog

    def __init__(self, llm: LLM, model: str, load: Callable[[], Settings]) -> None:
        self.llm = llm
        self.model = model
        self.models = frozenset((model, llm.directory.name))
        self.settings = load()
        self.access = Access(self.settings)
        self.stopping = False
        self.metrics = Metrics(
            SchedulerCollector(
                lambda: self.watchdog.snapshot,
                lambda: self.watchdog.health.ok,
                lambda: {tier: self.admission.waiting(tier) for tier in self.settings.tiers},
                lambda: {tier: self.admission.under_way(tier) for tier in self.settings.tiers},
                lambda: {name: tier.level for name, tier in self.settings.tiers.items()},
                model,
            )
        )
        self._load = load
        self.open: set[Generation] = set()
        self._reloading = asyncio.Lock()
        self._encoders = ThreadPoolExecutor(_ENCODERS, "cuelight-encode")

    async def begin(self) -> None:
        """Begin to take questions."""
        self._loop = asyncio.get_running_loop()
        # Takes a second with large vocabularies, which the first client need not wait for.
        _ = self.llm.tokenizer.spelling
        self.llm.device.set_tiers(grant(self.llm.device, self.settings.tiers))
        groups = self.llm.device.status().groups[: len(self.llm.lanes)]
        self.watchdog = Watchdog(self.llm.device, lambda: self.llm.lanes)
        self.admission = Admission(self.settings.tiers, sum(group.seats for group in groups), Mailbox(self._loop))

    async def close(self) -> None:
        """Take nothing more, and end what is under way."""
        self.drain()
        self._end_all()
        await self.admission.close()
        await self._loop.run_in_executor(None, self.watchdog.close)
        self._encoders.shutdown(wait=False, cancel_futures=True)

    async def reload(self) -> None:
        """Read the settings again; if they can't be used, all stays as it was. What needs a restart is told."""
        async with self._reloading:
            try:
                settings = await self._loop.run_in_executor(None, self._load)
                await self._loop.run_in_executor(
                    None, lambda: self.llm.device.set_tiers(grant(self.llm.device, settings.tiers))
                )
            except CuelightError as error:
                _log.error("Settings stay as they are: %s", error)
                return
            if settings.server != self.settings.server:
                _log.warning("Changes of [server] take effect at the next start.")
            self.settings = settings
            self.access = Access(settings)
            self.admission.set_tiers(settings.tiers)
            set_level(settings.log.level)
            _log.info("Settings were read again.")

    def drain(self) -> None:
        """Take nothing more, and end what is still under way after the time that settings give it."""
        if not self.stopping:
            self.stopping = True
            self._loop.call_later(self.settings.server.drain_s, self._end_all)

    async def encode_chat(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None = None
    ) -> list[list[int]]:
        """The prompt that asks for an answer to messages, as the only one; errors as in `LLM.encode`."""
        if tools:
            return [await self.aside(lambda: self.llm.encode(messages, tools))]
        return [await self._encode(messages, sum(len(message["content"]) for message in messages))]

    async def encode_all(self, prompts: Sequence[str] | Sequence[list[int]]) -> list[list[int]]:
        """Token ids of prompts, which may be token ids already.

        Raises
        ------
        InvalidArgument
            A token id is none of the model's.
        """
        encoded = [await self._encode(prompt, len(prompt)) if isinstance(prompt, str) else prompt for prompt in prompts]
        size = self.llm.tokenizer.size
        if beyond := [token for prompt in encoded for token in prompt if token >= size]:
            raise InvalidArgument(f"The prompt has the token {beyond[0]}; this model has tokens 0 to {size - 1}.")
        return encoded

    async def _encode(self, prompt: str | Sequence[Mapping[str, str]], length: int) -> list[int]:
        if length < _LONG:
            return self.llm.encode(prompt)
        return await self.aside(lambda: self.llm.encode(prompt))

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
        level = self.settings.tiers[order.tier].level
        record = self.metrics.question(order.tier, order.asked_ns, sum(map(len, order.prompts)))
        generation = Generation(order, self.llm, level, self.admission, record, self.open.discard)
        generation.logs_text = self.settings.log.text
        self.open.add(generation)
        return generation

    def _end_all(self) -> None:
        for generation in tuple(self.open):
            generation.cancel(Stopping("The daemon has ended before the answer did; ask again soon, or another one."))
