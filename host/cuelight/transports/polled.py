"""A transport to any device whose registers can be reached: a thread of the host serves its lanes."""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Callable
from typing import NoReturn

from cuelight import regmap
from cuelight.errors import CuelightError, DeviceClosed, DeviceLost, TransportError
from cuelight.native.pump import pump_library
from cuelight.regmap import IDENTITY
from cuelight.segment import Segment, Shape
from cuelight.transports.base import wait_for_bell
from cuelight.transports.identity import identify
from cuelight.transports.push import DEFAULT_TIMES, Master, Pushing, PushTimes
from cuelight.transports.registers import Access, Registers, check_offset, check_value
from cuelight.transports.tracing import RawEvent, decode_event

__all__ = ["PolledTransport"]

_STUCK, _LATE, _CLOSED = 2, 1, -10
_CHECK_S = 0.1
_JOIN_S = 2.0
_TRACE_LIMIT = 1 << 20
_TRACE_CHUNK = 64


class PolledTransport:
    """A `Transport` in which the host serves the lanes.

    A thread reads the device's poll registers, fills the lanes' rings in the shared segment and forwards their
    completions. Where the device may master the bus, it fills the rings of lanes that are sound itself. With nothing
    in flight the thread sleeps, but looks ten times a second whether the device is still the one that was opened.

    Parameters
    ----------
    registers : Registers
        Of a device fresh from reset; closed with this, and if it can't be opened.
    master : Master, optional
        The device, where it may master the bus; without it, it never does.
    times : PushTimes
        How long a device that masters the bus waits.
    tokens, context, blocks, vocabulary : int
        Sizes of the segment; see `Shape`.
    polling : bool
        Spin while a lane works, instead of waiting to be woken: for lanes that ring no bell, such as a GPU.

    Raises
    ------
    DeviceLost
        Nothing answers.
    TransportError
        What answers is no device of this version.
    SegmentError
        The shared segment cannot be made.
    BuildError
        Native code cannot be built here.
    """

    def __init__(
        self,
        registers: Registers,
        master: Master | None = None,
        *,
        times: PushTimes = DEFAULT_TIMES,
        tokens: int = 1024,
        context: int = 2048,
        blocks: int = 32,
        vocabulary: int = 0,
        polling: bool = False,
    ) -> None:
        self._registers = registers
        self._closed = False
        self._failure: CuelightError | None = None
        self._release_once = threading.Lock()
        try:
            capabilities = identify(registers)
            self._nonce = registers.read64(IDENTITY + regmap.Identity.BOOT_NONCE)
            self._library = pump_library()
            self._access = registers.access
            shape = Shape(
                capabilities.lanes, capabilities.slots, capabilities.seats, tokens, context, blocks, vocabulary
            )
            self._segment = Segment.create(shape)
        except BaseException:
            registers.close()
            raise
        self._pushing: Pushing | None = None
        self._threads: list[threading.Thread] = []
        try:
            self._pump = self._open_pump(shape, polling)
        except BaseException:
            registers.close()
            self._segment.close()
            raise
        # Not in `close`: a call of another thread may still be in there.
        weakref.finalize(self, _free, self._library, self._pump, self._threads, self._access)
        try:
            if master:
                self._pushing = Pushing(master, registers, self._segment, self._library, self._pump, times)
                self._start("cuelight-interrupts", self._pushing.listen)
            self._start("cuelight-pump", self._serve)
        except BaseException:
            self.close()
            raise

    @property
    def segment(self) -> Segment:
        """Memory shared by host and lanes."""
        return self._segment

    def read32(self, offset: int) -> int:
        """Read a 32-bit register."""
        check_offset(offset, 4)
        self._check_open()
        return self._registers.read32(offset)

    def read64(self, offset: int) -> int:
        """Read a 64-bit register in one transaction."""
        check_offset(offset, 8)
        self._check_open()
        return self._registers.read64(offset)

    def write32(self, offset: int, value: int) -> None:
        """Write a 32-bit register."""
        self._write(offset, 4, value)

    def write64(self, offset: int, value: int) -> None:
        """Write a 64-bit register in one transaction."""
        self._write(offset, 8, value)

    def wait(self, bell: int, timeout_s: float) -> int:
        """Wait until the host bell differs from `bell`, and return what it reads then."""
        return wait_for_bell(self._segment, bell, timeout_s, self._check_not_closed)

    def moves(self, timeout_s: float) -> bool:
        """Whether, within `timeout_s` seconds, the thread goes round and the device's clock goes on."""
        cycles = self.read64(IDENTITY + regmap.Identity.CYCLES)
        status = self._library.cuelight_pump_beat(self._pump, max(0, int(timeout_s * 1e3)))
        if status != _LATE:
            self._check(status)
        return bool(status != _LATE) and self.read64(IDENTITY + regmap.Identity.CYCLES) != cycles

    def drain_trace(self) -> list[RawEvent]:
        """Take the events traced so far: (time in ns, kind, lane, stage, id, detail), oldest first."""
        self._check_open()
        events: list[RawEvent] = []
        chunk = (ctypes.c_uint64 * (2 * _TRACE_CHUNK))()
        count = ctypes.c_uint32(_TRACE_CHUNK)
        while count.value and len(events) < _TRACE_LIMIT:
            self._check(self._library.cuelight_pump_take_trace(self._pump, chunk, _TRACE_CHUNK, ctypes.byref(count)))
            words = chunk[: 2 * count.value]
            events += map(decode_event, words[::2], words[1::2])
        return events

    def release(self) -> None:
        """Give the device back, but keep the segment until `close`. A second call does nothing."""
        with self._release_once:
            self._closed = True
            self._library.cuelight_pump_close(self._pump)
            _join(self._threads)
            self._registers.close()

    def close(self) -> None:
        """Give the device back, ask the lanes to end and remove the segment; whoever waits is woken.

        A second call does nothing.
        """
        try:
            self.release()
        finally:
            self._let_go()

    def _let_go(self) -> None:
        try:
            for lane in range(self._segment.shape.lanes):
                self._segment.set_stop(lane, True)
            self._segment.ring_host()
        except DeviceClosed:
            return
        self._segment.close()

    def _open_pump(self, shape: Shape, polling: bool) -> int:
        pump = self._library.cuelight_pump_open(
            self._access.context,
            ctypes.cast(self._access.read, ctypes.c_void_p),
            ctypes.cast(self._access.write, ctypes.c_void_p),
            *(self._segment.descriptor, shape.size, shape.lanes, shape.seats, shape.ports, shape.port_stride, polling),
        )
        if not pump:
            error = os.strerror(ctypes.get_errno())
            raise TransportError(f"The segment of the device can't be mapped ({error}); free some memory, try again.")
        try:
            self._check(self._library.cuelight_pump_start(pump))
        except BaseException:
            self._library.cuelight_pump_free(pump)
            raise
        return int(pump)

    def _start(self, name: str, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _serve(self) -> None:
        try:
            while not self._closed:
                self._check(self._library.cuelight_pump_run(self._pump, int(_CHECK_S * 1e9)))
                self._registers.check()
                if self._registers.read64(IDENTITY + regmap.Identity.BOOT_NONCE) != self._nonce:
                    raise DeviceLost("The device was reset, so its requests are lost; open it again.")
                if self._pushing:
                    self._pushing.tend()
        except DeviceClosed:
            pass
        except CuelightError as error:
            self._failure = error
            self._segment.ring_host()

    def _write(self, offset: int, width: int, value: int) -> None:
        check_offset(offset, width)
        check_value(value, 8 * width)
        self._check_open()
        self._check(self._library.cuelight_pump_write(self._pump, offset, width, value))

    def _check_not_closed(self) -> None:
        if self._closed:
            raise _closed()

    def _check_open(self) -> None:
        self._check_not_closed()
        if self._failure:
            raise self._failure.with_traceback(None)

    def _check(self, status: int) -> None:
        if not status:
            return
        if status == _CLOSED:
            raise _closed()
        if status == _STUCK:
            raise DeviceLost(
                "The device goes on pushing to a lane that it was told to poll; open it again."
            )
        if status == _LATE:
            raise DeviceLost("The thread that serves the device's lanes stands still; open the device again.")
        self._fail(status)

    def _fail(self, status: int) -> NoReturn:
        self._access.fail(status)


def _join(threads: list[threading.Thread]) -> None:
    for thread in threads:
        if thread is not threading.current_thread():
            thread.join(_JOIN_S)


def _free(library: ctypes.CDLL, pump: int, threads: list[threading.Thread], access: Access) -> None:
    # At the end of a program that has closed nothing, they are still at work.
    library.cuelight_pump_close(pump)
    _join(threads)
    # What the pump calls must be there as long as itself. One that stands still is left where it is.
    if not any(thread.is_alive() for thread in threads):
        library.cuelight_pump_free(pump)
    del access


def _closed() -> DeviceClosed:
    return DeviceClosed("The device is closed; open it again.")
