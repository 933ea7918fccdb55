"""Lanes that a board pushes to: their memory, its interrupts, and when a lane is sound enough for it (docs/push.md)."""

from __future__ import annotations

import ctypes
import logging
import time
from dataclasses import dataclass, field
from typing import Protocol

from cuelight import regmap
from cuelight.arguments import check_range
from cuelight.errors import InvalidArgument
from cuelight.regmap import FallCause, Push, PushMode, PushStatus
from cuelight.segment import Segment
from cuelight.transports.registers import Registers

__all__ = ["DEFAULT_TIMES", "Master", "PushTimes", "Pushing"]

_VECTORS = 4
_BUS_ADDRESS = 1 << 32
"""Of lane port 0. Above what systems keep for interrupts and devices of 32 bits; every IOMMU of today reaches it."""
_LISTEN_S = 0.1
_BEATS_SEEN = 2
_BEAT_S = 1.0
"""A lane that waits counts its heartbeat up twice as often."""
_log = logging.getLogger(__name__)


class Master(Protocol):
    """A board that may master the bus. What is given here is taken back when its registers are closed."""

    def map_memory(self, address: int, size: int, bus_address: int) -> None:
        """Let the board reach memory of this process at `bus_address`; all in bytes, multiples of the page size."""

    def open_interrupts(self, count: int) -> tuple[int, ...]:
        """Have interrupts 0 to `count` - 1 counted by eventfds."""

    def start_mastering(self) -> None:
        """Let the board write and read that memory, and send interrupts."""


@dataclass(frozen=True, slots=True)
class PushTimes:
    """How long a board waits for lanes and for the bus, in seconds; and how long the host waits for a lane that fell.

    Parameters
    ----------
    period_s : float
        From one heartbeat read to the next.
    completion_timeout_s : float
        For a heartbeat read.
    rest_s : float
        In which a tag rests; longer than the hard block's completion timeout.
    stall_s : float
        In which a lane's heartbeat must move: longer than its longest stage.
    overdue_s : float
        In which the oldest dispatch must be complete: longer than the longest stage.
    beats : int
        Heartbeats that must move before PUSH, 1 to 255.
    pause_s, longest_pause_s : float
        A lane that fell is polled for so long before it is probed again: the first one after its first fall, twice as
        long after each further one, up to the second. Being pushed to for the longest pause is a new beginning.
    """

    period_s: float = 1e-3
    completion_timeout_s: float = 10e-3
    rest_s: float = 0.1
    stall_s: float = 10.0
    overdue_s: float = 10.0
    beats: int = 4
    pause_s: float = 0.5
    longest_pause_s: float = 60.0

    def registers(self) -> dict[int, int]:
        """Values by register of PUSH.

        Raises
        ------
        InvalidArgument
            A time does not fit its register.
        """
        times = {
            Push.PERIOD: self.period_s,
            Push.COMPLETION_TIMEOUT: self.completion_timeout_s,
            Push.REST: self.rest_s,
            Push.STALL: self.stall_s,
            Push.OVERDUE: self.overdue_s,
        }
        for time_s in times.values():
            if not 1e-6 <= time_s <= 4294.0:
                raise InvalidArgument(f"Times of PUSH are 1 µs to 4294 s, not {time_s:g} s; choose one in between.")
        check_range("beats", self.beats, 1, 255)
        return {register: round(1e6 * time_s) for register, time_s in times.items()} | {Push.BEATS: self.beats}


DEFAULT_TIMES = PushTimes()


@dataclass(slots=True)
class _Lane:
    """What is known of a lane's soundness."""

    number: int
    heartbeat: int
    beats: int = 0
    """Looks at which its heartbeat had moved since it was probed last."""
    beat_s: float = 0.0
    """Time of the last such look."""
    generation: int = 0
    mode: PushMode = PushMode.POLL
    since_s: float = field(default_factory=time.monotonic)
    """It has been in this mode."""
    pause_s: float = 0.0
    """For which it is polled before it is probed."""


