"""The shell as native code, stepped cycle by cycle."""

from __future__ import annotations

import ctypes
import fcntl
import functools
import hashlib
import os
import tempfile
import weakref
from ctypes import POINTER, c_char, c_char_p, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from pathlib import Path

from cuelight_rtl.build import compile_model, sources_hash, tools_hash
from cuelight_rtl.params import Params

from . import shell
from .shell import Shell

__all__ = ["Native"]

_SHIM = Path(__file__).with_name("shell.cpp")
# It is built far more often than a run is long: -O2 takes five times as long to compile.
_OPTIMIZATION = "-O1"
_INTEGERS = {1: c_uint8, 2: c_uint16, 4: c_uint32, 8: c_uint64}

_View = ctypes.Array[c_char] | c_uint8 | c_uint16 | c_uint32 | c_uint64
"""A port of Verilator's, as it lies in memory."""


class Native:
    """A shell in reset.

    Ports are read and written by their names in Verilog. What is written shows after `settle`.

    Parameters
    ----------
    params
        Sizes of the scheduler.

    Raises
    ------
    BuildError
        It cannot be compiled.
    """

    def __init__(self, params: Params) -> None:
        library = self._library = _library(params)
        self._handle = library.shell_open()
        weakref.finalize(self, library.shell_close, self._handle)
        self._settle, self._tick, self._rest = library.shell_settle, library.shell_tick, library.shell_rest
        self._ports: dict[str, _View] = {}
        self.set("user_reset", 1)
        self.settle()

    def get(self, port: str) -> int:
        view = self.view(port)
        return int.from_bytes(view.raw, "little") if isinstance(view, ctypes.Array) else int(view.value)

    def set(self, port: str, value: int) -> None:
        view = self.view(port)
        if isinstance(view, ctypes.Array):
            view.raw = value.to_bytes(len(view), "little")
        else:
            view.value = value

    def view(self, port: str) -> _View:
        """A port as it lies in memory, for who looks at it often; those of up to 64 bits are integers.

        Raises
        ------
        KeyError
            There is none of this name.
        """
        if port in self._ports:
            return self._ports[port]
        place = c_void_p()
        size = self._library.shell_port(self._handle, port.encode(), place)
        if not size or not place.value:
            raise KeyError(port)
        kind = _INTEGERS.get(size, c_char * size)
        view: _View = kind.from_address(place.value)
        self._ports[port] = view
        return view

    def settle(self) -> None:
        """Let inputs have their effect within the cycle."""
        self._settle(self._handle)

    def tick(self) -> None:
        """End a settled cycle."""
        self._tick(self._handle)

    def rest(self, limit: int) -> int:
        """Let cycles pass in which nothing shows, ``limit`` at most; gives how many. If fewer, the next has settled."""
        return int(self._rest(self._handle, limit))


@functools.cache
def _library(params: Params) -> ctypes.CDLL:
    library = ctypes.CDLL(str(_build(params)))
    for name, result, arguments in (
        ("shell_open", c_void_p, []),
        ("shell_close", None, [c_void_p]),
        ("shell_port", c_uint32, [c_void_p, c_char_p, POINTER(c_void_p)]),
        ("shell_settle", None, [c_void_p]),
        ("shell_tick", None, [c_void_p]),
        ("shell_rest", c_uint32, [c_void_p, c_uint32]),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def _build(params: Params) -> Path:
    """Compile it, unless the cache has it: `$XDG_CACHE_HOME/cuelight/push` or `~/.cache/cuelight/push`."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cuelight" / "push"
    cache.mkdir(parents=True, exist_ok=True)
    parts = [sources_hash(), tools_hash(), Path(shell.__file__).read_text(), _SHIM.read_text(), repr(params)]
    file = cache / f"{hashlib.sha256(chr(10).join([*parts, _OPTIMIZATION]).encode()).hexdigest()[:32]}.so"
    if file.exists():
        return file
    with open(file.with_suffix(".lock"), "w") as lock, tempfile.TemporaryDirectory(dir=cache) as name:
        # Tests run in several processes, of which one is to compile it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            folder = Path(name)
            built = Shell(params)
            names = " ".join(f"X({port.name})" for port in built.ports)
            (folder / "ports.h").write_text(f"#define SHELL_PORTS(X) {names}\n")
            text = shell.verilog(built)
            made = compile_model(
                folder, "shell", text, [_SHIM], optimization=_OPTIMIZATION, report=lambda _step, _share: None
            )
            made.rename(file)
    return file
