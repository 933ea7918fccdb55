"""One question's continuations: from the device's tokens to pieces of text, without a thread to wait for them."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cuelight.daemon.admission import Admission, Ticket
from cuelight.daemon.order import Order
from cuelight.detokenize import Detokenizer
from cuelight.errors import RequestFailed
from cuelight.llm import LLM
from cuelight.request import Finish, Request, Token

__all__ = ["Generation", "Gone", "Piece"]


class Gone(Exception):
    """Whoever asked is gone, so nobody wants an answer."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What is new of one continuation.

    Parameters
    ----------
    index : int
        Which one.
    text : str
        May be empty.
    tokens : list of Token
        Tokens that came; the text of the last ones may be held back.
    finish : str, optional
        "stop" or "length" with the last piece.
    """

    index: int
    text: str
    tokens: list[Token]
    finish: str | None


class _Sample:
    """One continuation."""

    def __init__(self, index: int, ticket: Ticket, decode: Callable[[Sequence[int]], str]) -> None:
        self.index = index
        self.ticket = ticket
        self.seen = 0
        self.finish: str | None = None
        self._detokenizer = Detokenizer(decode)

    def take(self) -> Piece | None:
        """What is new, if anything; raises why it failed."""
        request = self.ticket.request
        if self.finish or (request is None and self.ticket.error is None):
            return None
        if request is None:
            assert self.ticket.error
            raise self.ticket.error
        done = request.done
        tokens = request.since(self.seen)
        if not tokens and not done:
            return None
        self.seen += len(tokens)
        last = tokens[-1].finish if tokens else None
        if done and last is None:
            last = _end(request)
        text = "".join([self._detokenizer.add(token.token) for token in tokens if token.finish is not _STOP])
        if last is not None:
            text += self._detokenizer.flush()
            self.finish = _FINISHES[last]
        return Piece(self.index, text, tokens, self.finish)


class Generation:
    """The continuations that one question asks for; for one task of the event loop.

    `start`, then `next` until it returns nothing. `cancel` may be called at any time, and has to be called at the end
    if there may be something left to stop.

    Parameters
    ----------
    order : Order
        What is asked for.
    llm : LLM
        Where.
    level : int
        The device's tier.
    admission : Admission
        Lets its requests onto the device.
    ended : callable
        Told when it was cancelled or is over.

    Attributes
    ----------
    prompt_tokens : int
        Length of the prompt.
    """

    def __init__(
        self, order: Order, llm: LLM, level: int, admission: Admission, ended: Callable[[Generation], object]
    ) -> None:
        self.order = order
        self.prompt_tokens = len(order.tokens)
        self._llm = llm
        self._level = level
        self._admission = admission
        self._ended = ended
        self._cause: BaseException | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._samples = [
            _Sample(
                index,
                Ticket(order.tier, order.owner, functools.partial(self._submit, index), self._hear),
                llm.decode,
            )
            for index in range(order.n)
        ]

    @property
    def new_tokens(self) -> int:
        """Tokens that came and were looked at, of all continuations together."""
        return sum(sample.seen for sample in self._samples)

    @property
    def cached_tokens(self) -> int:
        """Tokens of the prompt that the first continuation did not have to prefill."""
        request = self._samples[0].ticket.request
        return request.start if request else 0

    async def start(self) -> None:
        """Wait until the first continuation is on the device.

        Raises
        ------
        Busy, Late
            There is no room, or not in time.
        CuelightError
            It can't run.
        Gone
            It was cancelled.
        """
        tickets = [sample.ticket for sample in self._samples]
        first = tickets[0]
        self._admission.enter(tickets)
        # What has a block or more in common is prefilled once: the others follow at the first one's first token.
        if self.prompt_tokens <= self._llm.device.block_positions:
            self._line_up_others()
        while first.request is None and first.error is None:
            await self._wait()
        if first.error:
            raise first.error

    async def next(self) -> list[Piece]:
        """Wait for what is new, of all continuations together; nothing once all are over.

        Raises
        ------
        CuelightError
            One has failed.
        Gone
            It was cancelled.
        """
        while True:
            if pieces := [piece for sample in self._samples if (piece := sample.take())]:
                if self._samples[0].seen or self._samples[0].finish:
                    self._line_up_others()
                return pieces
            if all(sample.finish for sample in self._samples):
                return []
            await self._wait()

    def cancel(self, cause: Exception | None = None) -> None:
        """Stop whatever is not over; who waits for it gets `cause`, or Gone. Twice is the same as once."""
        self._cause = self._cause or cause or Gone()
        for sample in self._samples:
            if sample.finish is None:
                self._admission.leave(sample.ticket)
        self._ended(self)
        self._hear()

    def _submit(self, index: int) -> Request:
        order = self.order
        first = self._samples[0].ticket.request
        return self._llm.submit(
            order.tokens,
            order.max_new_tokens,
            # The others find the first one's prompt where that has run.
            group=first.group if index and first else None,
            temperature=order.temperature,
            seed=(order.seed + index) % (1 << 64),
            tier=self._level,
            top_logprobs=order.top_logprobs,
            timeout_s=0.0,
            **order.filters,
        )

    def _line_up_others(self) -> None:
        for sample in self._samples[1:]:
            self._admission.line_up(sample.ticket, ahead=True)

    def _hear(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)

    async def _wait(self) -> None:
        if self._cause is None:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if self._cause is not None:
            raise self._cause


_STOP = Finish.END_OF_TEXT
_FINISHES = {
    Finish.END_OF_TEXT: "stop",
    Finish.LENGTH: "length",
    Finish.REPORTED: "stop",
}


def _end(request: Request) -> Finish:
    if request.error:
        raise request.error.with_traceback(None)
    if request.finish is None or request.finish is Finish.CANCELLED:
        raise RequestFailed("The request was cancelled by somebody else than its client; submit it again.")
    return request.finish
