"""A request of the device: its tokens as they come, and how it ended."""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cuelight.arguments import check_mask
from cuelight.blocks import Lease
from cuelight.errors import CuelightError, InvalidArgument, LaneError, RequestCancelled, Timeout
from cuelight.lanes.types import SlotRecord

__all__ = ["DEFAULT_TIMEOUT_S", "Finish", "Request", "Token"]

DEFAULT_TIMEOUT_S = 60.0
"""How long an iterator waits for the next token, unless told otherwise."""


class Finish(enum.StrEnum):
    """How a request ended."""

    END_OF_TEXT = "end_of_text"
    """The model said so; the last token is its end of text."""

    LENGTH = "length"
    """All the new tokens it may have."""

    REPORTED = "reported"
    """The lane reported its seat as finished and gave no reason."""

    CANCELLED = "cancelled"


class Token(NamedTuple):
    """One token of a request."""

    position: int
    """Position in the sequence, prompt included."""

    token: int

    logprob: float
    """Natural logarithm of the model's probability before temperature."""

    finish: Finish | None
    """Set on the last token only."""

    time_ns: int
    """When the driver saw it, `time.monotonic_ns`."""

    alternatives: tuple[tuple[int, float], ...] = ()
    """The likeliest tokens at its position, the likeliest first, with their log probabilities; as many as asked for."""


