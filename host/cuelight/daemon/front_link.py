"""One front-end process, as the core talks to it."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import socket
from collections.abc import Callable

import msgspec

from cuelight.daemon.channel import Channel
from cuelight.daemon.core import DeviceCore
from cuelight.daemon.order import Order
from cuelight.daemon.settings import Settings
from cuelight.daemon.wire import (
    Ask,
    Cancel,
    Change,
    Failure,
    FromFrontEnd,
    HealthReply,
    HealthRequest,
    Item,
    Leave,
    PageReply,
    PageRequest,
    Ready,
    Stop,
    Tell,
    Welcome,
)
from cuelight.daemon.work import DeviceWork
from cuelight.engine.grammar import GrammarText
from cuelight.errors import CuelightError

__all__ = ["FrontLink"]

_DECODER: msgspec.msgpack.Decoder[FromFrontEnd] = msgspec.msgpack.Decoder(FromFrontEnd)
_SILENCE = 15
_START = 60
# So that a message is short, however much has come while the channel was full.
_TOKENS = 4096
_log = logging.getLogger(__name__)


class FrontLink:
    """The core's end of a channel to a front end; all of it is for the core's event loop.

    Parameters
    ----------
    core : DeviceCore
        Who answers.
    pid : int
        Process id of the front end.
    ready : callable
        Called when the front end takes connections.

    Attributes
    ----------
    ready : bool
        The front end takes connections.
    lost : asyncio.Event
        The front end is gone, and all that it had asked for is cancelled.
    """

    def __init__(self, core: DeviceCore, pid: int, ready: Callable[[], None]) -> None:
        self.pid = pid
        self.lost = asyncio.Event()
        self._core = core
        self._tell_ready = ready
        self.ready = False
        self._works: dict[int, DeviceWork] = {}
        # Works with news, in the order in which they had the first of them.
        self._noted: dict[int, None] = {}
        self._compiling: set[int] = set()
        self._flushing = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._channel = Channel(_DECODER, self._hear, self._lose, self._flush)

    @property
    def orders(self) -> int:
        """How many are under way."""
        return len(self._works)

    async def open(self, end: socket.socket) -> None:
        """Begin to talk."""
        await self._channel.open(end)
        self._channel.send(Welcome(self._core.facts, _written(self._core.settings)))

    def tick(self) -> None:
        """Note that a second has passed; a front end that is silent for too long is lost."""
        self._channel.silence += 1
        if self._channel.silence > (_SILENCE if self.ready else _START):
            _log.error("A front end says nothing any more.")
            self._channel.close()

    def set_settings(self, settings: Settings) -> None:
        """Tell other settings."""
        self._channel.send(Change(_written(settings)))

    def stop(self) -> None:
        """Have the front end end; the second time, at once."""
        self._channel.send(Stop())

    def close(self) -> None:
        """Have no more to do with it."""
        self._channel.close()

    def _hear(self, message: FromFrontEnd) -> None:
        match message:
            case Ask(work=number, grammar=None):
                self._begin(number, _order(message))
            case Ask(work=number, grammar=GrammarText() as text):
                self._compiling.add(number)
                self._start(self._compile(number, _order(message), text))
            case Leave(number, answer):
                if work := self._works.get(number):
                    work.leave(answer)
                    self._tidy(number, work)
            case Cancel(number):
                self._compiling.discard(number)
                if cancelled := self._works.pop(number, None):
                    cancelled.cancel()
            case HealthRequest(number):
                self._start(self._tell_health(number))
            case PageRequest(number, accept):
                self._start(self._tell_page(number, accept))
            case Ready():
                self.ready = True
                self._tell_ready()

    def _begin(self, number: int, order: Order) -> None:
        try:
            self._works[number] = self._core.ask(order, lambda: self._note(number))
        except CuelightError as error:
            self._refuse(number, order, error)

    async def _compile(self, number: int, order: Order, text: GrammarText) -> None:
        """Begin once the grammar is there, unless nobody wants it any more."""
        try:
            grammar = await self._loop.run_in_executor(None, self._core.llm.grammars.make, text)
        except CuelightError as error:
            if number in self._compiling:
                self._compiling.remove(number)
                self._refuse(number, order, error)
            return
        if number in self._compiling:
            self._compiling.remove(number)
            self._begin(number, dataclasses.replace(order, grammar=grammar))

    def _refuse(self, number: int, order: Order, error: CuelightError) -> None:
        failure = Failure.of(error)
        self._channel.send(Tell([Item(number, answer, [], 0, 0, None, failure) for answer in range(order.answers)]))

    def _note(self, number: int) -> None:
        self._noted[number] = None
        if not self._flushing:
            self._flushing = True
            # All that a pass brings goes out together.
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Tell what is new, as long as the channel takes it."""
        self._flushing = False
        while self._noted and not self._channel.full:
            items: list[Item] = []
            tokens = 0
            for number in tuple(self._noted):
                if tokens >= _TOKENS:
                    break
                del self._noted[number]
                # Those that nobody wants any more are gone.
                if (work := self._works.get(number)) is None:
                    continue
                for news in work.take(_TOKENS):
                    items.append(Item.of(number, news))
                    tokens += len(news.tokens)
                    if len(news.tokens) == _TOKENS:
                        # There may be more.
                        self._noted[number] = None
                self._tidy(number, work)
            if items:
                self._channel.send(Tell(items))

    def _tidy(self, number: int, work: DeviceWork) -> None:
        if not work.open:
            # All is told; it lets go of its requests, which would refer to it.
            work.cancel()
            del self._works[number]

    async def _tell_health(self, number: int) -> None:
        self._channel.send(HealthReply(number, await self._core.health()))

    async def _tell_page(self, number: int, accept: str) -> None:
        self._channel.send(PageReply(number, *await self._core.page(accept)))

    def _start(self, coroutine: asyncio._CoroutineLike[None]) -> None:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _lose(self) -> None:
        self._compiling.clear()
        for work in self._works.values():
            work.cancel()
        self._works.clear()
        self.lost.set()


def _order(ask: Ask) -> Order:
    return Order(
        prompts=ask.prompts,
        max_new_tokens=ask.max_new_tokens,
        tier=ask.tier,
        owner=ask.owner,
        filters=ask.filters,
        n=ask.n,
        temperature=ask.temperature,
        seed=ask.seed,
        top_logprobs=ask.top_logprobs,
        whole=ask.whole,
    )


def _written(settings: Settings) -> bytes:
    return settings.model_dump_json().encode()
