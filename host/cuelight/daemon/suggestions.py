"""What a user might ask next: a second generation, for clients that ask for it."""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from cuelight.daemon.generation import Generation
from cuelight.daemon.order import Order
from cuelight.daemon.service import Service
from cuelight.errors import CuelightError

__all__ = ["Suggester", "read_suggestions"]

_WISH = "Suggest {count} short questions that I could ask you next. Write each on a line of its own, and nothing else."
_TOKENS = 32
"""New tokens for each suggestion."""
_BULLET = re.compile(r"^\s*(?:[-*•]|\(?\d{1,2}[.):])?\s*")


class Suggester:
    """Asks the model for suggestions once its answer is there.

    Parameters
    ----------
    service : Service
        Where.
    order : Order
        What was asked for; suggestions are made in the same tier, for the same owner.
    messages : sequence of mappings
        The chat that was answered.
    count : int
        Suggestions at most.
    """

    def __init__(self, service: Service, order: Order, messages: Sequence[Mapping[str, Any]], count: int) -> None:
        self._service = service
        self._order = order
        self._messages = messages
        self._count = count
        self._left = False
        self._generation: Generation | None = None

    async def suggest(self, answer: str) -> list[str]:
        """Suggestions after `answer`; none where there is no room or no time for them: the answer stands without.

        Raises
        ------
        Gone
            The client has left.
        """
        chat = [
            *self._messages,
            {"role": "assistant", "content": answer},
            {"role": "user", "content": _WISH.format(count=self._count)},
        ]
        pieces: list[str] = []
        try:
            prompts = await self._service.encode_chat(chat)
            left = self._service.core.facts.context - len(prompts[0])
            order = dataclasses.replace(
                self._order,
                prompts=prompts,
                max_new_tokens=max(1, min(_TOKENS * self._count, left)),
                n=1,
                stop=(),
                top_logprobs=0,
                grammar=None,
                shown=frozenset(),
                whole=True,
                asked_ns=time.monotonic_ns(),
            )
            self._generation = self._service.generation(order)
            if self._left:
                self._generation.cancel()
            await self._generation.start()
            while fresh := await self._generation.next():
                pieces += [piece.text for piece in fresh]
        except CuelightError:
            return []
        finally:
            self.leave()
        return read_suggestions("".join(pieces), self._count)

    def leave(self) -> None:
        """Stop whatever is under way."""
        self._left = True
        if self._generation:
            self._generation.cancel()


def read_suggestions(text: str, count: int) -> list[str]:
    """The first `count` lines that say something, without bullets and numbers, each once."""
    lines = (_BULLET.sub("", line, count=1).strip() for line in text.splitlines())
    return list(dict.fromkeys(line for line in lines if line))[:count]
