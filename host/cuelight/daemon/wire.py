"""What core and front-end processes say to each other, as messages of a channel."""

from __future__ import annotations

from typing import NamedTuple, Self

import msgspec

from cuelight.daemon.failures import Busy, Late
from cuelight.daemon.order import Order
from cuelight.daemon.seam import Facts, Health, News
from cuelight.engine.grammar import GrammarText
from cuelight.errors import CuelightError
from cuelight.filters import FilterSettings
from cuelight.request import Finish, Token

__all__ = [
    "Ask",
    "Cancel",
    "Change",
    "Failure",
    "FromCore",
    "FromFrontEnd",
    "HealthReply",
    "HealthRequest",
    "Item",
    "Leave",
    "PageReply",
    "PageRequest",
    "Ready",
    "Stop",
    "Tell",
    "Welcome",
]


class Message(msgspec.Struct, array_like=True):
    """A list in msgpack, led by what kind of message it is."""


class Ask(Message, tag=1):
    """A front end has an order."""

    work: int
    """A number that the front end has not used before."""
    prompts: list[list[int]]
    max_new_tokens: int
    tier: str
    owner: str
    filters: FilterSettings
    n: int
    temperature: float | None
    seed: int
    top_logprobs: int
    grammar: GrammarText | None
    whole: bool

    @classmethod
    def of(cls, work: int, order: Order) -> Self:
        """Put an order into words; stop strings and what else is about text stays with the front end."""
        return cls(
            work,
            list(order.prompts),
            order.max_new_tokens,
            order.tier,
            order.owner,
            order.filters,
            order.n,
            order.temperature,
            order.seed,
            order.top_logprobs,
            order.grammar.text if order.grammar else None,
            order.patient,
        )


class Leave(Message, tag=2):
    """Nobody wants one answer any more."""

    work: int
    answer: int


class Cancel(Message, tag=3):
    """Nobody wants anything of an order any more."""

    work: int


class HealthRequest(Message, tag=4):
    """A front end asks how the core is."""

    number: int


class PageRequest(Message, tag=5):
    """A front end asks for the metrics."""

    number: int
    accept: str


class Ready(Message, tag=6):
    """A front end takes connections."""


class Welcome(Message, tag=16):
    """The first that a front end hears."""

    facts: Facts
    settings: bytes
    """JSON."""


class Failure(NamedTuple):
    """An error, by the name of its class."""

    kind: str
    message: str
    retry_after_s: float = 0.0
    answer: str = ""

    @classmethod
    def of(cls, error: CuelightError) -> Self:
        """Put an error into words."""
        retry_after_s = error.retry_after_s if isinstance(error, Busy) else 0.0
        answer = error.answer if isinstance(error, Late) else ""
        return cls(type(error).__name__, str(error), retry_after_s, answer)

    @property
    def error(self) -> CuelightError:
        """The error again."""
        if self.kind == Busy.__name__:
            return Busy(self.message, self.retry_after_s)
        if self.kind == Late.__name__:
            return Late(self.answer)
        return _kinds().get(self.kind, CuelightError)(self.message)


class Item(NamedTuple):
    """News of one answer of one order."""

    work: int
    answer: int
    tokens: list[Token]
    start: int
    began_ns: int
    finish: Finish | None
    failure: Failure | None

    @classmethod
    def of(cls, work: int, news: News) -> Self:
        """Put news into words."""
        answer, tokens, start, began_ns, finish, error = news
        return cls(work, answer, tokens, start, began_ns, finish, Failure.of(error) if error else None)

    @property
    def news(self) -> News:
        """The news again."""
        error = self.failure.error if self.failure else None
        return News(self.answer, self.tokens, self.start, self.began_ns, self.finish, error)


class Tell(Message, tag=17):
    """What is new, of any answers."""

    items: list[Item]


class HealthReply(Message, tag=18):
    """How the core is."""

    number: int
    health: Health


class PageReply(Message, tag=19):
    """The metrics."""

    number: int
    body: bytes
    content_type: str


class Change(Message, tag=20):
    """Settings were read again."""

    settings: bytes
    """JSON."""


class Stop(Message, tag=21):
    """Take nothing new and let what is under way end; the second time, end at once."""


FromFrontEnd = Ask | Leave | Cancel | HealthRequest | PageRequest | Ready
FromCore = Welcome | Tell | HealthReply | PageReply | Change | Stop


def _kinds() -> dict[str, type[CuelightError]]:
    kinds: dict[str, type[CuelightError]] = {}
    left: list[type[CuelightError]] = [CuelightError]
    while left:
        kind = left.pop()
        kinds[kind.__name__] = kind
        left += kind.__subclasses__()
    return kinds
