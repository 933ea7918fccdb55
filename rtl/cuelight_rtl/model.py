"""The scheduler's RTL, stepped cycle by cycle from Python."""

from __future__ import annotations

import ctypes
import functools
import struct
import weakref
from ctypes import POINTER, c_int, c_uint32, c_uint64, c_void_p
from typing import NamedTuple

from .build import Progress, build
from .params import Params

__all__ = ["NS_PER_CYCLE", "Commit", "Model", "Request", "load"]

NS_PER_CYCLE = 10
"""How far `time_ns` moves in a cycle of a stepped model."""

_COMMIT = struct.Struct("<Q6I")
_LIMIT = 1_000_000
_PROTOTYPES = {
    "cuelight_model_open": (c_void_p, c_uint64),
    "cuelight_model_close": (None, c_void_p),
    "cuelight_model_cycle": (c_int, c_void_p, c_int, c_int, c_uint64, c_int),
    "cuelight_model_cycles": (None, c_void_p, c_uint64),
    "cuelight_model_write": (c_int, c_void_p, c_int, c_uint64, c_int, c_uint64),
    "cuelight_model_read": (c_int, c_void_p, c_int, c_uint64, POINTER(c_uint64)),
    "cuelight_model_run": (c_int, c_void_p, c_uint64),
    "cuelight_model_outputs": (None, c_void_p, c_void_p),
    "cuelight_model_commits": (c_uint64, c_void_p, POINTER(c_void_p)),
    "cuelight_twin_open": (c_void_p, c_int, c_uint64, c_uint32, c_uint32, c_uint64, c_int),
    "cuelight_twin_close": (None, c_void_p),
    "cuelight_twin_free": (None, c_void_p),
    "cuelight_twin_beat": (c_int, c_void_p, c_uint32),
    "cuelight_twin_read": (c_int, c_void_p, c_uint32, POINTER(c_uint64)),
    "cuelight_twin_write": (c_int, c_void_p, c_uint32, c_uint64, c_uint32),
    "cuelight_twin_take_trace": (c_int, c_void_p, c_void_p, c_uint32, POINTER(c_uint32)),
    "cuelight_twin_cycles": (c_uint64, c_void_p),
}


class Request(NamedTuple):
    """A transaction on the bus: 8 bytes at an offset that is a multiple of 8."""

    offset: int
    write: bool = False
    data: int = 0
    strobe: int = 0xFF


class Commit(NamedTuple):
    """A step that the commit port showed (docs/device.md §8), and when and where it did."""

    cycle: int
    port: int
    kind: int
    lane: int
    stage: int
    id: int
    detail: int


class _Outputs(ctypes.Structure):
    _fields_ = [
        ("cycles", c_uint64),
        ("accepted_at", c_uint64),
        ("poll_valid", c_uint32),
        ("idle", c_uint32),
        ("ready", c_uint32),
        ("irq_retire", c_uint32),
        ("irq_reject", c_uint32),
        ("irq_trace", c_uint32),
    ]


@functools.cache
def _load(path: str) -> ctypes.CDLL:
    library = ctypes.CDLL(path, use_errno=True)
    for name, (result, *arguments) in _PROTOTYPES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def load(params: Params, *, progress: Progress | None = None) -> ctypes.CDLL:
    """Load the twin's library for a scheduler of this size, built if the cache has none.

    Raises
    ------
    BuildError
        It cannot be built.
    """
    return _load(str(build(params, progress=progress)))


class Model:
    """A scheduler fresh from reset, with no time passing but what its methods step.

    `cycles` counts clock cycles since reset. `commits` has every step so far, in order; clear it at will.

    Parameters
    ----------
    params
        Sizes of the scheduler.
    nonce
        Boot nonce, 64 bits.

    Raises
    ------
    BuildError
        The library cannot be built.
    """

    def __init__(self, params: Params | None = None, nonce: int = 1) -> None:
        self.params = params or Params()
        self.commits: list[Commit] = []
        self._library = load(self.params)
        self._handle = self._library.cuelight_model_open(nonce)
        weakref.finalize(self, self._library.cuelight_model_close, self._handle)

    def cycle(self, request: Request | None = None) -> bool:
        """Step one cycle, and say whether the request, if any, was accepted in it."""
        offset, write, data, strobe = request or (-1, False, 0, 0)
        accepted = self._library.cuelight_model_cycle(self._handle, write, offset, data, strobe)
        self._take_commits()
        return bool(accepted)

    def step(self, cycles: int) -> None:
        """Step that many cycles without a request."""
        self._library.cuelight_model_cycles(self._handle, cycles)
        self._take_commits()

    def write(self, offset: int, value: int, width: int = 4, strobe: int | None = None) -> None:
        """Write `width` bytes, 4 or 8, and step until the effect is complete.

        `strobe` overrides which bytes of the aligned 8 are written; `value` still starts at `offset`.

        Raises
        ------
        TimeoutError
            The device is not ready for another request after a million cycles.
        """
        shift = offset % 8
        if strobe is None:
            strobe = (1 << width) - 1 << shift & 0xFF
        data = value << 8 * shift & 0xFFFF_FFFF_FFFF_FFFF
        self._check(self._library.cuelight_model_write(self._handle, offset - shift, data, strobe, _LIMIT))

    def read(self, offset: int, width: int = 4) -> int:
        """Read `width` bytes, 4 or 8, in one transaction.

        Raises
        ------
        TimeoutError
            No answer after a million cycles.
        """
        shift = offset % 8
        data = c_uint64()
        self._check(self._library.cuelight_model_read(self._handle, offset - shift, _LIMIT, ctypes.byref(data)))
        return data.value >> 8 * shift & (1 << 8 * width) - 1

    def run_until_idle(self, limit: int = 100_000) -> None:
        """Step until nothing will change without a request.

        Raises
        ------
        TimeoutError
            `limit` cycles were not enough.
        """
        self._check(self._library.cuelight_model_run(self._handle, limit))

    @property
    def cycles(self) -> int:
        """Clock cycles since reset; the number of the cycle that comes next."""
        return int(self._outputs().cycles)

    @property
    def accepted_at(self) -> int:
        """Cycle in which the last request was accepted."""
        return int(self._outputs().accepted_at)

    @property
    def poll_valid(self) -> int:
        """Lanes whose dispatch waits in the poll head, as a bitmap."""
        return int(self._outputs().poll_valid)

    @property
    def idle(self) -> bool:
        """Whether nothing will change without a request."""
        return bool(self._outputs().idle)

    @property
    def ready(self) -> bool:
        """Whether a request would be accepted in the next cycle."""
        return bool(self._outputs().ready)

    @property
    def interrupts(self) -> tuple[bool, bool, bool]:
        """Whether retirements, rejects, and half a trace FIFO wait."""
        outputs = self._outputs()
        return bool(outputs.irq_retire), bool(outputs.irq_reject), bool(outputs.irq_trace)

    def _outputs(self) -> _Outputs:
        outputs = _Outputs()
        self._library.cuelight_model_outputs(self._handle, ctypes.byref(outputs))
        return outputs

    def _check(self, done: int) -> None:
        self._take_commits()
        if not done:
            raise TimeoutError(f"The model is not done at cycle {self.cycles}.")

    def _take_commits(self) -> None:
        at = c_void_p()
        if count := self._library.cuelight_model_commits(self._handle, ctypes.byref(at)):
            raw = ctypes.string_at(at, count * _COMMIT.size)
            self.commits.extend(map(Commit._make, _COMMIT.iter_unpack(raw)))
