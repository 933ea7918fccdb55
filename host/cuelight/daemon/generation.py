"""One question's answers: from the device's tokens to pieces of text, without a thread that waits for them."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cuelight.daemon.admission import Admission, Ticket
from cuelight.daemon.metrics import Record
from cuelight.daemon.order import Order
from cuelight.daemon.text import Placed, TextAssembler
from cuelight.errors import RequestFailed
from cuelight.llm import LLM
from cuelight.request import Finish, Request

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
    index : int
        Which one.
    prompt : list of int
        What it answers.
    leader : _Sample, optional
        The first answer to the same prompt, if that is another one: what they have in common is prefilled once.
    text : TextAssembler
        Its text.
    record : Record
        Times its tokens.
    """

    def __init__(
        self, index: int, prompt: list[int], leader: _Sample | None, text: TextAssembler, record: Record
    ) -> None:
        self.index = index
        self.prompt = prompt
        self.leader = leader
        self.followers: list[Ticket] = []
        self.ticket: Ticket
        self.seen = 0
        self.finish: str | None = None
        self._text = text
        self._record = record

    def take(self) -> Piece | None:
        """What is new, if anything; raises why it failed."""
        request = self.ticket.request
        if self.finish:
            return None
        if request is None:
            if self.ticket.error:
                raise self.ticket.error
            return None
        # In this order: once it is over no token follows.
        over = request.done
        tokens = request.since(self.seen)
        if not tokens and not over:
            return None
        self.seen += len(tokens)
        self._record.take(self.index, tokens)
        passage = self._text.add(tokens)
        text, placed = passage
        if self._text.stopped is not None:
            self.finish = "stop"
        elif tokens and (last := tokens[-1].finish):
            self.finish = _FINISHES[last]
        elif over:
            self.finish = _FINISHES[_how_it_ended(request)]
            rest = self._text.end()
            text, placed = text + rest.text, placed + rest.tokens
        return Piece(self.index, text, placed, self.finish)


class Generation:
    """The answers that one question asks for, for one task of the event loop.

    `start`, then `next` until it returns nothing. `cancel` may be called at any time, and has to be at the end.

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
    record : Record
        Times it, and counts how it ends.
    ended : callable
        Told when it was cancelled or is over.

    Attributes
    ----------
    logs_text : bool
        Whether prompts and answers may be logged.
    """

    def __init__(
        self,
        order: Order,
        llm: LLM,
        level: int,
        admission: Admission,
        record: Record,
        ended: Callable[[Generation], object],
    ) -> None:
        self.order = order
        self.record = record
        self.logs_text = False
        self._llm = llm
        self._level = level
        self._admission = admission
        self._ended = ended
        self._cause: BaseException | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._samples: list[_Sample] = []
        for prompt in order.prompts:
            leader = None
            for _ in range(order.n):
                text = TextAssembler(llm.tokenizer.detokenizer(order.shown), order.stop)
                sample = _Sample(len(self._samples), prompt, leader, text, record)
                sample.ticket = Ticket(
                    order.tier,
                    order.owner,
                    functools.partial(self._submit, sample),
                    functools.partial(self._hear, sample),
                    patient=order.whole and not order.stop and order.n == 1,
                )
                if leader:
                    leader.followers.append(sample.ticket)
                else:
                    leader = sample
                self._samples.append(sample)

    def texts(self) -> dict[str, list[str]]:
        """Prompts and answers up to now, as the log may tell them."""
        requests = [sample.ticket.request for sample in self._samples]
        answers = [[token.token for token in request.received] if request else [] for request in requests]
        return {
            "prompts": [self._llm.decode(prompt) for prompt in self.order.prompts],
            "answers": [self._llm.decode(tokens) for tokens in answers],
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
        return sum(sample.seen for sample in self._samples)

    @property
    def cached_tokens(self) -> int:
        """Tokens of all prompts together that nobody had to prefill for their first answers."""
        return sum(
            sample.ticket.request.start for sample in self._samples if sample.ticket.request and not sample.leader
        )

    async def start(self) -> None:
        """Wait until an answer is on the device.

        Raises
        ------
        Busy, Late
            There is no room, or not in time.
        CuelightError
            It can't run.
        Gone
            It was cancelled.
        """
        self._admission.enter([sample.ticket for sample in self._samples])
        for sample in self._samples:
            # What has a block or more in common is prefilled once: followers wait for the first token.
            if not sample.leader or len(sample.prompt) <= self._llm.device.block_positions:
                self._admission.line_up(sample.ticket)
        while not any(sample.ticket.request for sample in self._samples):
            for sample in self._samples:
                if sample.ticket.error:
                    raise sample.ticket.error
            await self._wait()
        self.record.start()

    async def next(self) -> list[Piece]:
        """Wait for what is new, of all answers together; nothing once all are over.

        Raises
        ------
        CuelightError
            One has failed.
        Gone
            It was cancelled.
        """
        while True:
            if pieces := [piece for sample in self._samples if (piece := sample.take())]:
                for piece in pieces:
                    ticket = self._samples[piece.index].ticket
                    if piece.finish and ticket.request and not ticket.request.complete:
                        # A stop string ended it.
                        self._admission.leave(ticket)
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
            else:
                sample.ticket.abandon()
        self._ended(self)
        self._wake()

    def _submit(self, sample: _Sample) -> Request:
        order = self.order
        first = sample.leader and sample.leader.ticket.request
        return self._llm.submit(
            sample.prompt,
            order.max_new_tokens,
            group=first.group if first else None,
            temperature=order.temperature,
            seed=(order.seed + sample.index % order.n) % (1 << 64),
            tier=self._level,
            top_logprobs=order.top_logprobs,
            grammar=order.grammar,
            timeout_s=0.0,
            **order.filters,
        )

    def _hear(self, sample: _Sample) -> None:
        request = sample.ticket.request
        if request and sample.followers and (request.complete or request.since(0)):
            for ticket in sample.followers:
                self._admission.line_up(ticket, ahead=True)
            sample.followers = []
        # Somebody who waits for the end need not be told of each token, unless it may be the last one.
        if not self.order.whole or self.order.stop or not request or request.complete or not sample.seen:
            self._wake()

    def _wake(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)

    async def _wait(self) -> None:
        if self._cause is None:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if self._cause is not None:
            raise self._cause


_FINISHES = {Finish.END_OF_TEXT: "stop", Finish.LENGTH: "length", Finish.REPORTED: "stop"}


def _how_it_ended(request: Request) -> Finish:
    if request.error:
        raise request.error.with_traceback(None)
    if request.finish is None or request.finish is Finish.CANCELLED:
        raise RequestFailed("The request was cancelled by somebody else than its client; submit it again.")
    return request.finish
