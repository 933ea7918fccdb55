"""Functions of `bar.cpp`."""

from __future__ import annotations

import ctypes
import functools
from ctypes import POINTER, c_int, c_uint32, c_uint64, c_void_p

from cuelight.native.build import library

__all__ = ["bar_library"]

_PROTOTYPES = {
    "cuelight_bar_open": (c_void_p, c_int, c_uint64, c_uint64),
    "cuelight_bar_read": (c_int, c_void_p, c_uint32, c_uint32, POINTER(c_uint64)),
    "cuelight_bar_write": (c_int, c_void_p, c_uint32, c_uint32, c_uint64),
    "cuelight_bar_close": (None, c_void_p),
    "cuelight_bar_free": (None, c_void_p),
}


@functools.cache
def bar_library() -> ctypes.CDLL:
    """Load the library, compiled if this is the first use; calls let other threads run.

    Raises
    ------
    BuildError
        It cannot be compiled.
    """
    loaded = library("bar")
    for name, (result, *arguments) in _PROTOTYPES.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded
