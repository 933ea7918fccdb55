"""Who goes onto the device next: bounded queues by tier, fair between API keys, with a promise of the first token."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import functools
import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from cuelight.daemon.failures import Busy, Late, NotStarted
from cuelight.daemon.line import Line
from cuelight.daemon.mailbox import Mailbox
from cuelight.daemon.settings import TierSettings
from cuelight.errors import CuelightError, DeviceFull, DeviceLost, GroupResetting, NeverFits, NoKvCredit, RequestFailed
from cuelight.request import Request

__all__ = ["Admission", "Ticket"]

_log = logging.getLogger(__name__)
_RETRY_S = 0.02
_LOOK_S = 0.005
_BATCH = 8
_FIRST_GUESS_S = 1.0
_SMOOTHING = 0.1
# The device had no room, or is just being replaced or reset: it will take the request later.
_LATER = (DeviceFull, DeviceLost, GroupResetting, NoKvCredit)


class _State(enum.Enum):
    OUTSIDE = enum.auto()
    HELD = enum.auto()
    """Has its place, but does not want to run yet."""
    WAITING = enum.auto()
    SUBMITTING = enum.auto()
    RUNNING = enum.auto()
    OVER = enum.auto()


class Ticket:
    """One generation's way onto the device, through it and off it; all but `tell` is for the event loop.

    Parameters
    ----------
    tier : str
        Name of the tier.
    owner : str
        Whose it is: fairness is between owners.
    submit : callable
        Starts it; called by the admission's thread, and again if there was no room. Must not wait.
    hear : callable
        Called on the event loop when there is news of the request: it runs, has tokens, or is over.
    patient : bool
        Tokens are no news, but the last one.
    """

    def __init__(
        self,
        tier: str,
        owner: str,
        submit: Callable[[], Request],
        hear: Callable[[], None],
        *,
        patient: bool = False,
    ) -> None:
        self.tier = tier
        self.owner = owner
        self.submit = submit
        self.patient = patient
        self.request: Request | None = None
        self.error: CuelightError | None = None
        """Why it never ran."""
        self.noted = False
        self.complete = False
        """It was noted that no token follows."""
        self.state = _State.OUTSIDE
        self.abandoned = False
        self.since = 0.0
        self.timer: asyncio.TimerHandle | None = None
        self.ended: Callable[[Ticket], None] = lambda ticket: None
        self._hear = hear

    def hear(self) -> None:
        """Look whether the request is over, or soon will be, and pass the news on."""
        if self.request is not None and self.request.complete:
            self.ended(self)
        self._hear()

    def abandon(self) -> None:
        """Start nothing and pass no news on from now on.

        Whoever asked has the ticket, so it lets go of them: the collector would have to look for such rings.
        """
        self.abandoned = True
        self.submit, self._hear = _refuse, _ignore


class Admission:
    """Lets onto the device what it can run, and keeps the rest in line.

    The device orders what it holds by tier, so a tier waits only for those of its own and of higher ones: it may have
    as many requests on the device as there are seats, less what those have there. Beyond that only its minimum counts.
    Fairness between API keys is for the daemon to see to: the device knows none.

    Everything here runs on the event loop but for `submit` and cancels, which may wait for the device's lock: these
    have a thread of their own. What comes of them, and that a request is over, is heard with whatever is told to
    clients, but at once where somebody waits in line.

    Parameters
    ----------
    tiers : mapping
        Settings by name.
    seats : int
        Requests that run at once, in all lane groups together.
    mailbox : Mailbox
        Where requests leave their news.
    """

    def __init__(self, tiers: Mapping[str, TierSettings], seats: int, mailbox: Mailbox) -> None:
        self._loop = asyncio.get_running_loop()
        self._mailbox = mailbox
        self._seats = seats
        # So that a seat that is left is taken at that loop point.
        self._ahead = max(1, seats // 8)
        self._tiers: dict[str, TierSettings] = {}
        self._lines: dict[str, Line[Ticket]] = {}
        self._held: dict[str, int] = {}
        self._under_way: dict[str, int] = {}
        self._order: list[str] = []
        self._run_s = _FIRST_GUESS_S
        self.noted = False
        self._submitting: Sequence[Ticket] = ()
        # What became of these; None while the thread is at it.
        self._errors: Sequence[CuelightError | None] | None = None
        # Whoever is in line has to hear at once when there is room.
        self._hurry = False
        # Level for which, and for those below it, there was no room at the last try.
        self._full: float = math.inf
        self._retry: asyncio.TimerHandle | None = None
        self._calls: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._call, name="cuelight-submit", daemon=True)
        self._thread.start()
        self.set_tiers(tiers)

    def set_tiers(self, tiers: Mapping[str, TierSettings]) -> None:
        """Take other settings; whoever waits in a tier that is gone goes on waiting."""
        self._tiers |= tiers
        for name in tiers:
            self._lines.setdefault(name, Line())
            self._held.setdefault(name, 0)
            self._under_way.setdefault(name, 0)
        self._order = sorted(self._tiers, key=lambda name: self._tiers[name].level)

    def waiting(self, tier: str) -> int:
        """Generations of a tier that wait."""
        return len(self._lines[tier]) + self._held[tier]

    def under_way(self, tier: str) -> int:
        """Generations of a tier that the device has."""
        return self._under_way[tier]

    def enter(self, tickets: Sequence[Ticket]) -> None:
        """Give the tickets of one question their places; each then waits for `line_up`.

        Raises
        ------
        Busy
            The queue is full, or the promise can't be kept and the tier refuses then.
        Late
            The promise can't be kept and the tier has an answer for that.
        """
        first = tickets[0]
        self._mailbox.deliver()
        settings = self._tiers[first.tier]
        if (excess := self._before(first.tier) + len(tickets) - self._free(first.tier)) > 0:
            self._make_place(first.tier, first.owner, excess)
            wait_s = self._expected_wait_s(first.tier)
            promise_ms = settings.first_token_ms
            if settings.when_late != "queue" and promise_ms is not None and 1000 * wait_s > promise_ms:
                raise self._late(first.tier, wait_s)
        self._held[first.tier] += len(tickets)
        for ticket in tickets:
            ticket.state = _State.HELD
            ticket.ended = self._end

    def line_up(self, ticket: Ticket, *, ahead: bool = False) -> None:
        """Let a ticket that was held run when it is its turn."""
        if ticket.state is not _State.HELD:
            return
        self._held[ticket.tier] -= 1
        ticket.state = _State.WAITING
        ticket.since = self._loop.time()
        self._lines[ticket.tier].add(ticket.owner, ticket, ahead=ahead)
        self._pump()
        if ticket.state is _State.WAITING:
            self._limit_wait(ticket)

    def leave(self, ticket: Ticket) -> None:
        """Have no more to do with a ticket, in whatever state; what runs is cancelled. Twice is the same as once."""
        if ticket.abandoned:
            return
        ticket.abandon()
        self.hear()
        match ticket.state:
            case _State.HELD:
                self._held[ticket.tier] -= 1
                ticket.state = _State.OVER
            case _State.WAITING:
                self._lines[ticket.tier].remove(ticket.owner, ticket)
                self._stop_waiting(ticket, _State.OVER)
            case _State.RUNNING:
                self._cancel(ticket)
            case _State.SUBMITTING:
                # It is cancelled once it runs.
                self._await_room()
            case _State.OUTSIDE | _State.OVER:
                pass

    async def close(self) -> None:
        """Cancel all that runs; nothing is admitted any more."""
        if self._retry:
            self._retry.cancel()
        self._calls.put(None)
        await self._loop.run_in_executor(None, self._thread.join)

    def _make_place(self, tier: str, owner: str, excess: int) -> None:
        while excess > self._tiers[tier].queue:
            crowd = self._lines[tier].crowd_out(owner)
            if crowd is None:
                raise self._busy(tier, f"{self.waiting(tier)} requests wait in the tier {tier}, as many as may")
            excess -= 1
            self._stop_waiting(crowd, _State.OVER)
            crowd.error = self._busy(tier, f"The tier {tier} is full, and others have fewer requests waiting")
            self._mailbox.note(crowd)

    def _limit_wait(self, ticket: Ticket) -> None:
        settings = self._tiers[ticket.tier]
        longest_s = settings.wait_s
        if settings.first_token_ms is not None and settings.when_late != "queue":
            longest_s = min(longest_s, settings.first_token_ms / 1000)
        ticket.timer = self._loop.call_at(ticket.since + longest_s, self._give_up, ticket)

    def _give_up(self, ticket: Ticket) -> None:
        """It has waited for as long as it may."""
        if self._lines[ticket.tier].remove(ticket.owner, ticket):
            self._stop_waiting(ticket, _State.OVER)
            ticket.error = self._late(ticket.tier, self._loop.time() - ticket.since)
            self._mailbox.note(ticket)

    def _stop_waiting(self, ticket: Ticket, state: _State) -> None:
        ticket.state = state
        if ticket.timer:
            ticket.timer.cancel()
            ticket.timer = None

    def _busy(self, tier: str, cause: str) -> Busy:
        wait_s = self._expected_wait_s(tier)
        return Busy(f"{cause}; ask again in {max(1, round(wait_s))} s, or in another tier.", wait_s)

    def _late(self, tier: str, wait_s: float) -> CuelightError:
        settings = self._tiers[tier]
        if settings.when_late == "degrade" and settings.cached_answer:
            return Late(settings.cached_answer)
        return self._busy(tier, f"The tier {tier} would have to wait {wait_s:.1f} s for its first token")

    def _expected_wait_s(self, tier: str) -> float:
        """How long a newcomer would wait for a place on the device: those before it, at the pace of the latest ones."""
        excess = self._before(tier) + 1 - self._free(tier)
        return max(0, excess) * self._run_s / self._seats

    def _before(self, tier: str) -> int:
        """Generations that go first."""
        level = self._tiers[tier].level
        return sum(self.waiting(name) for name in self._order if self._tiers[name].level <= level)

    def _free(self, tier: str) -> int:
        """How many more of a tier the device can run, whatever lower tiers have there."""
        settings = self._tiers[tier]
        above = sum(self._under_way[name] for name in self._order if self._tiers[name].level <= settings.level)
        return max(self._seats + self._ahead - above, settings.min_seats - self._under_way[tier], 0)

    def hear(self) -> None:
        """Look what has become of what was submitted."""
        if self._errors is not None:
            batch, errors = self._submitting, self._errors
            self._submitting, self._errors = (), None
            self._note_submitted(batch, errors)

    def _pump(self) -> None:
        """Take whose turn it is, unless some are on their way to the device already."""
        self.hear()
        if not self._submitting:
            batch: list[Ticket] = []
            for tier in self._order:
                if self._tiers[tier].level >= self._full:
                    break
                line = self._lines[tier]
                while len(line) and len(batch) < _BATCH and self._free(tier):
                    _, ticket = line.take()
                    self._stop_waiting(ticket, _State.SUBMITTING)
                    self._under_way[tier] += 1
                    batch.append(ticket)
            if batch:
                self._submitting = batch
                self._calls.put(functools.partial(self._submit, batch))
        if any(self._lines.values()):
            self._await_room()
        else:
            self._hurry = False

    def _await_room(self) -> None:
        self._hurry = True
        # What was noted before that is in no hurry.
        self._mailbox.await_news()

    def _call(self) -> None:
        while (call := self._calls.get()) is not None:
            try:
                call()
            except Exception:
                _log.exception("A call to the device failed; report this as a bug.")
            # It has requests, which would wait for the next one to be let go.
            del call

    def _submit(self, batch: Sequence[Ticket]) -> None:
        """Submit until there is no room, and note an error for each that does not run. In the admission's thread."""
        errors: list[CuelightError | None] = []
        full: CuelightError | None = None
        for ticket in batch:
            error = full
            if error is None and not ticket.abandoned:
                try:
                    request = ticket.submit()
                    ticket.request = request
                    request.listen(functools.partial(self._note, ticket, request), patient=ticket.patient)
                except Exception as raised:
                    # Without its traceback, which has this frame, and so all of the batch: a ring.
                    error = raised if isinstance(raised, CuelightError) else NotStarted(repr(raised))
                    error.__traceback__ = None
                    # Those behind it must not overtake it.
                    full = error if isinstance(error, _LATER) else None
            errors.append(error)
        self._errors = errors
        self._mailbox.note(self, hurry=self._hurry or any(error is not None for error in errors))

    def _note(self, ticket: Ticket, request: Request) -> None:
        """Take news of a request, from the driver's thread: to wake the event loop for it costs both of them."""
        known, ticket.complete = ticket.complete, request.complete
        if known or ticket.complete or not ticket.patient:
            # Who asked need not hear that what is complete has left the device as well.
            self._mailbox.note(ticket, hurry=self._hurry or not known)

    def _note_submitted(self, batch: Sequence[Ticket], errors: Sequence[CuelightError | None]) -> None:
        # The last one first: each goes to the front.
        for ticket, error in reversed(list(zip(batch, errors, strict=True))):
            if ticket.request is not None:
                ticket.state = _State.RUNNING
                if ticket.request.complete:
                    self._end(ticket)
                elif ticket.abandoned:
                    self._cancel(ticket)
                continue
            self._lines[ticket.tier].done(ticket.owner)
            self._under_way[ticket.tier] -= 1
            if ticket.abandoned:
                ticket.state = _State.OVER
            elif isinstance(error, _LATER) and not isinstance(error, NeverFits):
                ticket.state = _State.WAITING
                self._lines[ticket.tier].add(ticket.owner, ticket, ahead=True)
                self._limit_wait(ticket)
                self._full = min(self._full, self._tiers[ticket.tier].level)
                self._retry = self._retry or self._loop.call_later(_RETRY_S, self._try_again)
            else:
                ticket.state, ticket.error = _State.OVER, error
                self._mailbox.note(ticket)
        self._pump()

    def _try_again(self) -> None:
        if self._retry:
            self._retry.cancel()
            self._retry = None
        self._full = math.inf
        self._pump()

    def _end(self, ticket: Ticket) -> None:
        """Its request is over, so there is room, or soon will be."""
        if ticket.state is not _State.RUNNING or ticket.request is None:
            return
        if not ticket.request.done:
            ticket.timer = ticket.timer or self._loop.call_later(_LOOK_S, self._look_again, ticket)
            return
        ticket.state = _State.OVER
        self._lines[ticket.tier].done(ticket.owner)
        self._under_way[ticket.tier] -= 1
        self._run_s += _SMOOTHING * ((time.monotonic_ns() - ticket.request.submitted_ns) / 1e9 - self._run_s)
        self._try_again()

    def _look_again(self, ticket: Ticket) -> None:
        # Whoever notes that it has left the device as well is in no hurry, and may come later than this.
        ticket.timer = None
        self._mailbox.deliver()
        self._end(ticket)

    def _cancel(self, ticket: Ticket) -> None:
        if ticket.request is not None and not ticket.request.done:
            self._calls.put(functools.partial(_cancel, ticket.request))


def _refuse() -> Request:
    raise RequestFailed("Nobody waits for the request any more; ask again.")


def _ignore() -> None:
    pass


def _cancel(request: Request) -> None:
    # One whose device is gone or closed ends all the same.
    with contextlib.suppress(CuelightError):
        request.cancel()