class Request:
    """One generation that lives on the device; made by `Device.submit`.

    If its lane or its device is lost, it is admitted again with the tokens it has, and goes on.

    Iterating yields its tokens from the first one, however often and from however many threads. An iteration ends
    when the request has finished or was cancelled, and raises when its lane or the device failed.

    Attributes
    ----------
    id : int
        Request id, `epoch << 16 | slot`; 0 until admitted, another one when admitted again.
    group, tier : int
        Lane group and latency tier.
    prompt_tokens, max_new_tokens : int
        Lengths, in tokens.
    seed : int
        What its random numbers are keyed by, with the position.
    kv_blocks : int
        KV blocks it takes.
    lease : Lease or None
        Those blocks; None until admitted.
    stepped : bool
        Whether it parks by itself after each of its tokens.
    mask : array of uint32, or None
        Tokens that its next one is chosen among, token t as bit t mod 32 of word t / 32; None: it has no masks.
    start : int
        Positions that were found in the prefix cache, so that they need no prefill.
    whole_at : int
        Position whose token tells that another KV block is written to its end.
    submitted_ns : int
        When `submit` was called, `time.monotonic_ns`.
    """

    def __init__(
        self,
        group: int,
        tier: int,
        record: SlotRecord,
        kv_blocks: int,
        cancel: Callable[[Request], bool],
        tell: Callable[[Request], None],
        *,
        stepped: bool = False,
        mask: NDArray[np.uint32] | None = None,
    ) -> None:
        self.id = 0
        self.group = group
        self.tier = tier
        self.prompt_tokens = len(record.prompt)
        self.max_new_tokens = record.limit
        self.seed = record.seed
        self.kv_blocks = kv_blocks
        self.stepped = stepped or mask is not None
        self.mask = mask
        self.lease: Lease | None = None
        self.start = 0
        self.whole_at = 0
        self.submitted_ns = time.monotonic_ns()
        self._record = record
        self._cancel = cancel
        self._tell = tell
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._ended = threading.Condition(self._lock)
        self._listeners: tuple[Callable[[], object], ...] = ()
        self._patient_listeners: tuple[Callable[[], object], ...] = ()
        self._tokens: list[Token] = []
        self._cancelled = False
        # Remembered credits, or -1: parked, or about to be. What the device has heard of it may be behind.
        self._credits = 0
        self._heard = 0
        self._goes_on = False
        self._losses = 0
        self._kept = 0
        self._accompanied = False
        self._alternatives: dict[int, float] = {}
        self._failure: CuelightError | None = None
        self._finish: Finish | None = None
        self._error: CuelightError | None = None

    @property
    def slot(self) -> int:
        """Slot of the device."""
        return self.id & 0xFFFF

    @property
    def done(self) -> bool:
        """Whether it is over; its slot and blocks are free then."""
        return self._finish is not None or self._error is not None

    @property
    def complete(self) -> bool:
        """Whether no token follows; it may still hold its slot and blocks."""
        return self.done or bool(self._tokens and self._tokens[-1].finish)

    @property
    def finish(self) -> Finish | None:
        """How it ended; None while it lives or if it failed."""
        return self._finish

    @property
    def error(self) -> CuelightError | None:
        """Why it failed, if it did."""
        return self._error

    @property
    def received(self) -> tuple[Token, ...]:
        """Tokens that have come so far."""
        return tuple(self._tokens)

    def record(self, request_id: int, block_table: NDArray[np.int32]) -> SlotRecord:
        """What its lane must know to go on from here."""
        asked, produced = self._record, len(self._tokens)
        return SlotRecord(
            request_id,
            self.sequence,
            asked.limit - produced,
            block_table,
            asked.temperature,
            asked.seed,
            asked.ignore_eos,
            asked.filters,
            asked.top_logprobs,
            produced,
            asked.masked,
        )

    @property
    def sequence(self) -> NDArray[np.int32]:
        """Token ids of the prompt and of what has come so far, shape (tokens,)."""
        if not self._tokens:
            return self._record.prompt
        return np.concatenate([self._record.prompt, np.array([token.token for token in self._tokens], np.int32)])

    @property
    def next_position(self) -> int:
        """Position of the token that comes next."""
        return self.prompt_tokens + len(self._tokens)

    @property
    def blamed(self) -> bool:
        """Whether a cause was noted why it will not finish."""
        return self._failure is not None

    @property
    def cancelled(self) -> bool:
        """Whether it was asked to end."""
        return self._cancelled

    @property
    def parked(self) -> bool:
        """Whether it waits for a credit, or will once its pass is over."""
        return self._credits < 0 and not self.done

    @property
    def progressed(self) -> bool:
        """Whether it has had a token since it was admitted."""
        return len(self._tokens) > self._kept

    @property
    def accompanied(self) -> bool:
        """Whether its lane was lost while others had no token either, so that any of them may be to blame."""
        return self._accompanied

    @property
    def losses(self) -> int:
        """How often in a row its lane or device was lost before it got another token."""
        return self._losses

    def cancel(self) -> bool:
        """Cancel it, in whatever state it is.

        Returns
        -------
        bool
            Whether the device took the cancel; False if the request is over or ending. Either way it ends soon, and
            tokens that came first are kept.
        """
        if self.done:
            return False
        # Before the device hears of it: a request that is lost now is not admitted again.
        self._cancelled = True
        return self._cancel(self)

    def park(self) -> bool:
        """Leave it out of passes, from the end of the one under way on, until it has a credit.

        It keeps its KV blocks, and its seat until somebody of a higher tier wants it. Twice is the same as once. If a
        credit was remembered, that is used up instead.

        Returns
        -------
        bool
            False if it is over.

        Raises
        ------
        InvalidArgument
            It is stepped.
        """
        if self.stepped:
            raise InvalidArgument(
                "A stepped request parks by itself after each of its tokens; give it its credit later instead."
            )
        return self._count(-1)

    def credit(self, mask: NDArray[np.uint32] | None = None) -> bool:
        """Let it go on if it is parked; a stepped one, to its next token.

        Otherwise the credit is remembered, once, and used up when it would park the next time.

        Parameters
        ----------
        mask : array of uint32, optional
            For a request with masks, and only for one: those tokens that the next one is chosen among. It must have
            parked, or be about to: its latest token has come, and no credit since.

        Returns
        -------
        bool
            False if it is over.

        Raises
        ------
        InvalidArgument
            A mask is missing, is not of the shape of the first one, allows nothing, or is not wanted now.
        """
        if (mask is None) != (self.mask is None):
            raise InvalidArgument("A request with masks needs one with each credit, and no other may have one.")
        return self._count(1, mask)

    def tokens(self, timeout_s: float = DEFAULT_TIMEOUT_S) -> Iterator[Token]:
        """Yield its tokens from the first one, as they come.

        Parameters
        ----------
        timeout_s : float
            Longest wait for one token, in seconds. A `Timeout` does not cancel the request.

        Raises
        ------
        Timeout
            No token came in time.
        LaneError, DeviceLost, DeviceClosed
            The request failed.
        """
        seen = 0
        while fresh := self._next(seen, timeout_s):
            seen += len(fresh)
            yield from fresh

    def __iter__(self) -> Iterator[Token]:
        return self.tokens()

    def listen(self, listener: Callable[[], object], *, patient: bool = False) -> None:
        """Have `listener` called now, and after tokens and at the end, by whichever thread brings them.

        For callers that serve many requests without a thread for each. It must return at once and raise nothing: the
        driver's own thread waits for it.

        Parameters
        ----------
        listener : callable
            Called without arguments.
        patient : bool
            Not after tokens, but for the last one.
        """
        with self._lock:
            if not self.done:
                if patient:
                    self._patient_listeners += (listener,)
                else:
                    self._listeners += (listener,)
            listener()

    def since(self, seen: int) -> list[Token]:
        """Tokens after the first `seen` that have come so far; does not wait."""
        return self._tokens[seen:]

    def wait(self, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        """Wait until it is over, however it ended.

        Raises
        ------
        Timeout
            It is not over after `timeout_s` seconds.
        """
        with self._lock:
            if not self._ended.wait_for(lambda: self.done, timeout_s):
                raise Timeout(f"Request {self.id:#010x} is not over after {timeout_s:g} s; wait longer or cancel it.")

    def result(self, timeout_s: float = DEFAULT_TIMEOUT_S) -> list[Token]:
        """Wait until it has finished, and return all its tokens.

        Raises
        ------
        Timeout
            It is not over after `timeout_s` seconds.
        RequestCancelled
            It was cancelled.
        LaneError, DeviceLost, DeviceClosed
            It failed.
        """
        self.wait(timeout_s)
        if self._error:
            raise self._error.with_traceback(None)
        if self._finish is Finish.CANCELLED:
            raise RequestCancelled(
                f"Request {self.id:#010x} was cancelled after {len(self._tokens)} tokens; iterate over it for those."
            )
        return list(self._tokens)

    def _next(self, seen: int, timeout_s: float) -> list[Token]:
        with self._lock:
            if not self._changed.wait_for(lambda: self.done or len(self._tokens) > seen, timeout_s):
                raise Timeout(
                    f"Request {self.id:#010x} gave no token within {timeout_s:g} s; wait longer or cancel it."
                )
            fresh = self._tokens[seen:]
            if not fresh and self._error:
                raise self._error.with_traceback(None)
            return fresh

    def _count(self, credits: int, mask: NDArray[np.uint32] | None = None) -> bool:
        with self._lock:
            if self.done:
                return False
            if mask is not None and self.mask is not None:
                # Its lane may be looking at the one before.
                if not self.parked:
                    raise InvalidArgument("The request has its mask already; give it the next one after its token.")
                self.mask = check_mask(mask, len(self.mask))
            self._credits = min(1, max(-1, self._credits + credits))
            self._changed.notify_all()
        self._tell(self)
        return True

    def take_news(self) -> int:
        """What its device must hear to be in step with it: so many credits, or, if negative, to park it."""
        with self._lock:
            # The device need not know of a credit that only keeps the host from parking it.
            wanted = self._credits if self.stepped else min(0, self._credits)
            news, self._heard = wanted - self._heard, wanted
            repeat, self._goes_on = self._goes_on and wanted < 0, False
            return news or -int(repeat)

    def begin(self, request_id: int, lease: Lease, block_positions: int) -> None:
        """Note what it is admitted with, and how many positions a KV block has."""
        with self._lock:
            self.id, self.lease, self.start = request_id, lease, lease.hits * block_positions
            self.whole_at = self.start + block_positions
            self._heard, self._goes_on = 0, False

    def propose(self, position: int, token: int, logprob: float) -> None:
        """Note one of the likeliest tokens at `position`; the token itself follows.

        A lane that starts again may repeat them.
        """
        if position == self.prompt_tokens + len(self._tokens):
            self._alternatives[token] = logprob

    def deliver(self, position: int, token: int, logprob: float, finish: Finish | None, time_ns: int) -> bool:
        """Add a token that came from the lane; a repeated one is dropped. Nobody hears of it before `announce`.

        Returns
        -------
        bool
            Whether its device must hear something; see `take_news`.

        Raises
        ------
        LaneError
            The lane left out a position.
        """
        with self._lock:
            tokens = self._tokens
            expected = self.prompt_tokens + len(tokens)
            if not self.prompt_tokens <= position <= expected:
                raise LaneError(
                    f"Lane {self.group} sent position {position} of request {self.id:#010x} where {expected} was due; "
                    "report this as a bug of the lane."
                )
            if position < expected or self.done:
                return False
            alternatives: tuple[tuple[int, float], ...] = ()
            if self._alternatives:
                alternatives = tuple(self._alternatives.items())
                self._alternatives.clear()
            tokens.append(Token(position, token, logprob, finish, time_ns, alternatives))
            if self.stepped:
                self._credits, self._heard = max(-1, self._credits - 1), max(-1, self._heard - 1)
                return False
            # It may have been credited and parked again within one pass, for which the device remembered the credit.
            self._goes_on = self._credits < 0
            return self._goes_on

    def announce(self) -> None:
        """Wake who waits for its tokens, and tell listeners: after `deliver`, once for all tokens that came at once."""
        with self._lock:
            self._tell_all()

    def blame(self, error: CuelightError) -> None:
        """Note why the request will not finish by itself; it fails with this when the device retires it."""
        with self._lock:
            self._failure = self._failure or error

    def retire(self, cancelled: bool) -> None:
        """End it as the device said: finished or cancelled."""
        with self._lock:
            if self.done:
                return
            last = self._tokens[-1].finish if self._tokens else None
            if last and not cancelled:
                self._finish = last
            elif self._failure:
                self._error = self._failure
            else:
                self._finish = Finish.CANCELLED if cancelled else Finish.REPORTED
            self._tell_all()

    def ends_when_lost(self) -> bool:
        """Its lane or device is gone: end it if nothing is left to do, and say whether it is over."""
        with self._lock:
            if self._failure:
                self.fail(self._failure)
            elif (complete := bool(self._tokens and self._tokens[-1].finish)) or self._cancelled:
                self.retire(cancelled=not complete)
            return self.done

    def lose(self) -> int:
        """Note that its lane or device is gone; return how often that has happened without a token in between."""
        with self._lock:
            self._losses = 1 if self.progressed else self._losses + 1
            self._kept = len(self._tokens)
            self._changed.notify_all()
            return self._losses

    def note_company(self, accompanied: bool) -> None:
        """Note, when its lane is lost, whether another request may be to blame as well."""
        self._accompanied = accompanied

    def wait_progress(self, timeout_s: float) -> bool:
        """Wait until it has a token more than when it was lost, parks, is over or is lost again; False if in vain."""
        with self._lock:
            kept, losses = self._kept, self._losses
            return self._changed.wait_for(
                lambda: self.done or self.parked or len(self._tokens) > kept or self._losses != losses, timeout_s
            )

    def fail(self, error: CuelightError) -> None:
        """End it with an error, unless it is over or a cause was noted before."""
        with self._lock:
            if not self.done:
                self._error = self._failure or error
                self._tell_all()

    def _tell_all(self) -> None:
        self._changed.notify_all()
        for listener in self._listeners:
            listener()
        if self.complete:
            for listener in self._patient_listeners:
                listener()
        if self.done:
            self._ended.notify_all()
            # Who listens has this request, as a rule: a ring that only the collector would find.
            self._listeners = self._patient_listeners = ()
