"""Sees within two seconds that the device or a lane is dead, and ends a lane that stands still."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cuelight.daemon.seam import Health
from cuelight.device import Device
from cuelight.errors import CuelightError
from cuelight.lanes.process import LaneProcess
from cuelight.regmap import IDENTITY, Identity
from cuelight.snapshot import Snapshot

__all__ = ["Watchdog"]

_ROUND_S = 0.25
_WHOLE_ROUNDS = 4
_SILENCE_S = 1.5
_DEVICE_S = 1.0
_KILL_S = 10.0
_OVERDUE_S = 120.0
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Signs:
    """What a lane showed last, and since when."""

    pid: int
    seen: tuple[int, int, int]
    since: float
    expected: int
    expected_since: float


class Watchdog:
    """Goes round through device and lanes, four times a second, in a thread of its own; disturbs neither.

    - *The device* has to answer reads, and show that it moves (`Transport.moves`).
    - *A lane* has to be at work, and show life: its heartbeat moves, it completes something, or its process gets
      processor time. One that shows none for 10 s, or is at one dispatch for 2 minutes, is killed, so that another
      one takes its place.

    Parameters
    ----------
    device : Device
        The device.
    lanes : callable
        Its lanes at this moment, by lane group.
    """

    def __init__(self, device: Device, lanes: Callable[[], Sequence[LaneProcess]]) -> None:
        self._device = device
        self._lanes = lanes
        self._signs: dict[int, _Signs] = {}
        self._health = Health(True, "")
        self._snapshot: Snapshot | None = None
        self._round = time.monotonic()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cuelight-watchdog", daemon=True)
        self._thread.start()

    @property
    def health(self) -> Health:
        """How the service is now; known at once."""
        if time.monotonic() - self._round > _SILENCE_S:
            return Health(False, "The device does not answer; it is replaced if it goes on like this.")
        return self._health

    @property
    def snapshot(self) -> Snapshot | None:
        """The latest one of the device, a second old at most; None while it can't be read."""
        return self._snapshot if self.health.ok or time.monotonic() - self._round < _SILENCE_S else None

    def close(self) -> None:
        """Stop looking."""
        self._closing.set()
        self._thread.join(2 * _SILENCE_S)

    def _run(self) -> None:
        for turn in itertools.count():
            if self._closing.wait(_ROUND_S):
                return
            whole = turn % _WHOLE_ROUNDS == 0 or not self._health.ok
            troubles = [trouble for trouble in (self._look_at_device(whole), *self._look_at_lanes()) if trouble]
            self._round = time.monotonic()
            health = Health(not troubles, troubles[0] if troubles else "")
            if health.ok and not self._health.ok:
                _log.info("Device and lanes are well again.")
            elif self._health.ok and not health.ok:
                _log.warning("%s", health.trouble)
            self._health = health

    def _look_at_device(self, whole: bool) -> str:
        device = self._device
        try:
            if not device.transport.moves(_DEVICE_S):
                return "The device answers but does nothing; it is replaced if it goes on like this."
            if whole:
                self._snapshot = device.snapshot()
            else:
                device.transport.read64(IDENTITY + Identity.BOOT_NONCE)
        except CuelightError as error:
            self._snapshot = None
            return str(error)
        return ""

    def _look_at_lanes(self) -> list[str]:
        return [self._look_at(group, lane) for group, lane in enumerate(self._lanes())]

    def _look_at(self, group: int, lane: LaneProcess) -> str:
        if not lane.alive:
            return f"Lane {group} has died; another one takes its place."
        if not lane.served:
            return f"Lane {group} is being started; wait until it has loaded the model."
        try:
            segment = self._device.segment
            seen = segment.lane_heartbeat(group), segment.expected_sequence(group), _processor_time(lane.pid)
        except (CuelightError, OSError):
            return f"Lane {group} can't be looked at; it, or its device, is being replaced."
        now = time.monotonic()
        signs = self._signs.get(group)
        if signs is None or signs.pid != lane.pid:
            signs = self._signs[group] = _Signs(lane.pid, seen, now, seen[1], now)
        if signs.seen != seen:
            signs.seen, signs.since = seen, now
        if signs.expected != seen[1] or not self._has_work(group):
            signs.expected, signs.expected_since = seen[1], now
        silent_s, overdue_s = now - signs.since, now - signs.expected_since
        if silent_s > _KILL_S or overdue_s > _OVERDUE_S:
            _log.error("Lane %d stands still and is ended.", group)
            lane.kill()
            return f"Lane {group} stood still and was ended; another one takes its place."
        return f"Lane {group} has shown no life for {silent_s:.1f} s." if silent_s > _SILENCE_S else ""

    def _has_work(self, group: int) -> bool:
        return self._snapshot is not None and self._snapshot.status.lanes[group].outstanding


def _processor_time(pid: int) -> int:
    """Of a process, in ticks."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])