class Pushing:
    """Leads lanes to PUSH once they are sound, again and again; the pump does what that means for their dispatches.

    Parameters
    ----------
    master : Master
        The board.
    registers : Registers
        Its registers.
    segment : Segment
        Whose lane ports it writes to.
    library : ctypes.CDLL
        The pump's functions.
    pump : int
        The pump; nobody is in `run` yet.
    times : PushTimes
        How long who waits.

    Raises
    ------
    TransportError
        The system does not let the board reach memory, or send interrupts.
    InvalidArgument
        A time is out of range.
    """

    def __init__(
        self,
        master: Master,
        registers: Registers,
        segment: Segment,
        library: ctypes.CDLL,
        pump: int,
        times: PushTimes,
    ) -> None:
        self._registers = registers
        self._segment = segment
        self._library = library
        self._pump = pump
        self._times = times
        shape = segment.shape
        ports = segment.port_memory(0).ctypes.data
        master.map_memory(ports, shape.lanes * shape.port_stride, _BUS_ADDRESS)
        self._descriptors = (ctypes.c_int * _VECTORS)(*master.open_interrupts(_VECTORS))
        values = times.registers()
        self._lanes = [_Lane(lane, segment.lane_heartbeat(lane)) for lane in range(shape.lanes)]
        for lane in range(shape.lanes):
            port = _BUS_ADDRESS + lane * shape.port_stride
            registers.write64(_at(lane, Push.PORT_ADDRESS), port)
            registers.write64(_at(lane, Push.HEARTBEAT_ADDRESS), port + regmap.LanePort.HEARTBEAT)
            for register, value in values.items():
                registers.write32(_at(lane, register), value)
        master.start_mastering()

    def tend(self) -> None:
        """Look at the lanes, and have those probed that are sound; to be called some times a second."""
        for lane in self._lanes:
            self._note_mode(lane)
            if lane.mode == PushMode.POLL and self._is_sound(lane):
                lane.generation += 1
                lane.beats = 0
                # What fails here fails in the pump's next round as well, which tells.
                self._library.cuelight_pump_probe(self._pump, lane.number, lane.generation)
                lane.mode, lane.since_s = PushMode.PROBING, time.monotonic()

    def listen(self) -> None:
        """Tell the pump of interrupts until it is closed."""
        while not self._library.cuelight_pump_listen(self._pump, self._descriptors, _VECTORS, int(1e3 * _LISTEN_S)):
            pass

    def _note_mode(self, lane: _Lane) -> None:
        mode = PushMode(self._library.cuelight_pump_mode(self._pump, lane.number))
        if mode in (lane.mode, PushMode.FALLING):
            return
        now_s = time.monotonic()
        if mode == PushMode.POLL:
            lasted = lane.mode == PushMode.PUSH and now_s - lane.since_s >= self._times.longest_pause_s
            self._note_fall(lane, lasted)
        lane.mode, lane.since_s = mode, now_s

    def _note_fall(self, lane: _Lane, lasted: bool) -> None:
        status = PushStatus.unpack(self._registers.read32(_at(lane.number, Push.STATUS)))
        if lane.mode == PushMode.PUSH and status.cause == FallCause.COMMAND:
            lane.pause_s = 0.0
            return
        longer = self._times.pause_s if lasted else max(self._times.pause_s, 2 * lane.pause_s)
        lane.pause_s = min(longer, self._times.longest_pause_s)
        cause = next((cause.name for cause in FallCause if cause == status.cause), "unknown")
        _log.warning(
            "Lane %d is polled, as pushing to it failed (%s); it is tried again in %g s if the lane lives.",
            *(lane.number, cause, lane.pause_s),
        )

    def _is_sound(self, lane: _Lane) -> bool:
        heartbeat, now_s = self._segment.lane_heartbeat(lane.number), time.monotonic()
        if heartbeat != lane.heartbeat:
            lane.heartbeat, lane.beat_s = heartbeat, now_s
            lane.beats += 1
        lives = lane.beats >= _BEATS_SEEN and now_s - lane.beat_s < _BEAT_S
        return lives and now_s - lane.since_s >= lane.pause_s


def _at(lane: int, register: int) -> int:
    return regmap.PUSH + regmap.PUSH_STRIDE * lane + register
