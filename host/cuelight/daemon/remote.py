"""The core as a front end sees it from a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import socket
from collections.abc import Callable
from typing import Any

import msgspec

from cuelight.daemon.channel import Channel
from cuelight.daemon.failures import CoreLost
from cuelight.daemon.order import Order
from cuelight.daemon.seam import Facts, Health, News
from cuelight.daemon.settings import Settings
from cuelight.daemon.wire import (
    Ask,
    Cancel,
    Change,
    FromCore,
    HealthReply,
    HealthRequest,
    Leave,
    PageReply,
    PageRequest,
    Ready,
    Stop,
    Tell,
)
from cuelight.errors import CuelightError, Timeout

__all__ = ["DECODER", "RemoteCore"]

DECODER: msgspec.msgpack.Decoder[FromCore] = msgspec.msgpack.Decoder(FromCore)
_TICK_S = 1.0
_SILENCE = 15
_HEALTH_S = 1.0
_PAGE_S = 10.0
_log = logging.getLogger(__name__)


class RemoteWork:
    """Work of a core in another process."""

    def __init__(self, core: RemoteCore, number: int, answers: int, hear: Callable[[], None]) -> None:
        self.hear = hear
        self._core = core
        self._number = number
        self._left = set(range(answers))
        self._news: list[News] = []

    def take(self) -> list[News]:
        """What is new."""
        news, self._news = self._news, []
        return news

    def leave(self, answer: int) -> None:
        """Do no more for one answer."""
        if answer in self._left:
            self._core.send(Leave(self._number, answer))
            self._settle(answer)

    def cancel(self) -> None:
        """Leave all answers."""
        # Whoever asked has it, so it lets go of them: the collector would have to look for such rings.
        self.hear = _ignore
        if self._left:
            self._left.clear()
            self._core.send(Cancel(self._number))
            self._core.forget(self._number)

    def add(self, news: News) -> None:
        """Take news from the core."""
        if news.answer in self._left:
            self._news.append(news)
            if news.finish or news.error:
                self._settle(news.answer)

    def fail(self, error: CuelightError) -> None:
        """No more comes from the core."""
        self._news += [News(answer, [], error=error) for answer in sorted(self._left)]
        self._left.clear()
        self.hear()

    def _settle(self, answer: int) -> None:
        self._left.discard(answer)
        if not self._left:
            self._core.forget(self._number)


def _ignore() -> None:
    pass


class RemoteCore:
    """A `Core` at the other end of a channel.

    Parameters
    ----------
    facts : Facts
        What does not change.

    Attributes
    ----------
    lost : bool
        It is gone.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.lost = False
        self._numbers = itertools.count(1)
        self._works: dict[int, RemoteWork] = {}
        self._replies: dict[int, asyncio.Future[Any]] = {}

    async def open(
        self,
        end: socket.socket,
        settings_changed: Callable[[Settings], None],
        stop: Callable[[], None],
    ) -> None:
        """Talk to it from now on.

        Parameters
        ----------
        end : socket.socket
            This end of the channel; closed with it.
        settings_changed : callable
            Told settings when they were read again.
        stop : callable
            Called when the core wants the front end to end, and when it is gone.
        """
        self._settings_changed = settings_changed
        self._stop = stop
        self._channel = Channel(DECODER, self._hear, self._lose)
        await self._channel.open(end)
        self._pulse = asyncio.ensure_future(self._keep_in_touch())

    def close(self) -> None:
        """Say and hear nothing more."""
        self._pulse.cancel()
        self._channel.close()

    def tell_ready(self) -> None:
        """Let it know that this front end takes connections."""
        self.send(Ready())

    def ask(self, order: Order, hear: Callable[[], None]) -> RemoteWork:
        """Begin with an order; see `Core.ask`.

        Raises
        ------
        CoreLost
            It is gone.
        InvalidArgument
            The order is too long.
        """
        if self.lost:
            raise CoreLost
        number = next(self._numbers)
        self.send(Ask.of(number, order))
        work = self._works[number] = RemoteWork(self, number, order.answers, hear)
        return work

    async def health(self) -> Health:
        """How the service is now."""
        number = next(self._numbers)
        try:
            health: Health = await self._reply(number, HealthRequest(number), _HEALTH_S)
        except CuelightError as error:
            return Health(False, str(error))
        return health

    async def page(self, accept: str) -> tuple[bytes, str]:
        """All metrics in the format that an Accept header asks for, and its content type.

        Raises
        ------
        CoreLost, Timeout
            It is gone, or does not answer.
        """
        number = next(self._numbers)
        page: tuple[bytes, str] = await self._reply(number, PageRequest(number, accept), _PAGE_S)
        return page

    def send(self, message: msgspec.Struct) -> None:
        """Say something, if anybody is there."""
        if not self.lost:
            self._channel.send(message)

    def forget(self, number: int) -> None:
        """Nothing more comes of a work."""
        self._works.pop(number, None)

    async def _reply(self, number: int, request: msgspec.Struct, timeout_s: float) -> Any:
        if self.lost:
            raise CoreLost
        reply = self._replies[number] = asyncio.get_running_loop().create_future()
        self.send(request)
        try:
            async with asyncio.timeout(timeout_s):
                return await reply
        except TimeoutError:
            raise Timeout(
                f"The daemon's core has not answered for {timeout_s:g} s; restart the daemon if it goes on like this."
            ) from None
        finally:
            del self._replies[number]

    def _hear(self, message: FromCore) -> None:
        match message:
            case Tell(items):
                works = []
                for item in items:
                    if work := self._works.get(item.work):
                        work.add(item.news)
                        works.append(work)
                for work in dict.fromkeys(works):
                    work.hear()
            case HealthReply(number, health):
                self._settle(number, health)
            case PageReply(number, body, content_type):
                self._settle(number, (body, content_type))
            case Change(settings):
                self._settings_changed(Settings.model_validate_json(settings))
            case Stop():
                self._stop()

    def _settle(self, number: int, value: object) -> None:
        # Whoever asked may have given up.
        if (reply := self._replies.get(number)) and not reply.done():
            reply.set_result(value)

    def _lose(self) -> None:
        if not self.lost:
            self.lost = True
            for work in tuple(self._works.values()):
                work.fail(CoreLost())
            self._works.clear()
            for reply in self._replies.values():
                if not reply.done():
                    reply.set_exception(CoreLost())
            self._stop()

    async def _keep_in_touch(self) -> None:
        while not self.lost:
            with contextlib.suppress(CuelightError):
                await self.health()
            await asyncio.sleep(_TICK_S)
            self._channel.silence += 1
            if self._channel.silence > _SILENCE:
                _log.error("The core says nothing any more.")
                self._channel.close()
