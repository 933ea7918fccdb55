"""Functions of `lane_port.cpp`."""

from __future__ import annotations

import ctypes
import functools
from ctypes import POINTER, c_int, c_int64, c_uint32, c_void_p

from cuelight.native.build import library

__all__ = ["lane_port_library"]

_PROTOTYPES = {
    "cuelight_ring": (None, c_void_p),
    "cuelight_sleep": (c_uint32, c_void_p, c_uint32, c_int64),
    "cuelight_port_wait": (c_int, c_void_p, POINTER(c_uint32), c_int64, c_void_p),
    "cuelight_port_record": (c_uint32, c_void_p, c_uint32, c_uint32, c_uint32, c_uint32, c_void_p),
    "cuelight_port_complete": (None, c_void_p, c_void_p, c_uint32, c_void_p),
    "cuelight_port_posted": (c_uint32, c_void_p, c_uint32),
    "cuelight_port_post": (c_int, c_void_p, c_void_p, c_uint32, c_uint32, c_void_p, c_int64),
    "cuelight_port_take": (c_uint32, c_void_p, c_uint32, c_uint32, c_void_p, c_uint32),
}


@functools.cache
def lane_port_library() -> ctypes.CDLL:
    """Load the library, compiled if this is the first use; calls let other threads run.

    Raises
    ------
    BuildError
        It cannot be compiled.
    """
    loaded = library("lane_port")
    for name, (result, *arguments) in _PROTOTYPES.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded
