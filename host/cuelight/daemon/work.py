"""What the core does for one order: a request of the device for each answer."""

from __future__ import annotations

import functools
from collections.abc import Callable

from cuelight.daemon.admission import Admission, Ticket
from cuelight.daemon.order import Order
from cuelight.daemon.seam import News
from cuelight.errors import CuelightError, RequestFailed
from cuelight.llm import LLM
from cuelight.request import Finish, Request

__all__ = ["DeviceWork"]


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
    """

    def __init__(self, index: int, prompt: list[int], leader: _Sample | None) -> None:
        self.index = index
        self.prompt = prompt
        self.leader = leader
        self.followers: list[Ticket] = []
        self.ticket: Ticket
        self.began = False
        self.over = False
        self._seen = 0

    def take(self, most: int | None) -> News | None:
        """What is new, with `most` tokens at most."""
        request = self.ticket.request
        if request is None:
            if self.ticket.error is None:
                return None
            self.over = True
            return News(self.index, [], error=self.ticket.error)
        # In this order: once it is over no token follows.
        over = request.done
        tokens = request.since(self._seen)
        if not tokens and not over and self.began:
            return None
        self.began = True
        if most is not None and len(tokens) > most:
            tokens, over = tokens[:most], False
        self._seen += len(tokens)
        finish = tokens[-1].finish if tokens else None
        error = None
        if over and not finish:
            finish, error = _how_it_ended(request)
        self.over = finish is not None or error is not None
        return News(self.index, tokens, request.start, request.submitted_ns, finish, error)


class DeviceWork:
    """Work of the core that has the device.

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
    hear : callable
        Called when there is something to take. Where nobody looks at an answer before its end, that is then.

    Attributes
    ----------
    open : int
        Answers of which there may be more to tell.

    Raises
    ------
    Busy, Late
        There is no room, or not in time.
    """

    def __init__(self, order: Order, llm: LLM, level: int, admission: Admission, hear: Callable[[], None]) -> None:
        self._order = order
        self._llm = llm
        self._level = level
        self._admission = admission
        self._tell = hear
        self._samples: list[_Sample] = []
        self.open = order.answers
        for prompt in order.prompts:
            leader = None
            for _ in range(order.n):
                sample = _Sample(len(self._samples), prompt, leader)
                sample.ticket = Ticket(
                    order.tier,
                    order.owner,
                    functools.partial(self._submit, sample),
                    functools.partial(self._hear, sample),
                    patient=order.patient and order.n == 1,
                )
                if leader:
                    leader.followers.append(sample.ticket)
                else:
                    leader = sample
                self._samples.append(sample)
        admission.enter([sample.ticket for sample in self._samples])
        for sample in self._samples:
            # What has a block or more in common is prefilled once: followers wait for the first token.
            if not sample.leader or len(sample.prompt) <= llm.device.block_positions:
                admission.line_up(sample.ticket)

    def take(self, most: int | None = None) -> list[News]:
        """What is new, with `most` tokens of each answer at most."""
        fresh = [news for sample in self._samples if not sample.over and (news := sample.take(most))]
        self.open -= sum(news.finish is not None or news.error is not None for news in fresh)
        return fresh

    def leave(self, answer: int) -> None:
        """Do no more for one answer."""
        sample = self._samples[answer]
        self.open -= not sample.over
        sample.over = True
        if sample.ticket.request and sample.ticket.request.complete:
            sample.ticket.abandon()
        else:
            self._admission.leave(sample.ticket)

    def cancel(self) -> None:
        """Leave all answers; nobody is called back any more."""
        self._tell = _ignore
        for sample in self._samples:
            self.leave(sample.index)

    def _submit(self, sample: _Sample) -> Request:
        order = self._order
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
        if not self._order.patient or request is None or request.complete:
            self._tell()


def _ignore() -> None:
    pass


def _how_it_ended(request: Request) -> tuple[Finish | None, CuelightError | None]:
    if request.error:
        return None, request.error.with_traceback(None)
    if request.finish is None or request.finish is Finish.CANCELLED:
        return None, RequestFailed("The request was cancelled by somebody else than its client; submit it again.")
    return request.finish, None
