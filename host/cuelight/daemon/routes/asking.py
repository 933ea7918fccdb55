"""What the routes that generate text have in common: who asks, in which tier, and for what."""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable

from starlette.types import Scope

from cuelight.daemon.failures import NotServed
from cuelight.daemon.headers import header
from cuelight.daemon.order import Order
from cuelight.daemon.schema.sampling import Sampling
from cuelight.daemon.service import Service
from cuelight.errors import InvalidArgument, PromptTooLong
from cuelight.filters import NO_FILTERS

__all__ = ["choose_order", "headers_of"]


async def choose_order(
    service: Service,
    scope: Scope,
    question: Sampling,
    encode: Callable[[], Awaitable[list[list[int]]]],
    *,
    most_new_tokens: int | None,
    top_logprobs: int,
) -> Order:
    """Make an order of a question.

    Parameters
    ----------
    service : Service
        Who is asked.
    scope : Scope
        Of its request: headers have the API key, and perhaps the tier.
    question : Sampling
        The question.
    encode : callable
        Gives its prompts; called once it is known that the client may ask.
    most_new_tokens : int, optional
        New tokens at most; the limit for questions that name none if left out.
    top_logprobs : int
        Likeliest tokens to report.

    Raises
    ------
    AccessDenied, NotAllowed, NotServed
        Not for this client, or not here.
    InvalidArgument, ChatTemplateError
        The question can't be right.
    """
    asked_ns = time.monotonic_ns()
    caller = service.access.caller(header(scope, b"authorization"))
    tier = caller.choose_tier(
        question.tier or header(scope, b"x-cuelight-tier"), question.service_tier, service.access.tiers
    )
    if question.model not in service.models:
        raise NotServed(f"There is no model {question.model!r} here; ask for {service.core.facts.model}.")
    _check(service, question)
    prompts = await encode()
    n = question.n or 1
    most = service.settings.limits.n
    if not 0 < len(prompts) * n <= most:
        raise InvalidArgument(
            f"The question asks for {len(prompts) * n} answers ({len(prompts)} prompts, n = {n}), and 1 to {most} "
            "are possible here; ask several times."
        )
    return Order(
        prompts=prompts,
        max_new_tokens=_fit(service, prompts, most_new_tokens),
        tier=tier,
        owner=caller.name,
        filters=question.filters,
        n=n,
        temperature=question.temperature,
        seed=random.getrandbits(64) if question.seed is None else question.seed % (1 << 64),
        stop=question.stops,
        top_logprobs=top_logprobs,
        asked_ns=asked_ns,
        whole=not question.stream,
    )


def headers_of(order: Order) -> dict[str, str]:
    """Headers that every answer to it has."""
    return {"X-Cuelight-Tier": order.tier}


def _check(service: Service, question: Sampling) -> None:
    most = service.settings.limits.stop
    if len(question.stops) > most:
        raise InvalidArgument(f"stop may name {most} texts at most here, not {len(question.stops)}; leave some out.")
    if not all(question.stops):
        raise InvalidArgument("A stop text is empty, so it would end every answer; leave it out.")
    if question.logit_bias:
        size = service.language.tokenizer.size
        if beyond := [token for token in question.logit_bias if not 0 <= token < size]:
            raise InvalidArgument(f"logit_bias names the token {beyond[0]}; this model has tokens 0 to {size - 1}.")
    if filters := question.filters:
        NO_FILTERS.override(**filters).check()


def _fit(service: Service, prompts: list[list[int]], most_new_tokens: int | None) -> int:
    """New tokens at most, if prompts and they fit the context."""
    context = service.core.facts.context
    longest = max(map(len, prompts))
    most = min(service.settings.limits.prompt_tokens or context, context - 1)
    if longest > most:
        raise PromptTooLong(f"The prompt has {longest} tokens, and {most} are possible here; shorten it.")
    if not min(map(len, prompts)):
        raise InvalidArgument("The prompt is empty; give it some text.")
    if most_new_tokens is None:
        return min(service.settings.limits.new_tokens, context - longest)
    if longest + most_new_tokens > context:
        raise PromptTooLong(
            f"A prompt of {longest} tokens and {most_new_tokens} new ones exceed the context of {context} positions; "
            "shorten the prompt or ask for fewer new tokens."
        )
    return most_new_tokens
