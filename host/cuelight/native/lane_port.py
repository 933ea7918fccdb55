"""Functions of `lane_port.cpp`."""

from __future__ import annotations

import ctypes
import functools
from ctypes import POINTER, c_int, c_int64, c_uint32, c_void_p

from cuelight.native.build import library

__all__ = ["lane_port_library"]

_WAITING = {
    "cuelight_sleep": (c_uint32, c_void_p, c_uint32, c_int64),
    "cuelight_port_wait": (c_int, c_void_p, POINTER(c_uint32), c_int64, c_uint32, c_void_p, c_void_p),
    "cuelight_port_post": (c_uint32, c_void_p, c_void_p, c_uint32, c_uint32, c_void_p, c_uint32, c_int64),
}
_BRIEF = {
    "cuelight_ring": (None, c_void_p),
    "cuelight_port_record": (c_int, c_void_p, c_uint32, c_uint32, c_uint32, c_uint32, c_void_p),
    "cuelight_port_complete": (None, c_void_p, c_void_p, c_uint32, c_void_p),
    "cuelight_port_posted": (c_uint32, c_void_p, c_uint32),
    "cuelight_port_take": (c_uint32, c_void_p, c_uint32, c_uint32, c_void_p, c_uint32),
}


@functools.cache
def lane_port_library() -> ctypes.CDLL:
    """Load the library, compiled if this is the first use; only calls that may wait let other threads run.

    Raises
    ------
    BuildError
        It cannot be compiled.
    """
    loaded = library("lane_port")
    # Whoever lets go of the interpreter has it back late where others want it too.
    brief = ctypes.PyDLL(loaded._name)
    for functions, prototypes in ((loaded, _WAITING), (brief, _BRIEF)):
        for name, (result, *arguments) in prototypes.items():
            function = getattr(functions, name)
            function.restype, function.argtypes = result, arguments
            setattr(loaded, name, function)
    return loaded
