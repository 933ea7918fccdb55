"""The lane processes of a device: one for each lane group, started again whenever it dies."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable

from cuelight.device import Device
from cuelight.engine.progress import Progress, silent
from cuelight.errors import CuelightError, DeviceClosed, DeviceLost, LaneError, SegmentError
from cuelight.lanes.process import LaneProcess
from cuelight.request import Request

__all__ = ["Crew"]

_FRUITLESS = 3
_PROBE = (0,)
_log = logging.getLogger(__name__)


class Crew:
    """Lanes at work on a device, and what keeps them so.

    A lane that dies with requests is started again, however often: the journal finds which request is to blame. One
    that dies time after time without a token is tried with a request of our own, and given up if even that gets none.

    Parameters
    ----------
    device : Device
        The device, configured.
    prepare : callable
        Starts a lane process without a place, and tells `Progress` how far it is.
    spare : bool
        Keep a process that stands by, its code loaded, so that a lane is back sooner.
    """

    def __init__(self, device: Device, prepare: Callable[[Progress], LaneProcess], *, spare: bool = False) -> None:
        self._device = device
        self._prepare = prepare
        self._lanes: list[LaneProcess] = []
        self._keeps_spare = spare
        self._spare: LaneProcess | None = None
        self._lost: set[int] = set()
        self._closing = threading.Event()
        self._starting = threading.Lock()

    @property
    def lanes(self) -> tuple[LaneProcess, ...]:
        """Lanes by lane group; one that dies is replaced."""
        return tuple(self._lanes)

    @property
    def groups(self) -> tuple[int, ...]:
        """Lane groups that were not given up."""
        return tuple(group for group in range(len(self._lanes)) if group not in self._lost)

    def start(self, count: int, progress: Progress = silent) -> None:
        """Start `count` lanes and wait until they take dispatches; keep them at work from then on.

        Raises
        ------
        LaneError
            One did not start.
        """
        for group in range(count):
            self._lanes.append(self._prepare(progress))
            self._lanes[group].serve(self._device.segment.path, group)
        for lane in self._lanes:
            lane.wait_ready()
        self._device.on_replaced(self._leave_old_device)
        for group in range(count):
            threading.Thread(target=self._keep, args=(group,), name=f"cuelight-keep-{group}", daemon=True).start()
        self._stand_by()

    def stop_keeping(self) -> None:
        """Start no lane any more."""
        with self._starting:
            self._closing.set()

    def close(self) -> None:
        """End all lanes; a second call does nothing."""
        self.stop_keeping()
        if self._spare:
            self._spare.stop()
        for lane in self._lanes:
            lane.stop()

    def _leave_old_device(self) -> None:
        # Its lanes were asked to end, but one that stands still, or was just being started, would not.
        with self._starting:
            for lane in self._lanes:
                if lane.segment_path != self._device.segment.path:
                    lane.stop()

    def _keep(self, group: int) -> None:
        fruitless = delivered = 0
        probe: Request | None = None
        while True:
            error = self._lanes[group].wait()
            if self._closing.is_set():
                return
            fruitless = fruitless + 1 if delivered == self._device.delivered(group) else 0
            delivered = self._device.delivered(group)
            _log.warning("%s Another one takes its place.", error)
            try:
                if fruitless > _FRUITLESS and (not self._lanes[group].served or (probe and probe.error)):
                    raise error
                probe = self._replace(group, probe if fruitless else None, test=fruitless >= _FRUITLESS)
            except (CuelightError, OSError) as failure:
                self._lost.add(group)
                _log.error("Lane group %d is given up: %s", group, failure)
                reason = (
                    failure if isinstance(failure, LaneError) else LaneError(f"Lane {group} can't start: {failure}")
                )
                with contextlib.suppress(CuelightError):
                    self._device.reset_group(group, reason)
                return

    def _replace(self, group: int, probe: Request | None, *, test: bool) -> Request | None:
        """Start a lane again; with `test` also a request that any lane can answer, unless there is one."""
        with self._starting:
            if self._closing.is_set():
                return probe
            segment_path = self._device.segment.path
            try:
                # One that never served has lost nothing, and a fresh device has taken the requests over already.
                if self._lanes[group].served and self._lanes[group].segment_path == segment_path:
                    self._device.restart_group(group)
                self._lanes[group] = self._start(group)
            except (DeviceLost, DeviceClosed, SegmentError):
                # Replaced this very moment, or about to be.
                if not self._device.wait_replaced(segment_path):
                    raise
                self._lanes[group] = self._start(group)
        if test and probe is None:
            with contextlib.suppress(CuelightError):
                probe = self._device.submit(_PROBE, 1, group=group, timeout_s=0.0)
        with contextlib.suppress(LaneError):
            # What is wrong with it shows as its end.
            self._lanes[group].wait_ready()
        self._stand_by()
        return probe

    def _start(self, group: int) -> LaneProcess:
        lane, self._spare = self._spare, None
        if lane is None or not lane.alive:
            lane = self._prepare(silent)
        try:
            lane.serve(self._device.segment.path, group)
        except CuelightError:
            lane.stop()
            raise
        return lane

    def _stand_by(self) -> None:
        with self._starting:
            if self._keeps_spare and not self._closing.is_set() and self._spare is None:
                self._spare = self._prepare(silent)
