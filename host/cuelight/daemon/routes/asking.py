"""What the routes that generate text have in common: who asks, in which tier, and for what."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable

from starlette.datastructures import Headers

from cuelight.daemon.failures import NotServed
from cuelight.daemon.order import Order
from cuelight.daemon.schema.sampling import Sampling
from cuelight.daemon.service import Service
from cuelight.errors import InvalidArgument, PromptTooLong

__all__ = ["choose_order", "headers_of"]


async def choose_order(
    service: Service,
    headers: Headers,
    question: Sampling,
    encode: Callable[[], Awaitable[list[int]]],
    *,
    most_new_tokens: int | None,
    top_logprobs: int,
) -> Order:
    """Make an order of a question.

    Parameters
    ----------
    service : Service
        Who is asked.
    headers : Headers
        With the API key, and perhaps the tier.
    question : Sampling
        The question.
    encode : callable
        Gives its prompt; called once it is known that the client may ask.
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
    caller = service.access.caller(headers.get("authorization"))
    tier = caller.choose_tier(
        question.tier or headers.get("x-cuelight-tier"), question.service_tier, service.access.tiers
    )
    if question.model not in service.models:
        raise NotServed(f"There is no model {question.model!r} here; ask for {service.model}.")
    limits = service.settings.limits
    n = question.n or 1
    if n > limits.n:
        raise InvalidArgument(f"n may be {limits.n} at most here, not {n}; ask several times instead.")
    if len(question.stops) > limits.stop:
        raise InvalidArgument(f"stop may name {limits.stop} texts at most here, not {len(question.stops)}.")
    if not all(question.stops):
        raise InvalidArgument("A stop text is empty, so it would end every answer; leave it out.")
    vocabulary = service.llm.tokenizer.size
    if beyond := [token for token in question.logit_bias or () if not 0 <= token < vocabulary]:
        raise InvalidArgument(f"logit_bias names the token {beyond[0]}; this model has tokens 0 to {vocabulary - 1}.")
    filters = question.filters
    tokens = await encode()
    context = service.llm.device.context
    longest = min(limits.prompt_tokens or context, context - 1)
    if not 0 < len(tokens) <= longest:
        raise PromptTooLong(
            f"The prompt has {len(tokens)} tokens, and 1 to {longest} are possible here; "
            + ("shorten it." if tokens else "give it some text.")
        )
    if most_new_tokens is None:
        most_new_tokens = min(limits.new_tokens, context - len(tokens))
    elif len(tokens) + most_new_tokens > context:
        raise PromptTooLong(
            f"A prompt of {len(tokens)} tokens and {most_new_tokens} new ones exceed the context of {context}; "
            "shorten the prompt or ask for fewer new tokens."
        )
    return Order(
        tokens=tokens,
        max_new_tokens=most_new_tokens,
        tier=tier,
        owner=caller.name,
        filters=filters,
        n=n,
        temperature=question.temperature,
        seed=secrets.randbits(64) if question.seed is None else question.seed % (1 << 64),
        stop=question.stops,
        top_logprobs=top_logprobs,
    )


def headers_of(order: Order) -> dict[str, str]:
    """Headers that every answer to it has."""
    return {"X-Cuelight-Tier": order.tier}
