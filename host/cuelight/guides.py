"""Answers each token of requests that have a grammar with what may come next."""

from __future__ import annotations

import contextlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor

from cuelight.engine.grammar import Guide
from cuelight.errors import CuelightError, FormatNotKept, GrammarError
from cuelight.request import Request

__all__ = ["Guides"]


class Guides:
    """Some threads for all requests: the driver's own, which bring tokens, must not wait for a mask to be computed."""

    def __init__(self) -> None:
        threads = max(2, (os.cpu_count() or 1) // 4)
        self._threads = ThreadPoolExecutor(threads, "cuelight-guides")

    def follow(self, request: Request, guide: Guide) -> None:
        """Give `request`, whose first mask is the guide's, the next one after each of its tokens, to its end."""
        follower = _Follower(request, guide)

        def hear() -> None:
            # Refused once closed: nothing goes on then.
            with contextlib.suppress(RuntimeError):
                self._threads.submit(follower.go_on)

        request.listen(hear)

    def close(self) -> None:
        """Follow nothing any more; for when nothing lives."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class _Follower:
    def __init__(self, request: Request, guide: Guide) -> None:
        self._request = request
        self._guide = guide
        self._seen = 0
        self._lock = threading.Lock()

    def go_on(self) -> None:
        with self._lock:
            try:
                self._answer()
            # A panic of the grammar library is no Exception.
            except BaseException as error:
                self._give_up(error)

    def _answer(self) -> None:
        fresh = self._request.since(self._seen)
        self._seen += len(fresh)
        if not fresh or fresh[-1].finish or self._request.done or self._request.cancelled:
            return
        for token in fresh:
            self._guide.accept(token.token)
        self._request.credit(self._guide.mask())

    def _give_up(self, error: BaseException) -> None:
        """Let the request fail alone; it would be parked for ever."""
        if isinstance(error, GrammarError):
            cause: CuelightError = FormatNotKept(str(error))
        elif isinstance(error, CuelightError):
            cause = error
        else:
            cause = FormatNotKept(f"The answer can't be kept to its format ({error!r}); report this as a bug.")
        self._request.blame(cause)
        with contextlib.suppress(CuelightError):
            self._request.cancel()
