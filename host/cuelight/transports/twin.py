"""The twin: the scheduler's own RTL as native code in this process."""

from __future__ import annotations

import ctypes
import os
import secrets
import weakref
from collections.abc import Callable

from cuelight.errors import BuildError, DeviceClosed, DeviceLost, InvalidArgument, TransportError
from cuelight.segment import Segment, Shape
from cuelight.transports.base import confirm_present, wait_for_bell
from cuelight.transports.registers import check_offset, check_value
from cuelight.transports.tracing import decode_event

__all__ = ["TwinTransport"]

_CLOSED = -1
_TRACE_LIMIT = 1 << 20
_TRACE_CHUNK = 1024
_LATE = 1
_BUSY = 2
_MASK32, _MASK64 = 0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF


class TwinTransport:
    """A `Transport` to a device that starts with it and ends with it.

    A native thread steps the RTL while there is work, fills the lanes' rings in the shared segment and forwards their
    completions. With nothing in flight it sleeps.

    Parameters
    ----------
    lanes, slots, seats
        Sizes of the device.
    tokens, context, blocks, vocabulary
        Sizes of the segment; see `Shape`.
    polling
        Spin while a lane works, instead of waiting to be woken: for lanes that ring no bell, such as a GPU.
    progress
        Is told what is being built, and how far it is, at the first use of these sizes.

    Raises
    ------
    InvalidArgument
        A size is out of range.
    BuildError
        The RTL cannot be compiled here.
    SegmentError
        The shared segment cannot be made.
    """

    def __init__(
        self,
        *,
        lanes: int = 2,
        slots: int = 1024,
        seats: int = 64,
        tokens: int = 1024,
        context: int = 2048,
        blocks: int = 32,
        vocabulary: int = 0,
        polling: bool = False,
        progress: Callable[[str, float], object] | None = None,
    ) -> None:
        shape = Shape(lanes, slots, seats, tokens, context, blocks, vocabulary)
        self._library = _load(slots, seats, lanes, progress)
        self._read_now, self._write_now = _hurried(self._library)
        self._segment = Segment.create(shape)
        handle = self._library.cuelight_twin_open(
            self._segment.descriptor,
            shape.size,
            shape.ports,
            shape.port_stride,
            secrets.randbits(64),
            polling,
        )
        if not handle:
            error = os.strerror(ctypes.get_errno())
            self._segment.close()
            raise TransportError(f"The twin cannot map its segment ({error}); free some memory and try again.")
        self._handle = handle
        self._closed = False
        # Not in `close`: a call of another thread may still be in there.
        self._free = weakref.finalize(self, _free, self._library, handle, self._segment)

    @property
    def segment(self) -> Segment:
        """Memory shared by host and lanes."""
        return self._segment

    @property
    def cycles(self) -> int:
        """Cycles the RTL has been stepped since reset."""
        return int(self._library.cuelight_twin_cycles(self._handle))

    def read32(self, offset: int) -> int:
        """Read a 32-bit register."""
        check_offset(offset, 4)
        value = self._read32(offset)
        if value == _MASK32:
            confirm_present(self._read32)
            return self._read32(offset)
        return value

    def read64(self, offset: int) -> int:
        """Read a 64-bit register in one transaction."""
        check_offset(offset, 8)
        value = self._read(offset)
        if value == _MASK64:
            confirm_present(self._read32)
            return self._read(offset)
        return value

    def write32(self, offset: int, value: int) -> None:
        """Write a 32-bit register; its effect is complete on return."""
        check_offset(offset, 4)
        check_value(value, 32)
        shift = offset & 4
        self._write(offset & ~7, value << 8 * shift, 0xF << shift)

    def write64(self, offset: int, value: int) -> None:
        """Write a 64-bit register in one transaction; its effect is complete on return."""
        check_offset(offset, 8)
        check_value(value, 64)
        self._write(offset, value, 0xFF)

    def wait(self, bell: int, timeout_s: float) -> int:
        """Wait until the host bell differs from `bell`, and return what it reads then."""
        return wait_for_bell(self._segment, bell, timeout_s, self._check_not_closed)

    def moves(self, timeout_s: float) -> bool:
        """Whether the thread that steps the RTL goes round within `timeout_s` seconds."""
        status = self._library.cuelight_twin_beat(self._handle, max(0, int(timeout_s * 1e3)))
        if status != _LATE:
            self._check(status)
        return bool(status != _LATE)

    def drain_trace(self) -> list[tuple[int, int, int, int, int, int]]:
        """Take the events traced so far: (time in ns, kind, lane, stage, id, detail), oldest first."""
        events: list[tuple[int, int, int, int, int, int]] = []
        chunk = (ctypes.c_uint64 * (2 * _TRACE_CHUNK))()
        count = ctypes.c_uint32(_TRACE_CHUNK)
        while count.value == _TRACE_CHUNK and len(events) < _TRACE_LIMIT:
            self._check(self._library.cuelight_twin_take_trace(self._handle, chunk, _TRACE_CHUNK, ctypes.byref(count)))
            words = chunk[: 2 * count.value]
            events += map(decode_event, words[::2], words[1::2])
        return events

    def close(self) -> None:
        """Stop the thread, ask the lanes to end and remove the segment; whoever waits is woken. Can be called again."""
        if self._closed:
            return
        self._closed = True
        self._library.cuelight_twin_close(self._handle)
        for lane in range(self._segment.shape.lanes):
            self._segment.set_stop(lane, True)
        self._segment.ring_host()
        self._segment.close()

    def _read32(self, offset: int) -> int:
        return self._read(offset & ~7) >> 8 * (offset & 4) & _MASK32

    def _read(self, offset: int) -> int:
        data = ctypes.c_uint64()
        status = self._read_now(self._handle, offset, data)
        if status == _BUSY:
            status = self._library.cuelight_twin_read(self._handle, offset, data)
        if status:
            self._check(status)
        return data.value

    def _write(self, offset: int, data: int, strobe: int) -> None:
        status = self._write_now(self._handle, offset, data, strobe)
        if status == _BUSY:
            status = self._library.cuelight_twin_write(self._handle, offset, data, strobe)
        if status:
            self._check(status)

    def _check_not_closed(self) -> None:
        if self._closed:
            raise _closed()

    def _check(self, status: int) -> None:
        if status == _CLOSED:
            raise _closed()
        if status:
            raise DeviceLost("The twin's RTL no longer answers; close the device and open another one.")


