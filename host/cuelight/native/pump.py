"""Functions of `pump.cpp`."""

from __future__ import annotations

import ctypes
import functools
from ctypes import POINTER, c_int, c_int64, c_uint32, c_uint64, c_void_p

from cuelight.native.build import library

__all__ = ["pump_library"]

_PROTOTYPES = {
    "cuelight_pump_open": (
        c_void_p,
        *(c_void_p, c_void_p, c_void_p, c_int, c_uint64, c_uint32, c_uint32, c_uint32, c_uint32, c_int),
    ),
    "cuelight_pump_start": (c_int, c_void_p),
    "cuelight_pump_run": (c_int, c_void_p, c_int64),
    "cuelight_pump_write": (c_int, c_void_p, c_uint32, c_uint32, c_uint64),
    "cuelight_pump_take_trace": (c_int, c_void_p, c_void_p, c_uint32, POINTER(c_uint32)),
    "cuelight_pump_probe": (c_int, c_void_p, c_uint32, c_uint32),
    "cuelight_pump_mode": (c_uint32, c_void_p, c_uint32),
    "cuelight_pump_listen": (c_int, c_void_p, c_void_p, c_uint32, c_int),
    "cuelight_pump_beat": (c_int, c_void_p, c_uint32),
    "cuelight_pump_close": (None, c_void_p),
    "cuelight_pump_free": (None, c_void_p),
}


@functools.cache
def pump_library() -> ctypes.CDLL:
    """Load the library, compiled if this is the first use; calls let other threads run.

    Raises
    ------
    BuildError
        It cannot be compiled.
    """
    loaded = library("pump")
    for name, (result, *arguments) in _PROTOTYPES.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded
