"""One question's answers: from the core's tokens to pieces of text, without a thread that waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cuelight.daemon.metrics import Record
from cuelight.daemon.order import Order
from cuelight.daemon.seam import Core, News, Work
from cuelight.daemon.text import Placed, TextAssembler
from cuelight.engine.language import Language
from cuelight.errors import CuelightError
from cuelight.request import Finish

__all__ = ["Generation", "Gone", "Piece"]


class Gone(Exception):
    """Whoever asked is gone, so nobody wants an answer."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What is new of one answer.

    Parameters
    ----------
    index : int
        Which one.
    text : str
        May be empty.
    tokens : sequence of Placed
        Tokens whose text begins here.
    finish : str, optional
        "stop" or "length" with the last piece.
    """

    index: int
    text: str
    tokens: Sequence[Placed]
    finish: str | None


class _Sample:
    """One answer.

    Parameters
    ----------
    text : TextAssembler
        Its text.
    """

    def __init__(self, text: TextAssembler) -> None:
        self.finish: str | None = None
        self.count = 0
        self.start = 0
        self._text = text

    def read(self, news: News) -> Piece | None:
        """What news of it say, if anything."""
        self.start = news.start
        if not news.tokens and not news.finish:
            return None
        self.count += len(news.tokens)
        text, placed = self._text.add(news.tokens)
        if self._text.stopped is not None:
            self.finish = "stop"
        elif news.finish:
            self.finish = _FINISHES[news.finish]
            if not (news.tokens and news.tokens[-1].finish):
                rest = self._text.end()
                text, placed = text + rest.text, placed + rest.tokens
        return Piece(news.answer, text, placed, self.finish)


class Generation:
    """The answers that one question asks for, for one task of the event loop.

    `start`, then `next` until it returns nothing. `cancel` may be called at any time, and has to be at the end.

    Parameters
    ----------
    order : Order
        What is asked for.
    language : Language
        Makes text of tokens.
    core : Core
        Makes tokens.
    record : Record
        Times it, and counts how it ends.
    ended : callable
        Told when it was cancelled or is over.
    logs_text : bool
        Whether prompts and answers may be logged.
    """

    def __init__(
        self,
        order: Order,
        language: Language,
        core: Core,
        record: Record,
        ended: Callable[[Generation], object],
        *,
        logs_text: bool,
    ) -> None:
        self.order = order
        self.record = record
        self.logs_text = logs_text
        self._language = language
        self._core = core
        self._ended = ended
        self._cause: BaseException | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._work: Work | None = None
        self._news: list[News] = []
        self._said: list[list[int]] = [[] for _ in range(order.answers)]
        self._samples = [
            _Sample(TextAssembler(language.tokenizer.detokenizer(order.shown), order.stop))
            for _ in range(order.answers)
        ]

    def texts(self) -> dict[str, list[str]]:
        """Prompts and answers up to now, as the log may tell them."""
        return {
            "prompts": [self._language.decode(prompt) for prompt in self.order.prompts],
            "answers": [self._language.decode(tokens) for tokens in self._said],
        }

    @property
    def finish(self) -> str | None:
        """How the first answer ended; None while it lives or if it failed."""
        return self._samples[0].finish

    @property
    def prompt_tokens(self) -> int:
        """Tokens of all prompts together."""
        return sum(map(len, self.order.prompts))

    @property
    def new_tokens(self) -> int:
        """Tokens of all answers together, up to now."""
        return sum(sample.count for sample in self._samples)

    @property
    def cached_tokens(self) -> int:
        """Tokens of all prompts together that nobody had to prefill for their first answers."""
        return sum(sample.start for sample in self._samples[:: self.order.n])

    async def start(self) -> None:
        """Wait until an answer is on the device; if nobody looks at it before its end, until that.

        Raises
        ------
        Busy, Late
            There is no room, or not in time.
        CuelightError
            It can't run.
        Gone
            It was cancelled.
        """
        if self._cause is None:
            self._work = self._core.ask(self.order, self._wake)
        while not (news := await self._hear()):
            pass
        self._news = news
        if failed := next((one.error for one in news if one.error and not one.began_ns), None):
            raise failed
        self.record.start(min(one.began_ns for one in news))

    async def next(self) -> list[Piece]:
        """Wait for what is new, of all answers together; nothing once all are over.

        Raises
        ------
        CuelightError
            One has failed.
        Gone
            It was cancelled.
        """
        while not all(sample.finish for sample in self._samples):
            news, self._news = self._news or await self._hear(), []
            failed: CuelightError | None = None
            pieces = []
            for one in news:
                # What was left may end in whatever way.
                if not self._samples[one.answer].finish:
                    failed = failed or one.error
                    if piece := self._read(one):
                        pieces.append(piece)
            if pieces:
                # What came before a failure is told first.
                self._news = [one._replace(tokens=[]) for one in news if one.error]
                return pieces
            if failed:
                raise failed
        return []

    def cancel(self, cause: Exception | None = None) -> None:
        """Stop whatever is not over; who waits for it gets `cause`, or Gone. Twice is the same as once."""
        self._cause = self._cause or cause or Gone()
        if self._work:
            self._work.cancel()
        self._ended(self)
        self._wake()

    def _read(self, news: News) -> Piece | None:
        sample = self._samples[news.answer]
        self.record.take(news.answer, news.tokens)
        if self.logs_text:
            self._said[news.answer] += [token.token for token in news.tokens]
        piece = sample.read(news)
        if sample.finish and not news.finish and self._work:
            # A stop string ended it.
            self._work.leave(news.answer)
        return piece

    def _wake(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)

    async def _hear(self) -> list[News]:
        """News, after a wait if there are none; perhaps none even so."""
        if self._cause is None and self._work:
            if news := self._work.take():
                return news
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if self._cause is not None:
            raise self._cause
        return self._work.take() if self._work else []


_FINISHES = {Finish.END_OF_TEXT: "stop", Finish.LENGTH: "length", Finish.REPORTED: "stop"}