def _load(slots: int, seats: int, lanes: int, progress: Callable[[str, float], object] | None) -> ctypes.CDLL:
    try:
        from cuelight_rtl import build, model
        from cuelight_rtl.params import Params
    except ImportError as error:
        raise BuildError("The twin needs the package's rtl extra; run pip install 'cuelight[rtl]'.") from error
    try:
        params = Params(slots=slots, seats=seats, lanes=lanes)
    except ValueError as error:
        raise InvalidArgument(f"The twin cannot have this size: {error}.") from error
    try:
        return model.load(params, progress=progress)
    except build.BuildError as error:
        raise BuildError(str(error)) from error


def _hurried(library: ctypes.CDLL) -> tuple[Callable[..., int], Callable[..., int]]:
    """Reading and writing without letting go of the interpreter, which is had back late where others want it too."""
    hurried = ctypes.PyDLL(library._name)
    found = []
    for name in ("cuelight_twin_read", "cuelight_twin_write"):
        function = getattr(hurried, f"{name}_now")
        function.restype, function.argtypes = getattr(library, name).restype, getattr(library, name).argtypes
        found.append(function)
    read, write = found
    return read, write


def _free(library: ctypes.CDLL, handle: int, segment: Segment) -> None:
    library.cuelight_twin_free(handle)
    segment.close()


def _closed() -> DeviceClosed:
    return DeviceClosed("The twin is closed; open the device again.")
