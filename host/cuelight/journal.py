"""The journal: requests that lost their lane or their device are admitted again, and go on from their latest token."""

from __future__ import annotations

import collections
import heapq
import itertools
import logging
import threading
from collections.abc import Callable, Sequence

from cuelight.errors import CuelightError, DeviceLost, LaneError, PoisonRequest, TransportError
from cuelight.request import Request
from cuelight.transports.base import Transport

__all__ = ["Journal"]

_LOSSES = 3
_MOST_LOSSES = 10
_SUSPECT_S = 60.0
_NOTICE_S = 5.0
_log = logging.getLogger(__name__)


class Journal:
    """Keeps requests from the loss of what ran them until they are admitted again; a thread does that while any wait.

    A request itself knows what was asked and which tokens came, so it is admitted with a prompt that has both. After a
    second loss without a token in between, requests are admitted one at a time: whichever is to blame then fails alone,
    at its third, or a later one if new requests had no token either. A parked request is admitted once it has a credit.

    Parameters
    ----------
    admit : callable
        Admits a request again, from where it stands.
    freed : callable
        Called after a request that waited here has ended or been admitted, so that it needs no room any more.
    replace : callable
        Replaces the device at the end of a transport that was lost with an error, or raises what makes that final.
    groups : int
        Lane groups.

    Attributes
    ----------
    delivered : list of int
        Tokens that came, by lane group; tells a lane that works from one that only starts.
    tier_tokens : Counter
        Tokens that came, by tier.
    replayed : int
        Times that a request was taken over to be admitted again.
    given_up : int
        Requests that failed for want of a token in several attempts.
    """

    def __init__(
        self,
        admit: Callable[[Request], None],
        freed: Callable[[], None],
        replace: Callable[[Transport, CuelightError], None],
        groups: int,
    ) -> None:
        self.delivered = [0] * groups
        self.tier_tokens: collections.Counter[int] = collections.Counter()
        self.replayed = 0
        self.given_up = 0
        self._admit = admit
        self._freed = freed
        self._replace = replace
        self._changed = threading.Condition()
        self._order = itertools.count()
        self._waiting: list[tuple[int, int, int, Request]] = []
        self._parked: dict[Request, None] = {}
        self._replaying: Request | None = None
        self._lost: tuple[Transport, CuelightError] | None = None
        self._closed: CuelightError | None = None
        self._thread: threading.Thread | None = None

    @property
    def waiting(self) -> tuple[Request, ...]:
        """Requests that are not on a device."""
        with self._changed:
            replaying = () if self._replaying is None else (self._replaying,)
            return (*replaying, *(request for *_, request in self._waiting), *self._parked)

    def promised(self) -> tuple[tuple[int, int], ...]:
        """Lane group and KV blocks of all that wait here."""
        return tuple((request.group, request.kv_blocks) for request in self.waiting)

    def lose(self, requests: Sequence[Request], error: CuelightError) -> None:
        """Take over requests that their device has given up, because of `error`."""
        with self._changed:
            for request in requests:
                if request.ends_when_lost():
                    continue
                if self._closed:
                    request.fail(self._closed)
                elif (losses := request.lose()) >= (_MOST_LOSSES if request.accompanied else _LOSSES):
                    self.given_up += 1
                    _log.error("Request %#010x is given up after %d attempts: %s", request.id, losses, error)
                    kind = PoisonRequest if isinstance(error, LaneError) else type(error)
                    request.fail(
                        kind(
                            f"Request {request.id:#010x} got no token in {losses} attempts; the last ended so: {error}"
                        )
                    )
                else:
                    self.replayed += 1
                    self._push(request)
            self._wake()

    def lose_device(self, transport: Transport, requests: Sequence[Request], error: CuelightError) -> None:
        """Take over all requests of a device that is gone."""
        self.lose(requests, error)
        with self._changed:
            self._lost = transport, error
            self._wake()

    def release(self, request: Request) -> None:
        """Admit a request that was parked, if it is here and may go on, or fail, now."""
        with self._changed:
            if request in self._parked and not _stays(request):
                del self._parked[request]
                self._push(request)
                self._wake()

    def withdraw(self, request: Request) -> bool:
        """End a request that was cancelled, if it is here."""
        with self._changed:
            if request is self._replaying:
                # The thread sees that it was cancelled once it is on the device.
                return True
            if request in self._parked:
                del self._parked[request]
            else:
                kept = [entry for entry in self._waiting if entry[-1] is not request]
                if len(kept) == len(self._waiting):
                    return False
                heapq.heapify(kept)
                self._waiting = kept
        request.retire(cancelled=True)
        self._freed()
        return True

    def close(self, error: CuelightError) -> None:
        """End all that wait with `error`, and later losses too."""
        with self._changed:
            self._closed = self._closed or error
            ended = [*(request for *_, request in self._waiting), *self._parked]
            self._waiting, self._parked = [], {}
            self._changed.notify_all()
        for request in ended:
            request.fail(error)

    def join(self, timeout_s: float) -> None:
        """Wait for the thread; after `close` it ends soon."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout_s)

    def _push(self, request: Request) -> None:
        if _stays(request):
            self._parked[request] = None
            return
        heapq.heappush(self._waiting, (request.tier, request.submitted_ns, next(self._order), request))

    def _wake(self) -> None:
        self._changed.notify_all()
        if self._thread is None and (self._lost or self._waiting):
            self._thread = threading.Thread(target=self._run, name="cuelight-journal", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        try:
            self._serve()
        except Exception as error:
            self.close(
                TransportError(f"The driver's own thread failed ({error!r}); open the device again and report this.")
            )
            raise

    def _serve(self) -> None:
        while True:
            with self._changed:
                lost, self._lost = self._lost, None
                if self._closed or not (lost or self._waiting):
                    self._thread = None
                    return
                self._replaying = None if lost else heapq.heappop(self._waiting)[-1]
                if self._replaying and _stays(self._replaying):
                    self._push(self._replaying)
                    self._replaying = None
                    continue
            if lost:
                try:
                    self._replace(*lost)
                except CuelightError as error:
                    self.close(error)
            elif self._replaying:
                self._replay(self._replaying)

    def _replay(self, request: Request) -> None:
        losses = request.losses
        try:
            self._admit(request)
        except DeviceLost as error:
            with self._changed:
                self._replaying = None
                if self._changed.wait_for(lambda: self._lost or self._closed, _NOTICE_S) and not self._closed:
                    self._push(request)
                    return
            request.fail(self._closed or error)
        except CuelightError as error:
            request.fail(self._closed or error)
        with self._changed:
            self._replaying = None
        self._freed()
        if losses > 1:
            request.wait_progress(_SUSPECT_S)


def _stays(request: Request) -> bool:
    return request.parked and not request.blamed
